// SPDX-License-Identifier: MIT
// Cancellation is a third way to end: no value, no exception. Destructors run, innermost first.
//
// Run: build/release/examples/03_cancellation
// See: destructors in order and no handler in between; the reason in the outcome; three ways to
//      finish something although one is cancelled.
#include <chrono>
#include <cstdio>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

struct Noisy {
  explicit Noisy(const char* what) : name(what) {}
  ~Noisy() { std::printf("  ~%s\n", name); }
  const char* name;
};

// [chain]
Task<> inner() {
  Noisy local("inner");
  try {
    co_await suspend_forever();
  } catch (...) {
    std::printf("  never printed: cancellation is no exception\n");
  }
}
Task<> middle() {
  Noisy local("middle");
  co_await inner();
}
Task<> outer() {
  Noisy local("outer");
  co_await middle();
  std::printf("  never printed either\n");
}
// [/chain]

// [shields]
Task<> flush() {
  co_await sleep_for(5ms);
  std::printf("  flushed\n");
}
Task<> guarded() {
  auto guard = co_await ignore_cancellation();  // for this frame and all that it awaits
  co_await sleep_for(5ms);
  std::printf("  guarded: done, although cancelled\n");
}
Task<> shielded() {
  Noisy local("shielded");
  co_await noncancellable(flush());  // for one awaitable
  co_await finish_if_cancelled();
  std::printf("  never printed: the request was only put off\n");
}
Task<> says_goodbye() {
  Noisy local("says_goodbye");
  co_await until_cancelled_and(flush());  // waits to be cancelled, then does this
}
// [/shields]

// [reasons]
constexpr CancelReason kClientLeft{"the client closed the connection"};

Task<> cancel_and_report(const char* name, Task<> task) {
  std::printf("%s\n", name);
  Scope& scope = co_await current_scope();
  StartedTask<> started = std::move(task).start(scope);
  co_await sleep_for(1ms);  // it runs up to its first wait
  started.cancel(kClientLeft);
  Outcome<void> how = co_await started.outcome();
  std::printf("  %s\n", how.is_cancelled() ? how.reason().what : "ended with a value");
}
// [/reasons]

Task<> async_main() {
  co_await cancel_and_report("a chain of awaits", outer());
  co_await cancel_and_report("ignore_cancellation()", guarded());
  co_await cancel_and_report("noncancellable()", shielded());
  co_await cancel_and_report("until_cancelled_and()", says_goodbye());
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
