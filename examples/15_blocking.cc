// SPDX-License-Identifier: MIT
// Functions that block or compute for long, kept off the loop.
//
// Run: build/release/examples/15_blocking
// See: a loop that goes on ticking while another thread works; work that hears of its cancellation.
#include <chrono>
#include <cstdio>
#include <thread>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

Task<> ticker(int& ticks) {
  for (;;) {
    co_await sleep_for(1ms);
    ++ticks;
  }
}

// [blocking]
Task<int> slow_answer() {
  co_return co_await blocking([] {
    std::this_thread::sleep_for(20ms);  // a library that knows no other way
    return 42;
  });
}
// [/blocking]

// [stop_token]
Task<long> count_until_told() {
  co_return co_await blocking([](StopToken stop) {
    long rounds = 0;
    while (!stop.stop_requested()) ++rounds;
    return rounds;
  });
}
// [/stop_token]

Task<> async_main() {
  int ticks = 0;
  auto [answer, ticked] = co_await any_of(slow_answer(), ticker(ticks));
  std::printf("the answer is %d, and the loop ticked meanwhile: %s\n", answer.value_or(0),
              ticks > 0 ? "yes" : "no");
  // The work is told when the time is up, and what it has then is delivered, not lost.
  auto rounds = co_await timeout(5ms, count_until_told());
  std::printf("it counted until it was told to stop: %s\n", rounds.value_or(0) > 0 ? "yes" : "no");
}

int main() {
  EventLoop loop;
  run(loop, async_main());
}
