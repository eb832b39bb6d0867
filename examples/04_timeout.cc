// SPDX-License-Identifier: MIT
// timeout(): a value, or TimedOut. Timed out and cancelled are different things.
//
// Run: build/release/examples/04_timeout
// See: in time; too late; too late but done all the same, so that nothing is lost; and a caller that
//      was cancelled while it waited, which is no timeout. Time is virtual.
#include <chrono>
#include <cstdio>
#include <expected>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

Task<int> answer_after(std::chrono::milliseconds delay) {
  co_await sleep_for(delay);
  co_return 42;
}

void report(const char* what, const std::expected<int, TimedOut>& result) {
  long long at = now().time_since_epoch() / 1ms;
  if (result) {
    std::printf("%4lld ms  %s: %d\n", at, what, *result);
  } else {
    std::printf("%4lld ms  %s: timed out\n", at, what);
  }
}

Task<> waits_long() {
  std::expected<void, TimedOut> result = co_await timeout(1h, suspend_forever());
  std::printf("never printed: %d\n", result.has_value());
}

Task<> async_main() {
  // [timeout]
  std::expected<int, TimedOut> quick = co_await timeout(20ms, answer_after(10ms));
  report("quick", quick);

  auto slow = co_await timeout(20ms, answer_after(1s));
  report("slow", slow);

  // Asked to stop after 20 ms, it goes on, and its value is delivered.
  auto stubborn = co_await timeout(20ms, noncancellable(answer_after(50ms)));
  report("stubborn", stubborn);

  // One deadline for several waits.
  TimePoint end = now() + 30ms;
  auto first = co_await deadline(end, answer_after(20ms));
  report("first", first);
  auto second = co_await deadline(end, answer_after(20ms));
  report("second", second);
  // [/timeout]

  Scope& scope = co_await current_scope();
  StartedTask<> waiting = waits_long().start(scope);
  co_await yield();
  waiting.cancel();
  Outcome<void> how = co_await waiting.outcome();
  std::printf("%4lld ms  cancelled, not timed out: %s\n",
              static_cast<long long>(now().time_since_epoch() / 1ms),
              how.is_cancelled() ? "yes" : "no");
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
