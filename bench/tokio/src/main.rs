// SPDX-License-Identifier: MIT
//! tokio as a contestant: the current-thread runtime, `tokio::spawn`, and the line protocol of
//! `bench/harness/contestant.h`.
//!
//! Used at its best within the ordinary API. The measuring parent is itself a spawned task, not the
//! future given to `block_on`: joining from there took half as long again. `JoinSet` is slower than
//! handles in a `Vec`, for joining and for cancelling; `LocalSet` is within noise of `spawn`.

mod leaf;
mod meter;

use meter::{MemoryProbe, Stopwatch};
use std::cell::RefCell;
use std::future::Future;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

const BATCH: usize = 1000; // the same in every contestant

async fn spawn_join(n: usize) -> String {
    let batches = (n + BATCH - 1) / BATCH;
    let mut handles = Vec::with_capacity(BATCH);
    let watch = Stopwatch::start();
    for _ in 0..batches {
        for _ in 0..BATCH {
            handles.push(tokio::spawn(leaf::leaf()));
        }
        for handle in handles.drain(..) {
            handle.await.expect("leaf ends");
        }
    }
    watch.per_operation(batches * BATCH)
}

thread_local! {
    static YIELD_WATCH: RefCell<Option<Stopwatch>> = RefCell::new(None);
}

async fn yield_between_two(n: usize) -> String {
    let each = n / 2;
    let started = Arc::new(AtomicUsize::new(0));
    let yielder = |started: Arc<AtomicUsize>| async move {
        if started.fetch_add(1, Relaxed) + 1 == 2 {
            YIELD_WATCH.with(|watch| *watch.borrow_mut() = Some(Stopwatch::start()));
        }
        for _ in 0..each {
            tokio::task::yield_now().await;
        }
    };
    let first = tokio::spawn(yielder(started.clone()));
    let second = tokio::spawn(yielder(started));
    first.await.expect("yielder ends");
    second.await.expect("yielder ends");
    let watch = YIELD_WATCH.with(|watch| watch.borrow_mut().take()).expect("both started");
    watch.per_operation(2 * each)
}

async fn all_parked(n: usize) {
    while leaf::PARKED.load(Relaxed) < n {
        tokio::task::yield_now().await;
    }
}

async fn cancel_parked(n: usize) -> String {
    leaf::PARKED.store(0, Relaxed);
    let handles: Vec<_> = (0..n).map(|_| tokio::spawn(leaf::parked())).collect();
    all_parked(n).await;
    let watch = Stopwatch::start();
    for handle in &handles {
        handle.abort();
    }
    for handle in handles {
        assert!(handle.await.expect_err("aborted").is_cancelled());
    }
    watch.per_operation(n)
}

/// The handles are dropped, which detaches the tasks: only the tasks themselves are weighed.
async fn parked_bytes(n: usize) -> String {
    leaf::PARKED.store(0, Relaxed);
    let probe = MemoryProbe::start();
    for _ in 0..n {
        drop(tokio::spawn(leaf::parked()));
    }
    all_parked(n).await;
    probe.per_task(n)
}

/// A fresh runtime for every sample; its tasks end with it.
fn on_a_runtime(measure: impl Future<Output = String> + Send + 'static) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    runtime.block_on(async { tokio::spawn(measure).await.expect("measure ends") })
}

fn answer(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["info"] => format!(
            "tokio {}, current_thread runtime; {}",
            env!("BENCH_TOKIO"),
            env!("BENCH_RUSTC")
        ),
        ["run", name, count] => match (name, count.parse::<usize>()) {
            (_, Err(_)) | (_, Ok(0)) => "error n is a positive number".to_string(),
            ("spawn_join", Ok(n)) => on_a_runtime(spawn_join(n)),
            ("yield", Ok(n)) => on_a_runtime(yield_between_two(n)),
            ("cancel_parked", Ok(n)) => on_a_runtime(cancel_parked(n)),
            ("parked_bytes", Ok(n)) => on_a_runtime(parked_bytes(n)),
            _ => format!("error no measure named {name}"),
        },
        _ => "error expected: info | run <measure> <n>".to_string(),
    }
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?))?;
        out.flush()?;
    }
    Ok(())
}
