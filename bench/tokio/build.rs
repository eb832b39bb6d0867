// SPDX-License-Identifier: MIT
// Hands the compiler's, tokio's and hyper's versions to the program, which prints them.
use std::{env, fs, process::Command};

fn main() {
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    println!("cargo:rustc-env=BENCH_RUSTC={}", String::from_utf8_lossy(&output.stdout).trim());

    // Cargo resolves before it builds, so the lock file names what is linked.
    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock");
    for package in ["tokio", "hyper"] {
        let version = lock
            .split(&format!("name = \"{package}\"\nversion = \""))
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap_or("unknown");
        println!("cargo:rustc-env=BENCH_{}={version}", package.to_uppercase());
    }
    println!("cargo:rerun-if-changed=Cargo.lock");
}
