// SPDX-License-Identifier: MIT
//! Which core a thread runs on, as `bench/harness/threads.h` has it.

extern "C" {
    fn sched_getaffinity(pid: i32, bytes: usize, mask: *mut u64) -> i32;
    fn sched_setaffinity(pid: i32, bytes: usize, mask: *const u64) -> i32;
}

const WORDS: usize = 16; // 1024 cores, as glibc's cpu_set_t

/// The first and the last core that this thread may use.
pub fn two_cores() -> Result<(usize, usize), String> {
    let mut mask = [0u64; WORDS];
    // SAFETY: `mask` has as many bytes as it says.
    if unsafe { sched_getaffinity(0, WORDS * 8, mask.as_mut_ptr()) } < 0 {
        return Err("sched_getaffinity".to_string());
    }
    let mut allowed = (0..WORDS * 64).filter(|core| mask[core / 64] >> (core % 64) & 1 == 1);
    let first = allowed.next();
    match (first, allowed.last()) {
        (Some(first), Some(last)) => Ok((first, last)),
        _ => Err("this measure wants two cores".to_string()),
    }
}

pub fn pin_this_thread(core: usize) {
    let mut mask = [0u64; WORDS];
    mask[core / 64] |= 1 << (core % 64);
    // SAFETY: as above.
    assert_eq!(unsafe { sched_setaffinity(0, WORDS * 8, mask.as_ptr()) }, 0, "sched_setaffinity");
}
