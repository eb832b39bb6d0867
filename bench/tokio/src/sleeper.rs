// SPDX-License-Identifier: MIT
//! The children of suite runtime. Whole-program optimisation sees through this module; tokio gains
//! from that, and is meant to.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::time::Instant;

pub static ASLEEP: AtomicUsize = AtomicUsize::new(0);

pub async fn nothing() {}

pub async fn sleeper(deadline: Instant) {
    // Load and store, not fetch_add: the runtime has one thread (see leaf.rs).
    ASLEEP.store(ASLEEP.load(Relaxed) + 1, Relaxed);
    tokio::time::sleep_until(deadline).await;
}
