// SPDX-License-Identifier: MIT
#pragma once
// Event loops of nobody in particular, for tests of how weft runs on loops that are not its own.
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "weft/core/event_loop.h"

namespace weft::test {

// Somebody else's event loop: a queue of functions. Idle time is not waited for: `on_idle` says what
// happens then.
struct ToyLoop {
  std::deque<std::function<void()>> queue;
  std::function<void()> on_idle;
  bool stopping = false;
  bool running = false;

  void exec() {
    struct Ended {
      ~Ended() { loop->running = false; }
      ToyLoop* loop;
    } ended{this};
    running = true;
    stopping = false;
    while (!stopping) {
      if (queue.empty()) {
        if (!on_idle) break;
        on_idle();
        continue;
      }
      auto fn = std::move(queue.front());
      queue.pop_front();
      fn();
    }
  }
};
// The same with post() from any thread and call_at().
struct FullLoop : ToyLoop {
  std::mutex mutex;
  std::deque<std::function<void()>> posted;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> timers;

  // What weft asked for and did not get: it does nothing any more, but it must come.
  ~FullLoop() {
    for (auto& fn : queue) fn();
    for (auto& fn : posted) fn();
  }
  void post(std::function<void()> fn) {
    std::lock_guard lock(mutex);
    posted.push_back(std::move(fn));
  }
  void idle() {
    {
      std::lock_guard lock(mutex);
      while (!posted.empty()) {
        queue.push_back(std::move(posted.front()));
        posted.pop_front();
      }
    }
    if (!queue.empty() || timers.empty()) {
      std::this_thread::yield();
      return;
    }
    auto next = timers.begin();
    if (next->first > std::chrono::steady_clock::now()) return;
    queue.push_back(std::move(next->second));
    timers.erase(next);
  }
};

}  // namespace weft::test

template <>
struct weft::EventLoopTraits<weft::test::ToyLoop> {
  static void run(test::ToyLoop& loop) { loop.exec(); }
  static void stop(test::ToyLoop& loop) { loop.stopping = true; }
  static bool is_running(test::ToyLoop&) noexcept { return false; }
  static EventLoopID event_loop_id(test::ToyLoop& loop) { return EventLoopID(&loop); }
};
template <>
struct weft::EventLoopTraits<weft::test::FullLoop> {
  static void run(test::FullLoop& loop) {
    loop.on_idle = [&] { loop.idle(); };
    loop.exec();
  }
  static void stop(test::FullLoop& loop) { loop.stopping = true; }
  static bool is_running(test::FullLoop& loop) noexcept { return loop.running; }
  static EventLoopID event_loop_id(test::FullLoop& loop) { return EventLoopID(&loop); }
  static void post(test::FullLoop& loop, void (*fn)(void*), void* context) {
    loop.post([=] { fn(context); });
  }
  static void call_at(test::FullLoop& loop, std::chrono::steady_clock::time_point when,
                      void (*fn)(void*), void* context) {
    loop.timers.emplace(when, [=] { fn(context); });
  }
};
