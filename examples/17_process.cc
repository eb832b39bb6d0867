// SPDX-License-Identifier: MIT
// Child processes: their output, their pipes, their end; and what becomes of one whose time is up.
//
// Run: build/release/examples/17_process
// See: what sort and a shell have to say, and a child that is ended with the task that ran it.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <span>
#include <string>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [run]
Task<> collect() {
  ProcessOptions sort("sort");
  RunProcessOptions how;
  how.input = "weft\nshuttle\nwarp\n";
  Finished done = or_throw(co_await run_process(std::move(sort), std::move(how)));
  std::printf("%s%s\n", done.out.c_str(), done.status.text().c_str());
}
// [/run]

// [pipes]
Task<> talk() {
  ProcessOptions options("sh", {"-c", "read name; echo \"hello, $name\"; exit 3"});
  options.in = Redirect::pipe();
  options.out = Redirect::pipe();
  Process shell = or_throw(Process::spawn(std::move(options)));
  std::string name = "weaver\n", answer(64, '\0');
  or_throw(co_await shell.in.write(std::as_bytes(std::span(name))));
  answer.resize(or_throw(co_await shell.out.read(std::as_writable_bytes(std::span(answer)))));
  ExitStatus status = or_throw(co_await shell.wait());
  std::printf("%s%s\n", answer.c_str(), status.text().c_str());
}
// [/pipes]

Task<> async_main() {
  co_await collect();
  co_await talk();
  // [timeout]
  ProcessOptions sleeping("sleep", {"1000"});
  auto ended = co_await timeout(5ms, run_process(std::move(sleeping)));
  std::printf("%s\n", ended ? "it slept well" : "its time was up: it is ended, and collected");
  // [/timeout]
}

int main() {
  EventLoop loop;
  run(loop, async_main());
}
