// SPDX-License-Identifier: MIT
// What EventLoopTraits may have beyond the six functions: sessions, take_back, restart.
#include <functional>
#include <stdexcept>

#include "support/loop_fixture.h"
#include "support/toy_loop.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

// With all that the traits may have.
struct SeatedLoop : FullLoop {
  int sessions = 0;
  int restarts = 0;
};

}  // namespace

template <>
struct weft::EventLoopTraits<SeatedLoop> {
  using Base = EventLoopTraits<test::FullLoop>;
  using Timers = decltype(test::FullLoop::timers);
  class Session {
   public:
    explicit Session(SeatedLoop& of) : loop(of) { ++loop.sessions; }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    // Calls that are left over find nobody.
    ~Session() {
      --loop.sessions;
      while (!loop.queue.empty()) {
        loop.queue.front()();
        loop.queue.pop_front();
      }
    }
    SeatedLoop& loop;
  };
  static void run(Session& in) { Base::run(in.loop); }
  static void stop(Session& in) { Base::stop(in.loop); }
  static bool is_running(SeatedLoop& loop) noexcept { return loop.running; }
  static EventLoopID event_loop_id(SeatedLoop& loop) { return EventLoopID(&loop); }
  static void post(Session& in, void (*fn)(void*), void* context) {
    Base::post(in.loop, fn, context);
  }
  static void* call_at(Session& in, std::chrono::steady_clock::time_point when, void (*fn)(void*),
                       void* context) {
    return new Timers::iterator(in.loop.timers.emplace(when, [=] { fn(context); }));
  }
  static void take_back(Session& in, void* call) noexcept {
    auto* at = static_cast<Timers::iterator*>(call);
    in.loop.timers.erase(*at);
    delete at;
  }
  static void restart(Session& in) { ++in.loop.restarts; }
};

namespace {

TEST(EventLoopSession, ASessionLivesAsLongAsTheRun) {
  SeatedLoop loop;
  auto main = [&]() -> Task<int> {
    co_await yield();
    co_return loop.sessions;
  };
  EXPECT_EQ(run(loop, main()), 1);
  EXPECT_EQ(loop.sessions, 0);
}

TEST(EventLoopSession, WithTakeBackADisarmedTimerLeavesTheLoop) {
  SeatedLoop loop;
  auto main = [&]() -> Task<void> {
    static_cast<void>(co_await timeout(1h, yields(3)));
    EXPECT_EQ(loop.timers.size(), 0u);
  };
  run(loop, main());
}

// A wait that is over only when the loop says so.
Task<void> slow_to_cancel(SeatedLoop& loop, Events& events) {
  Marker marker(events, "slow");
  std::function<void()> called;
  auto init = [&](auto done) { called = done; };
  auto cancel = [&] {
    loop.post(called);
    return false;
  };
  co_await until_callback(init, cancel);
  events.push_back("called back");
  co_await yield();
}

TEST(EventLoopSession, WithRestartTasksMayWaitForTheLoopInTheirEnd) {
  SeatedLoop loop;
  Events events;
  loop.post([&] { loop.stopping = true; });
  EXPECT_THROW(run(loop, slow_to_cancel(loop, events)), UsageError);
  EXPECT_EQ(events, (Events{"called back", "~slow"}));
  EXPECT_EQ(loop.restarts, 1);
}

TEST(EventLoopSession, WhatACallbackThrowsIsRethrownWhenTheTasksHaveEnded) {
  SeatedLoop loop;
  Events events;
  loop.post([] { throw std::runtime_error("callback"); });
  EXPECT_THROW(run(loop, slow_to_cancel(loop, events)), std::runtime_error);
  EXPECT_EQ(events, (Events{"called back", "~slow"}));
  EXPECT_EQ(run(loop, returns(1)), 1) << "and it can be used again";

  FullLoop without;
  without.post([] { throw std::runtime_error("callback"); });
  EXPECT_THROW(run(without, parked_with(events, "parked")), std::runtime_error);
  EXPECT_EQ(events.back(), "~parked");
}

}  // namespace
