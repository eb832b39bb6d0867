// SPDX-License-Identifier: MIT
//! Wall time, CPU time and resident memory, as `bench/harness/contestant.cc` reads them.
#![allow(dead_code)] // each program uses its part

use std::fs;
use std::time::Instant;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    fn sysconf(name: i32) -> i64;
}

const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
const SC_PAGESIZE: i32 = 30;

fn cpu_ns() -> f64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` is a valid timespec of 64-bit Linux.
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.seconds as f64 * 1e9 + time.nanoseconds as f64
}

fn resident_bytes() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: f64 = statm.split(' ').nth(1).and_then(|field| field.parse().ok()).expect("pages");
    // SAFETY: no preconditions.
    pages * unsafe { sysconf(SC_PAGESIZE) } as f64
}

pub struct Stopwatch {
    cpu_ns: f64,
    wall: Instant,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { cpu_ns: cpu_ns(), wall: Instant::now() }
    }

    /// CPU time from now, wall time from a moment that is yet to come.
    pub fn start_wall_at(wall: Instant) -> Self {
        Self { cpu_ns: cpu_ns(), wall }
    }

    pub fn per_operation(&self, operations: usize) -> String {
        let wall_ns = self.wall.elapsed().as_nanos() as f64;
        let count = operations as f64;
        format!("wall_ns={:.6} cpu_ns={:.6}", wall_ns / count, (cpu_ns() - self.cpu_ns) / count)
    }
}

pub struct MemoryProbe {
    bytes: f64,
}

impl MemoryProbe {
    pub fn start() -> Self {
        Self { bytes: resident_bytes() }
    }

    pub fn per_task(&self, tasks: usize) -> String {
        format!("bytes={:.6}", (resident_bytes() - self.bytes) / tasks as f64)
    }
}
