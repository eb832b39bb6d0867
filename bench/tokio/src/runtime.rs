// SPDX-License-Identifier: MIT
//! tokio in suite runtime: `tokio_bench_runtime` speaks the line protocol of
//! `bench/harness/contestant.h`; `tokio_bench_runtime --echo` is an echo server.
//!
//! Runtimes have all their drivers, as `#[tokio::main]` makes them. Timers are measured on the
//! current-thread runtime, where their lock is free. As in suite core the measuring parent is a
//! spawned task, and handles are kept in a `Vec`.

mod cores;
mod meter;
mod sleeper;

use meter::Stopwatch;
use std::future::{poll_fn, Future};
use std::io::{self, BufRead, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::{sleep_until, Instant, Sleep};

// The same in every contestant.
const BATCH: usize = 1000;
const WARM_UP_ROUNDS: usize = 1000;
const OUTSTANDING: usize = 1_000_000;
const FAR: Duration = Duration::from_secs(3600);
const FAR_SPREAD: Duration = Duration::from_secs(3600);
const ARMING: Duration = Duration::from_millis(1500);
const ARMING_MAX: Duration = Duration::from_secs(12);
const WINDOW: Duration = Duration::from_millis(50);
const ECHO_BUFFER_BYTES: usize = 4096;

/// As in `bench/runtime/timers.h`.
fn spread(i: usize, span: Duration) -> Duration {
    let mut z = (i as u64 + 1).wrapping_mul(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^= z >> 31;
    Duration::from_nanos(z % span.as_nanos() as u64)
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("runtime")
}

/// One side of the ping-pong: a runtime of its own on a core of its own. What keeps it busy is a
/// task that yields.
struct Side {
    bell: Notify,
    over: AtomicBool,
}

async fn keep_busy(side: Arc<Side>) {
    while !side.over.load(Relaxed) {
        tokio::task::yield_now().await;
    }
}

fn pingpong(n: usize, busy: bool) -> Result<String, String> {
    let (first, last) = cores::two_cores()?;
    let rounds = WARM_UP_ROUNDS + n;
    let side = || Arc::new(Side { bell: Notify::new(), over: AtomicBool::new(false) });
    let (near, far) = (side(), side());
    let on = |core: usize, own: Arc<Side>, body: Pin<Box<dyn Future<Output = String> + Send>>| {
        thread::spawn(move || {
            cores::pin_this_thread(core);
            current_thread().block_on(async {
                if busy {
                    tokio::spawn(keep_busy(own.clone()));
                }
                let answer = tokio::spawn(body).await.expect("side ends");
                own.over.store(true, Relaxed);
                answer
            })
        })
    };
    let (ring, wait) = (far.clone(), near.clone());
    let ping = async move {
        let mut watch = Stopwatch::start();
        for round in 0..rounds {
            if round == WARM_UP_ROUNDS {
                watch = Stopwatch::start();
            }
            ring.bell.notify_one();
            wait.bell.notified().await;
        }
        watch.per_operation(n)
    };
    let (ring, wait) = (near.clone(), far.clone());
    let pong = async move {
        for _ in 0..rounds {
            wait.bell.notified().await;
            ring.bell.notify_one();
        }
        String::new()
    };
    let far_thread = on(last, far, Box::pin(pong));
    let near_thread = on(first, near, Box::pin(ping));
    far_thread.join().expect("far side ends");
    Ok(near_thread.join().expect("near side ends"))
}

async fn spawn_join(n: usize) -> String {
    let batches = (n + BATCH - 1) / BATCH;
    let mut handles = Vec::with_capacity(BATCH);
    let watch = Stopwatch::start();
    for _ in 0..batches {
        for _ in 0..BATCH {
            handles.push(tokio::spawn(sleeper::nothing()));
        }
        for handle in handles.drain(..) {
            handle.await.expect("child ends");
        }
    }
    watch.per_operation(batches * BATCH)
}

fn spawn_join_mt(n: usize) -> String {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("runtime");
    runtime.block_on(async { tokio::spawn(spawn_join(n)).await.expect("measure ends") })
}

/// The first poll arms it.
async fn arm(mut sleep: Pin<&mut Sleep>) {
    poll_fn(|context| {
        assert!(sleep.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await
}

async fn timer_arm_cancel(n: usize) -> String {
    let far = Instant::now() + FAR;
    let mut outstanding = Vec::with_capacity(OUTSTANDING);
    for i in 0..OUTSTANDING {
        let mut sleep = Box::pin(sleep_until(far + spread(i, FAR_SPREAD)));
        arm(sleep.as_mut()).await;
        outstanding.push(sleep);
    }
    let watch = Stopwatch::start();
    for pair in 0..n {
        let sleep = tokio::time::sleep(FAR + spread(pair, FAR_SPREAD));
        tokio::pin!(sleep);
        arm(sleep.as_mut()).await;
    }
    watch.per_operation(n)
}

/// What a program writes: a deadline over something that is not ready at once.
async fn timeout_pending(n: usize) -> String {
    let watch = Stopwatch::start();
    for _ in 0..n {
        tokio::time::timeout(FAR, tokio::task::yield_now()).await.expect("in time");
    }
    watch.per_operation(n)
}

async fn all_asleep(n: usize) {
    while sleeper::ASLEEP.load(Relaxed) < n {
        tokio::task::yield_now().await;
    }
}

/// None, if the first was due before the last was asleep.
async fn fire_all_after(arming: Duration, n: usize) -> Option<String> {
    sleeper::ASLEEP.store(0, Relaxed);
    let first_due = Instant::now() + arming;
    let start = |i| tokio::spawn(sleeper::sleeper(first_due + spread(i, WINDOW)));
    let handles: Vec<_> = (0..n).map(start).collect();
    all_asleep(n).await;
    let late = Instant::now() > first_due;
    let watch = Stopwatch::start_wall_at(first_due.into_std());
    for handle in handles {
        handle.await.expect("sleeper ends");
    }
    (!late).then(|| watch.per_operation(n))
}

/// On a busy machine tasks take longer to fall asleep.
async fn timer_fire(n: usize) -> String {
    let mut arming = ARMING;
    while arming <= ARMING_MAX {
        if let Some(answer) = fire_all_after(arming, n).await {
            return answer;
        }
        arming *= 2;
    }
    "error the first was due before the last was asleep".to_string()
}

async fn cancel_sleeping(n: usize) -> String {
    sleeper::ASLEEP.store(0, Relaxed);
    let far = Instant::now() + FAR;
    let start = |i| tokio::spawn(sleeper::sleeper(far + spread(i, FAR_SPREAD)));
    let handles: Vec<_> = (0..n).map(start).collect();
    all_asleep(n).await;
    let watch = Stopwatch::start();
    for handle in &handles {
        handle.abort();
    }
    for handle in handles {
        assert!(handle.await.expect_err("aborted").is_cancelled());
    }
    watch.per_operation(n)
}

/// A fresh runtime for every sample; its tasks end with it.
fn on_one_thread(measure: impl Future<Output = String> + Send + 'static) -> String {
    current_thread().block_on(async { tokio::spawn(measure).await.expect("measure ends") })
}

async fn echo(mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = [0u8; ECHO_BUFFER_BYTES];
    loop {
        let got = socket.read(&mut buffer).await?;
        if got == 0 {
            return Ok(());
        }
        socket.write_all(&buffer[..got]).await?;
    }
}

async fn accept_all() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(echo(socket));
    }
}

fn info() -> String {
    format!(
        "tokio {}, current_thread, multi_thread with 2 workers for spawn_join_mt; {}",
        env!("BENCH_TOKIO"),
        env!("BENCH_RUSTC")
    )
}

fn echo_info() -> String {
    format!("tokio {}, current_thread runtime; {}", env!("BENCH_TOKIO"), env!("BENCH_RUSTC"))
}

fn answer(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let or_error = |result: Result<String, String>| result.unwrap_or_else(|e| format!("error {e}"));
    match words[..] {
        ["info"] => info(),
        ["run", name, count] => match (name, count.parse::<usize>()) {
            (_, Err(_)) | (_, Ok(0)) => "error n is a positive number".to_string(),
            ("pingpong_busy", Ok(n)) => or_error(pingpong(n, true)),
            ("pingpong_sleeping", Ok(n)) => or_error(pingpong(n, false)),
            ("spawn_join_mt", Ok(n)) => spawn_join_mt(n),
            ("timer_arm_cancel", Ok(n)) => on_one_thread(timer_arm_cancel(n)),
            ("timeout_pending", Ok(n)) => on_one_thread(timeout_pending(n)),
            ("timer_fire", Ok(n)) => on_one_thread(timer_fire(n)),
            ("cancel_sleeping", Ok(n)) => on_one_thread(cancel_sleeping(n)),
            _ => format!("error no measure named {name}"),
        },
        _ => "error expected: info | run <measure> <n>".to_string(),
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--echo"] => return current_thread().block_on(accept_all()),
        ["--echo", "--info"] => {
            println!("{}", echo_info());
            return Ok(());
        }
        _ => {}
    }
    let mut out = io::stdout();
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?))?;
        out.flush()?;
    }
    Ok(())
}
