// SPDX-License-Identifier: MIT
#include "weft/sync/watch.h"

#include <memory>
#include <string>
#include <thread>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

bool is_big(const int& value) { return value >= 10; }
struct IsEven {
  bool operator()(int value) const { return value % 2 == 0; }
};

struct WatchTest : EachLoopTest {
  Watch<int> watch{1, "level"};
  Events events;

  Task<void> waits(std::string who) {
    auto seen = co_await watch.until_changed();
    events.push_back(who + " " + std::to_string(*seen));
  }
};

LOOP_TEST(WatchTest, GetSeesTheLatest) {
  auto root = [&]() -> Task<void> {
    auto first = watch.get();
    watch.set(2);
    auto add = [](int& value) { value += 5; };
    watch.modify(add);
    EXPECT_EQ(*first, 1);  // it does not change in the hand
    EXPECT_EQ(*watch.get(), 7);
    EXPECT_EQ(watch.get().version(), 3u);
    co_return;
  };
  run_on(loop, root());
}

LOOP_TEST(WatchTest, AChangeTellsEveryoneWhoWaits) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (const char* who : {"a", "b", "c"}) n.start(waits(who));
      co_await yields(2);
      watch.set(2);
      watch.set(3);
      events.push_back("set");  // never inside of set()
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"set", "a 3", "b 3", "c 3"}));
}

LOOP_TEST(WatchTest, AChangeBetweenTheLookAndTheWaitIsNotMissed) {
  auto root = [&]() -> Task<void> {
    auto seen = watch.get();
    watch.set(2);
    seen = co_await watch.until_changed(seen);  // would wait for ever
    EXPECT_EQ(*seen, 2);
    auto awaitable = watch.until_changed();
    watch.set(3);
    auto next = co_await std::move(awaitable);
    EXPECT_EQ(*next, 3);
  };
  run_on(loop, root());
}

// As if another thread came between the last look and the wait.
LOOP_TEST(WatchTest, NorIsOneThatComesWhileTheWaitBegins) {
  auto root = [&]() -> Task<void> {
    auto awaiter = watch.until_changed().operator co_await();
    EXPECT_FALSE(awaiter.await_ready());
    watch.set(2);
    EXPECT_FALSE(awaiter.await_suspend(weft::detail::Continuation()));
    EXPECT_EQ(*awaiter.await_resume(), 2);
    co_return;
  };
  run_on(loop, root());
}

// corral takes lambdas only.
LOOP_TEST(WatchTest, MatchesLambdasFunctionsAndObjects) {
  auto root = [&]() -> Task<void> {
    auto set_later = [&](int value) -> Task<void> {
      co_await yields(2);
      watch.set(3);
      co_await yields(2);
      watch.set(int(value));
    };
    StartedTask<void> a = set_later(12).start_in_current_scope();
    auto big = co_await watch.until_matches(is_big);
    EXPECT_EQ(*big, 12);
    auto at_once = co_await watch.until_matches(IsEven());
    EXPECT_EQ(*at_once, 12);
    int least = 20;
    auto matches = [&](int value) { return value >= least; };
    StartedTask<void> b = set_later(21).start_in_current_scope();
    auto bigger = co_await watch.until_matches(matches);
    EXPECT_EQ(*bigger, 21);
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
}

LOOP_TEST(WatchTest, ACancelledWaitLeavesNothing) {
  auto root = [&]() -> Task<void> {
    auto late = co_await timeout(1ms, watch.until_changed());
    EXPECT_FALSE(late);
    StartedTask<void> a = waits("a").start_in_current_scope();
    StartedTask<void> b = waits("b").start_in_current_scope();
    co_await yields(2);
    a.cancel();
    Outcome<void> waiting = co_await a.outcome();
    EXPECT_TRUE(waiting.is_cancelled());
    watch.set(2);  // b is told, and cancelled before it goes on
    b.cancel();
    Outcome<void> told = co_await b.outcome();
    EXPECT_TRUE(told.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_TRUE(events.empty());
}

LOOP_TEST(WatchTest, TheTreeSaysWhoWaits) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = waits("a").start_in_current_scope();
    co_await yields(2);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("Watch 'level' until changed, 1 of 1 waiting"), std::string::npos) << tree;
    watch.set(2);
    co_await std::move(a);
  };
  run_on(loop, root());
}

// Two loops and two threads without one count up; everyone sees the end.
TEST(WatchThreads, NoChangeIsMissedAcrossLoops) {
  constexpr int kEach = 2000;
  constexpr int kEnd = 4 * kEach;
  Watch<int> watch(0);
  auto add = [](int& value) { ++value; };
  auto counts = [&]() -> Task<void> {
    for (int i = 0; i < kEach; ++i) {
      watch.modify(add);
      if (i % 16 == 0) co_await yield();
    }
  };
  auto follows = [&]() -> Task<void> {
    Executor* home = Executor::current_or_null();
    auto seen = watch.get();
    while (*seen < kEnd) {
      auto next = co_await watch.until_changed(seen);
      EXPECT_EQ(Executor::current_or_null(), home);
      EXPECT_GT(next.version(), seen.version());
      EXPECT_GT(*next, *seen);
      seen = next;
    }
  };
  auto is_end = [](int value) { return value == kEnd; };
  ThreadLoop loop;
  LoopThread others[2];
  std::thread threads[2];
  for (std::thread& thread : threads)
    thread = std::thread([&] {
      for (int i = 0; i < kEach; ++i) watch.modify(add);
    });
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (LoopThread& other : others) {
        n.start_on(other.executor(), counts());
        n.start_on(other.executor(), follows());
        n.start(follows());
      }
      static_cast<void>(co_await watch.until_matches(is_end));
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*watch.get(), kEnd);
}

TEST(WatchDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto watch = std::make_unique<Watch<int>>(1, "short-lived");
      auto body = [&]() -> Task<void> { static_cast<void>(co_await watch->until_changed()); };
      StartedTask<void> waits = body().start_in_current_scope();
      co_await yields(2);
      watch.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "Watch 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
