// SPDX-License-Identifier: MIT
#pragma once
// What every event loop of another library must do as a home of weft: one suite that each passes.
//
//     struct AsioHome {
//       auto& loop();                                 // with EventLoopTraits
//       void call(std::function<void()> fn);          // the library's own "soon", from its thread
//       void stop();                                  // as a stranger would, from a callback
//     };
//     INSTANTIATE_TYPED_TEST_SUITE_P(Asio, BridgeTest, AsioHome);
//
// Real libraries have real clocks: these tests sleep, for milliseconds.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "support/loop_fixture.h"

namespace weft::test {

using namespace std::chrono_literals;

template <class Home>
class BridgeTest : public ::testing::Test {
 protected:
  template <class A>
  decltype(auto) run(A&& awaitable) {
    return weft::run(home.loop(), std::forward<A>(awaitable));
  }
  Home home;
};
TYPED_TEST_SUITE_P(BridgeTest);

inline Task<void> long_sleep() { co_await sleep_for(1h); }

TYPED_TEST_P(BridgeTest, RunsTasksToTheirEnd) {
  EXPECT_EQ(this->run(returns(3)), 3) << "without waiting";
  auto main = []() -> Task<int> {
    co_await all_of(yields(3), sleep_for(1ms));
    co_return 5;
  };
  EXPECT_EQ(this->run(main()), 5);
  EXPECT_THROW(this->run(throws_after(2, "main")), std::runtime_error);
  EXPECT_EQ(this->run(main()), 5) << "again";
}

// Not in which order: after a stall all are due, and GLib then calls them in the order of their start.
TYPED_TEST_P(BridgeTest, SleepsLongEnough) {
  int woken = 0;
  auto sleeper = [&](int ms) -> Task<void> {
    auto begin = std::chrono::steady_clock::now();
    co_await sleep_for(std::chrono::milliseconds(ms));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(ms));
    ++woken;
  };
  auto main = [&]() -> Task<void> { co_await all_of(sleeper(12), sleeper(1), sleeper(6)); };
  this->run(main());
  EXPECT_EQ(woken, 3);
}

// A loop that turns all the time looks at its clock all the time, however coarse that is.
TYPED_TEST_P(BridgeTest, ABusyLoopWakesNobodyEarly) {
  int early = 0;
  auto sleeper = [&]() -> Task<void> {
    for (int i = 0; i < 20; ++i) {
      auto time = std::chrono::microseconds(350 + 130 * i);
      // Late in a millisecond, where rounding down would tell.
      while (std::chrono::steady_clock::now().time_since_epoch() % 1ms < 750us) co_await yield();
      auto begin = std::chrono::steady_clock::now();
      co_await sleep_for(time);
      early += std::chrono::steady_clock::now() - begin < time;
    }
  };
  auto busy = []() -> Task<void> {
    for (;;) co_await yield();
  };
  auto main = [&]() -> Task<void> { co_await with(busy(), sleeper()); };
  this->run(main());
  EXPECT_EQ(early, 0);
}

TYPED_TEST_P(BridgeTest, TimesOutAndTakesTimersBack) {
  auto main = []() -> Task<void> {
    auto late = co_await timeout(2ms, suspend_forever());
    EXPECT_FALSE(late.has_value());
    for (int i = 0; i < 100; ++i) {
      auto quick = co_await timeout(1h, yields(1));
      EXPECT_TRUE(quick.has_value());
    }
    auto [slow, soon] = co_await any_of(sleep_for(1h), sleep_for(1ms));
    EXPECT_TRUE(!slow && soon);
  };
  this->run(main());
}

TYPED_TEST_P(BridgeTest, ATaskThatYieldsLetsTheLibraryRun) {
  bool called = false;
  auto main = [&]() -> Task<void> {
    this->home.call([&] { called = true; });
    while (!called) co_await yield();
  };
  this->run(main());
  EXPECT_TRUE(called);
}

TYPED_TEST_P(BridgeTest, ACallbackOfTheLibraryStartsResumesAndCancels) {
  Events events;
  auto main = [&]() -> Task<void> {
    StartedTask<void> victim = parked().start_in_current_scope();
    this->home.call([&] { victim.cancel(); });
    auto init = [&](auto done) {
      this->home.call([&events, done] {
        done();
        events.push_back("callback ends");
      });
    };
    co_await until_callback(init);
    events.push_back("resumed");
    Outcome<void> how = co_await victim.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  this->run(main());
  EXPECT_EQ(events, (Events{"callback ends", "resumed"}));
}

TYPED_TEST_P(BridgeTest, AnotherThreadResumesAndCancels) {
  auto main = []() -> Task<int> {
    int sum = 0;
    for (int i = 0; i < 20; ++i) {
      std::jthread other;
      auto init = [&](auto done) { other = std::jthread([done] { done(1); }); };
      sum += co_await until_callback<void(int)>(init);
    }
    for (int i = 0; i < 20; ++i) {
      StartedTask<void> s = parked().start_in_current_scope();
      std::jthread canceller([handle = s.cancel_handle()] { handle.cancel(); });
      Outcome<void> how = co_await s.outcome();
      sum += how.is_cancelled();
    }
    StartedTask<void> sleeping = long_sleep().start_in_current_scope();
    std::jthread canceller([handle = sleeping.cancel_handle()] { handle.cancel(); });
    Outcome<void> how = co_await sleeping.outcome();
    co_return sum + how.is_cancelled();
  };
  EXPECT_EQ(this->run(main()), 41);
}

TYPED_TEST_P(BridgeTest, GuestsComeFromAnotherLoopAndGoThere) {
  weft::testing::LoopThread other;
  auto main = [&]() -> Task<int> {
    Executor& here = Executor::current("the test");
    auto back = [&]() -> Task<int> {
      co_await resume_on(here);
      EXPECT_TRUE(here.is_current());
      co_await sleep_for(1ms);
      co_return 2;
    };
    int value = co_await on(other.executor(), back());
    auto there = [&]() -> Task<int> {  // and comes here for each step
      int sum = 0;
      for (int i = 0; i < 50; ++i) sum += co_await on(here, returns(1));
      co_return sum;
    };
    value += co_await on(other.executor(), there());
    co_return value;
  };
  EXPECT_EQ(this->run(main()), 52);
}

TYPED_TEST_P(BridgeTest, TasksEndWhenTheLibraryStopsTheLoop) {
  Events events;
  // Its end takes the loop's own timers.
  auto slow = [&]() -> Task<void> {
    Marker marker(events, "slow");
    co_await until_cancelled_and(sleep_for(2ms));
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(parked_with(events, "parked"));
    n.start(slow());
    co_await yields(2);
    this->home.call([&] { this->home.stop(); });
    co_return join;
  };
  auto main = [&]() -> Task<void> { co_await with_nursery(body); };
  EXPECT_THROW(this->run(main()), UsageError);
  EXPECT_EQ(events, (Events{"~parked", "~slow"}));
  EXPECT_EQ(this->run(returns(1)), 1) << "and the loop can be used again";
}

TYPED_TEST_P(BridgeTest, StopOfTheExecutorFromAnotherThreadCancels) {
  Events events;
  std::jthread stopper;
  auto main = [&]() -> Task<void> {
    auto* loop = dynamic_cast<Loop*>(Executor::current_or_null());
    stopper = std::jthread([loop] { loop->stop(); });
    Marker marker(events, "main");
    co_await suspend_forever();
  };
  EXPECT_THROW(this->run(main()), TaskCancelled);
  EXPECT_EQ(events, (Events{"~main"}));
}

TYPED_TEST_P(BridgeTest, ARunInsideARunIsRefused) {
  auto main = [&]() -> Task<void> {
    co_await yield();
    EXPECT_THROW(this->run(returns(1)), UsageError);
  };
  this->run(main());
}

REGISTER_TYPED_TEST_SUITE_P(BridgeTest, RunsTasksToTheirEnd, SleepsLongEnough,
                            ABusyLoopWakesNobodyEarly, TimesOutAndTakesTimersBack,
                            ATaskThatYieldsLetsTheLibraryRun,
                            ACallbackOfTheLibraryStartsResumesAndCancels,
                            AnotherThreadResumesAndCancels, GuestsComeFromAnotherLoopAndGoThere,
                            TasksEndWhenTheLibraryStopsTheLoop,
                            StopOfTheExecutorFromAnotherThreadCancels, ARunInsideARunIsRefused);

}  // namespace weft::test
