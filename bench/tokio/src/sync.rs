// SPDX-License-Identifier: MIT
//! tokio in suite sync: `tokio::sync` on the runtimes of suite runtime.

mod meter;

use meter::Stopwatch;
use std::future::Future;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, Mutex};

// The same in every contestant.
const TASKS: usize = 1000;
const CAPACITY: usize = 1024;

async fn lock_uncontended(n: usize) -> String {
    let mutex = Mutex::new(0usize);
    let watch = Stopwatch::start();
    for _ in 0..n {
        let mut inside = mutex.lock().await;
        *inside = std::hint::black_box(*inside + 1);
    }
    watch.per_operation(n)
}

async fn contend(n: usize) -> String {
    let mutex = Arc::new(Mutex::new(0usize));
    let began = Arc::new(AtomicUsize::new(0));
    let gate = mutex.lock().await;
    let rounds = n / TASKS;
    let task = |_| {
        let (mutex, began) = (mutex.clone(), began.clone());
        tokio::spawn(async move {
            began.fetch_add(1, SeqCst);
            for _ in 0..rounds {
                let mut inside = mutex.lock().await;
                *inside += 1;
                tokio::task::yield_now().await;
            }
        })
    };
    let handles: Vec<_> = (0..TASKS).map(task).collect();
    while began.load(SeqCst) < TASKS {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await; // all wait
    let watch = Stopwatch::start();
    drop(gate);
    for handle in handles {
        handle.await.expect("task ends");
    }
    watch.per_operation(rounds * TASKS)
}

/// One task sends, another receives, one by one.
async fn channel(capacity: usize, n: usize) -> String {
    let (sender, mut receiver) = mpsc::channel(capacity);
    let watch = Stopwatch::start();
    let consumer = tokio::spawn(async move {
        let mut sum = 0;
        while let Some(item) = receiver.recv().await {
            sum += item;
        }
        sum
    });
    tokio::spawn(async move {
        for i in 0..n {
            sender.send(i).await.expect("the receiver lives");
        }
    });
    let sum: usize = consumer.await.expect("consumer ends");
    if sum != n * (n - 1) / 2 {
        return "error items were lost".to_string();
    }
    watch.per_operation(n)
}

/// tokio has no rendezvous. What comes nearest is a channel of one whose sender waits for its slot
/// to be free again: the send before it has been received.
async fn rendezvous(n: usize) -> String {
    channel(1, n).await
}

fn on_one_thread(measure: impl Future<Output = String> + Send + 'static) -> String {
    let runtime = Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async { tokio::spawn(measure).await.expect("measure ends") })
}

fn on_two_threads(measure: impl Future<Output = String> + Send + 'static) -> String {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("runtime");
    runtime.block_on(async { tokio::spawn(measure).await.expect("measure ends") })
}

fn info() -> String {
    format!(
        "tokio {}, current_thread, multi_thread with 2 workers for two loops; {}",
        env!("BENCH_TOKIO"),
        env!("BENCH_RUSTC")
    )
}

fn answer(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["info"] => info(),
        ["run", name, count] => match (name, count.parse::<usize>()) {
            (_, Err(_)) | (_, Ok(0)) => "error n is a positive number".to_string(),
            ("lock_uncontended", Ok(n)) => on_one_thread(lock_uncontended(n)),
            ("contend_one_loop", Ok(n)) => on_one_thread(contend(n)),
            ("contend_two_loops", Ok(n)) => on_two_threads(contend(n)),
            ("channel_one_loop", Ok(n)) => on_one_thread(channel(CAPACITY, n)),
            ("channel_two_loops", Ok(n)) => on_two_threads(channel(CAPACITY, n)),
            ("rendezvous_one_loop", Ok(n)) => on_one_thread(rendezvous(n)),
            ("rendezvous_two_loops", Ok(n)) => on_two_threads(rendezvous(n)),
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
