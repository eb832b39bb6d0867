// SPDX-License-Identifier: MIT
//! hyper in suite http, on tokio's current-thread runtime. Its defaults, but that the answers to
//! pipelined requests leave together, which makes it several times as fast there.

use hyper::header::{HeaderValue, CONTENT_TYPE, SERVER};
use hyper::server::conn::Http;
use hyper::service::service_fn;
use hyper::{Body, Request, Response};
use std::convert::Infallible;
use std::env;
use std::io;
use tokio::net::TcpListener;

async fn plaintext(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    let mut response = Response::new(Body::from("Hello, World!"));
    response.headers_mut().insert(SERVER, HeaderValue::from_static("hyper"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    let mut http = Http::new();
    http.http1_only(true).pipeline_flush(true);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        // A connection's error is its end, and nobody else's.
        tokio::task::spawn_local(http.serve_connection(socket, service_fn(plaintext)));
    }
}

fn main() -> io::Result<()> {
    if env::args().last().as_deref() == Some("--info") {
        println!(
            "hyper {} on tokio {}, current-thread; {}",
            env!("BENCH_HYPER"),
            env!("BENCH_TOKIO"),
            env!("BENCH_RUSTC")
        );
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, serve())
}
