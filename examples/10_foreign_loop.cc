// SPDX-License-Identifier: MIT
// weft on an event loop that is not its own: four functions make it run, two more make it a home.
//
// Run: build/release/examples/10_foreign_loop
// See: a task driven by the loop's callbacks; what it cannot do yet, said in words; and the same
//      loop with post and call_at, where tasks sleep and are resumed from another thread.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The other library's loop: functions, each with the time from which it may be called.
class TinyLoop {
 public:
  void at(Clock::time_point when, std::function<void()> fn) {
    std::lock_guard lock(mutex_);
    work_.emplace(when, std::move(fn));
    changed_.notify_one();
  }
  void soon(std::function<void()> fn) { at(Clock::now(), std::move(fn)); }
  void exec() {
    std::unique_lock lock(mutex_);
    for (running_ = true; running_;) {
      if (work_.empty()) {
        changed_.wait(lock);
      } else if (auto first = work_.begin(); first->first > Clock::now()) {
        changed_.wait_until(lock, first->first);
      } else {
        std::function<void()> fn = std::move(first->second);
        work_.erase(first);
        lock.unlock();
        fn();
        lock.lock();
      }
    }
  }
  void exit() { running_ = false; }  // from a callback
  bool is_running() const { return running_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> work_;
  bool running_ = false;
};

// [four]
template <>
struct weft::EventLoopTraits<TinyLoop> {
  static void run(TinyLoop& loop) { loop.exec(); }
  static void stop(TinyLoop& loop) { loop.exit(); }
  static bool is_running(TinyLoop& loop) noexcept { return loop.is_running(); }
  static EventLoopID event_loop_id(TinyLoop& loop) { return EventLoopID(&loop); }
};
// [/four]

struct FullLoop : TinyLoop {};
// [six]
template <>
struct weft::EventLoopTraits<FullLoop> : EventLoopTraits<TinyLoop> {
  static void post(FullLoop& loop, void (*fn)(void*), void* context) {
    loop.soon([=] { fn(context); });
  }
  static void call_at(FullLoop& loop, Clock::time_point when, void (*fn)(void*), void* context) {
    loop.at(when, [=] { fn(context); });
  }
};
// [/six]

Task<int> with_four(TinyLoop& loop) {
  auto start = [&](auto done) { loop.soon([done] { done(42); }); };
  int n = co_await until_callback<void(int)>(start);
  std::printf("four functions: the loop called back with %d\n", n);
  try {
    co_await sleep_for(1ms);
  } catch (const UsageError& error) {
    std::printf("four functions: %s\n", error.what());
  }
  co_return n;
}

Task<> with_six() {
  auto slow = co_await timeout(5ms, suspend_forever());
  std::printf("six functions: %s\n", slow ? "?" : "a timeout");
  std::jthread thread;
  auto start = [&](auto done) { thread = std::jthread([done] { done(); }); };
  co_await until_callback(start);
  std::printf("six functions: resumed from another thread\n");
}

int main() {
  TinyLoop tiny;
  int n = run(tiny, with_four(tiny));
  FullLoop full;
  run(full, with_six());
  return n == 42 ? 0 : 1;
}
