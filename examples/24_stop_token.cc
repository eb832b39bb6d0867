// SPDX-License-Identifier: MIT
// std::stop_token, both ways: a thread that is stopped with a task, a task that is stopped by a
// thread.
//
// Run: build/release/examples/24_stop_token
// See: a std::jthread that ends because a timeout cancelled the task which waits for it; and a task
//      that ends because someone else's std::stop_source says so.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <thread>

#include "weft/testing/thread_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// Somebody's code: it knows the standard library, and not weft.
void count_until(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!never.wait_for(lock, stop, 1h, [&] { return stop.stop_requested(); })) {
  }
}

// [down]
Task<> on_a_thread() {
  Scope& scope = co_await current_scope();
  TaskStopSource stop(scope);
  std::jthread thread;
  auto start = [&](auto done) {
    thread = std::jthread([token = stop.token(), done] {
      count_until(token);
      done();
    });
  };
  co_await until_callback(start);  // a cancelled task stops the token; the thread then calls back
  std::printf("the thread has ended\n");
}
// [/down]

// [up]
Task<> served(std::stop_token stop) {
  auto service = []() -> Task<> {
    while (true) co_await sleep_for(1ms);
  };
  auto ended = co_await with_stop_token(stop, service);
  std::printf("the service was %s\n", ended ? "done" : "stopped");
}
// [/up]

Task<> async_main() {
  auto late = co_await timeout(5ms, on_a_thread());
  std::printf("%s\n", late ? "and the task has its result" : "a timeout");

  std::stop_source source;
  std::jthread owner([&] {
    std::this_thread::sleep_for(5ms);
    source.request_stop();
  });
  co_await served(source.get_token());
}

int main() {
  testing::ThreadLoop loop;
  run(loop, async_main());
}
