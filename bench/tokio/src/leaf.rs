// SPDX-License-Identifier: MIT
//! The children. Whole-program optimisation sees through this module; tokio gains from that, and
//! is meant to.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub static ENDED: AtomicUsize = AtomicUsize::new(0);
pub static PARKED: AtomicUsize = AtomicUsize::new(0);

pub async fn leaf() {
    // Load and store, not fetch_add: the runtime has one thread, and a locked instruction would be
    // the benchmark's cost, not tokio's.
    ENDED.store(ENDED.load(Relaxed) + 1, Relaxed);
}

pub async fn parked() {
    PARKED.store(PARKED.load(Relaxed) + 1, Relaxed);
    std::future::pending::<()>().await;
}
