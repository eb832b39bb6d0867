// SPDX-License-Identifier: MIT

// Go in suite http: `go_http` answers by net/http on one P, `go_http --ws` echoes by gorilla/websocket.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"

	"github.com/gorilla/websocket"
)

func plaintext(response http.ResponseWriter, _ *http.Request) {
	response.Header().Set("Server", "go")
	response.Header().Set("Content-Type", "text/plain")
	response.Write([]byte("Hello, World!"))
}

var upgrader = websocket.Upgrader{}

func echo(response http.ResponseWriter, request *http.Request) {
	socket, err := upgrader.Upgrade(response, request, nil)
	if err != nil {
		return
	}
	defer socket.Close()
	for {
		kind, message, err := socket.ReadMessage()
		if err != nil {
			return
		}
		if err := socket.WriteMessage(kind, message); err != nil {
			return
		}
	}
}

func serve(handler http.HandlerFunc) error {
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	return http.Serve(listener, handler)
}

func main() {
	if os.Args[len(os.Args)-1] == "--info" {
		fmt.Println(runtime.Version() + " net/http and gorilla/websocket, GOMAXPROCS=1")
		return
	}
	handler := plaintext
	if len(os.Args) > 1 && os.Args[1] == "--ws" {
		handler = echo
	}
	if err := serve(handler); err != nil {
		fmt.Fprintln(os.Stderr, "go_http:", err)
		os.Exit(1)
	}
}
