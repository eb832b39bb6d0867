// SPDX-License-Identifier: MIT

// Go in suites runtime and sync: go_bench_runtime speaks the line protocol of bench/harness/contestant.h;
// `go_bench_runtime --echo` is an echo server on one P.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// The same in every contestant.
const (
	batch           = 1000
	echoBufferBytes = 4096
)

//go:noinline
func nothing(joined *sync.WaitGroup) { joined.Done() }

func spawnJoin(n int) string {
	batches := (n + batch - 1) / batch
	var joined sync.WaitGroup
	watch := startWatch()
	for i := 0; i < batches; i++ {
		joined.Add(batch)
		for j := 0; j < batch; j++ {
			go nothing(&joined)
		}
		joined.Wait()
	}
	return watch.perOperation(batches * batch)
}

func echo(socket net.Conn) { // net sets TCP_NODELAY
	defer socket.Close()
	buffer := make([]byte, echoBufferBytes)
	for {
		got, err := socket.Read(buffer)
		if err != nil {
			return
		}
		if _, err := socket.Write(buffer[:got]); err != nil {
			return
		}
	}
}

func serveEcho() error {
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	for {
		socket, err := listener.Accept()
		if err != nil {
			return err
		}
		go echo(socket)
	}
}

func answer(line string) string {
	words := strings.Fields(line)
	if len(words) == 1 && words[0] == "info" {
		return runtime.Version() + ", GOMAXPROCS=2, or 1 for one loop"
	}
	if len(words) != 3 || words[0] != "run" {
		return "error expected: info | run <measure> <n>"
	}
	n, err := strconv.Atoi(words[2])
	if err != nil || n <= 0 {
		return "error n is a positive number"
	}
	runtime.GOMAXPROCS(2)
	switch words[1] {
	case "pingpong_sleeping":
		return pingpongSleeping(n)
	case "spawn_join_mt":
		return spawnJoin(n)
	case "contend_two_loops":
		return contendTwoLoops(n)
	case "channel_one_loop":
		return channel(1, capacity, n)
	case "channel_two_loops":
		return channel(2, capacity, n)
	case "rendezvous_one_loop":
		return channel(1, 0, n)
	case "rendezvous_two_loops":
		return channel(2, 0, n)
	}
	return "error no measure named " + words[1]
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--echo" {
		if len(os.Args) > 2 && os.Args[2] == "--info" {
			fmt.Println(runtime.Version() + ", GOMAXPROCS=1")
			return
		}
		if err := serveEcho(); err != nil {
			fmt.Fprintln(os.Stderr, "go_bench_runtime:", err)
			os.Exit(1)
		}
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		fmt.Println(answer(input.Text()))
	}
}
