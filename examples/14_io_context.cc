// SPDX-License-Identifier: MIT
// An IOContext: event loops on many threads, and tasks that they share out among themselves.
//
// Run: build/release/examples/14_io_context
// See: children that any worker takes, joined as ever; a service that stop() ends.
#include <atomic>
#include <chrono>
#include <cstdio>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [nursery]
Task<> add(int n, std::atomic<int>& sum) {
  co_await yield();
  sum += n;  // an atomic: these run on several threads
}

Task<int> add_up() {
  std::atomic<int> sum = 0;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    for (int i = 1; i <= 100; ++i) n.schedule(add(i, sum));  // whichever worker has time
    co_return join;
  };
  co_await with_nursery(body);
  co_return sum;
}
// [/nursery]

// [stop]
Task<> serve() {
  struct Farewell {
    ~Farewell() { std::printf("the service has ended\n"); }
  } farewell;
  co_await suspend_forever();
}

Task<> stop_soon(IOContext& ctx) {
  co_await ctx.sleep_for(5ms);
  ctx.stop();  // or Ctrl-C: SIGINT and SIGTERM do the same
}
// [/stop]

int main() {
  IOContext ctx{{.workers = 4}};
  std::printf("the sum is %d\n", ctx.run(add_up()));

  ctx.schedule(serve());
  ctx.schedule(stop_soon(ctx));
  ctx.run();  // until stop(), and until everything has ended
  std::printf("run() has returned\n");
}
