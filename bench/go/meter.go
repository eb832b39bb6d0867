// SPDX-License-Identifier: MIT
package main

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// Wall and CPU time, as bench/harness/contestant.cc reads them.
type stopwatch struct {
	cpuNanos int64
	wall     time.Time
}

const clockProcessCPUTimeID = 2

func cpuNanos() int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPUTimeID,
		uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

func startWatch() stopwatch { return stopwatch{cpuNanos(), time.Now()} }

func (w stopwatch) perOperation(operations int) string {
	wall := float64(time.Since(w.wall).Nanoseconds())
	cpu := float64(cpuNanos() - w.cpuNanos)
	count := float64(operations)
	return fmt.Sprintf("wall_ns=%.6f cpu_ns=%.6f", wall/count, cpu/count)
}
