// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const syncTasks = 1000 // the same in every contestant

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
