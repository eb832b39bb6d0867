// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The same in every contestant.
const (
	syncTasks = 1000
	capacity  = 1024
)

func contendTwoLoops(n int) string {
	var mutex sync.Mutex
	var began atomic.Int64
	var ended sync.WaitGroup
	inside := 0
	rounds := n / syncTasks
	mutex.Lock()
	for i := 0; i < syncTasks; i++ {
		ended.Add(1)
		go func() {
			defer ended.Done()
			began.Add(1)
			for round := 0; round < rounds; round++ {
				mutex.Lock()
				inside++
				runtime.Gosched()
				mutex.Unlock()
			}
		}()
	}
	for began.Load() < syncTasks {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // all wait
	watch := startWatch()
	mutex.Unlock()
	ended.Wait()
	return watch.perOperation(rounds * syncTasks)
}

func produce(items chan<- int, n int) {
	for i := 0; i < n; i++ {
		items <- i
	}
	close(items)
}

func consume(items <-chan int, sum *int, ended *sync.WaitGroup) {
	defer ended.Done()
	for item := range items {
		*sum += item
	}
}

// One goroutine sends, another receives, one by one, on so many Ps.
func channel(ps, slots, n int) string {
	runtime.GOMAXPROCS(ps)
	items := make(chan int, slots)
	var ended sync.WaitGroup
	sum := 0
	ended.Add(1)
	watch := startWatch()
	go consume(items, &sum, &ended)
	go produce(items, n)
	ended.Wait()
	if sum != n*(n-1)/2 {
		return "error items were lost"
	}
	return watch.perOperation(n)
}
