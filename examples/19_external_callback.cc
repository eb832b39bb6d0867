// SPDX-License-Identifier: MIT
// A callback on somebody else's thread becomes a task.
//
// Run: build/release/examples/19_external_callback
// See: events that a thread of another library reports, each handled by a task of the context.
#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

struct ExternalEvent {
  int number;
};

// The other library: a thread of its own, which calls back.
class Device {
 public:
  explicit Device(std::function<void(ExternalEvent)> on_ready)
      : thread_([on_ready = std::move(on_ready)] {
          for (int i = 1; i <= 3; ++i) on_ready({i});
        }) {}

 private:
  std::jthread thread_;
};

// [bridge]
Task<> handle(IOContext& ctx, ExternalEvent event, std::vector<int>& handled, std::mutex& mutex) {
  co_await ctx.sleep_for(0ms);  // from here on like any task: it may wait, and be cancelled
  std::size_t count;
  {
    std::lock_guard lock(mutex);
    handled.push_back(event.number);
    count = handled.size();
  }
  if (count == 3) ctx.stop();
}

int main() {
  IOContext ctx{{.workers = 2}};
  std::mutex mutex;
  std::vector<int> handled;
  // On the device's thread nothing happens but that a task is made and given away.
  auto on_external_ready = [&](ExternalEvent event) {
    ctx.schedule(handle(ctx, event, handled, mutex));
  };
  Device device(on_external_ready);
  ctx.run();
  // [/bridge]
  int sum = 0;
  for (int number : handled) sum += number;
  std::printf("%zu events handled, their sum is %d\n", handled.size(), sum);
}
