// SPDX-License-Identifier: MIT
package main

import (
	"runtime"
	"syscall"
	"unsafe"
)

const warmUpRounds = 1000 // the same in every contestant

type cpuMask [16]uint64 // 1024 cores, as glibc's cpu_set_t

// The first and the last core that this process may use, read before any thread was pinned.
var firstCore, lastCore = allowedCores()

func allowedCores() (first, last int) {
	var mask cpuMask
	syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask),
		uintptr(unsafe.Pointer(&mask)))
	first = -1
	for core := 0; core < len(mask)*64; core++ {
		if mask[core/64]>>(core%64)&1 == 1 {
			if first < 0 {
				first = core
			}
			last = core
		}
	}
	return first, last
}

// ownThread gives the goroutine a thread of its own, on one core. The thread ends with it.
func ownThread(core int) {
	runtime.LockOSThread()
	var mask cpuMask
	mask[core/64] |= 1 << (core % 64)
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask),
		uintptr(unsafe.Pointer(&mask)))
}

// Without threads of their own both goroutines share one, and nothing crosses: so there is no
// pingpong_busy either. Two goroutines that yield end up on one P; two that do not are the floor.
func pingpongSleeping(n int) string {
	if firstCore == lastCore {
		return "error this measure wants two cores"
	}
	there, back := make(chan struct{}), make(chan struct{})
	answer := make(chan string)
	go func() {
		ownThread(lastCore)
		for range there {
			back <- struct{}{}
		}
	}()
	go func() {
		ownThread(firstCore)
		watch := startWatch()
		for round := 0; round < warmUpRounds+n; round++ {
			if round == warmUpRounds {
				watch = startWatch()
			}
			there <- struct{}{}
			<-back
		}
		close(there)
		answer <- watch.perOperation(n)
	}()
	return <-answer
}
