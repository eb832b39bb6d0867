// SPDX-License-Identifier: MIT
// Hands the compiler's and tokio's versions to the program, which prints them.
use std::{env, fs, process::Command};

fn main() {
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    println!("cargo:rustc-env=BENCH_RUSTC={}", String::from_utf8_lossy(&output.stdout).trim());

    // Cargo resolves before it builds, so the lock file names the tokio that is linked.
    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock");
    let tokio =
        lock.split("name = \"tokio\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    println!("cargo:rustc-env=BENCH_TOKIO={}", tokio.unwrap_or("unknown"));
    println!("cargo:rerun-if-changed=Cargo.lock");
}
