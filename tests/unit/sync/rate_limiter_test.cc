// SPDX-License-Identifier: MIT
#include "weft/sync/rate_limiter.h"

#include <memory>
#include <string>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

// Time is what it is about: so it runs on the virtual clock.
struct RateLimiterTest : LoopTest<VirtualLoop> {
  RateLimiter limiter{{.tokens = 10, .interval = 1s, .burst = 3}, "test"};
  Events events;
  TimePoint start;

  // Acquires, and notes when.
  Task<void> visit(std::string name, unsigned count = 1) {
    co_await limiter.acquire(count);
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now() - start);
    events.push_back(name + "@" + std::to_string(passed.count()));
  }
};

TEST_F(RateLimiterTest, ABurstAtOnceThenAnEvenPace) {
  auto root = [&]() -> Task<void> {
    start = now();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (const char* name : {"a", "b", "c", "d", "e"}) n.start(visit(name));
      co_return join;
    };
    co_await with_nursery(body);
    co_await sleep_for(10s);  // no more than the burst is saved up
    EXPECT_EQ(limiter.available(), 3u);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"a@0", "b@0", "c@0", "d@100", "e@200"}));
}

TEST_F(RateLimiterTest, ALargeRequestAtTheFrontIsNotOvertaken) {
  auto root = [&]() -> Task<void> {
    start = now();
    EXPECT_TRUE(limiter.try_acquire(2));
    StartedTask<void> large = visit("large", 3).start_in_current_scope();
    StartedTask<void> small = visit("small", 1).start_in_current_scope();
    co_await yields(2);
    EXPECT_FALSE(limiter.try_acquire(1));  // one is there, and it is not for this one
    co_await std::move(large);
    co_await std::move(small);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"large@200", "small@300"}));
}

TEST_F(RateLimiterTest, CancelOfTheFirstLetsThoseBehindItGo) {
  auto root = [&]() -> Task<void> {
    start = now();
    EXPECT_TRUE(limiter.try_acquire(2));
    StartedTask<void> large = visit("large", 3).start_in_current_scope();
    StartedTask<void> a = visit("a", 1).start_in_current_scope();
    StartedTask<void> b = visit("b", 1).start_in_current_scope();
    co_await sleep_for(50ms);
    large.cancel();
    Outcome<void> how = co_await large.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(a);
    co_await std::move(b);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"a@50", "b@100"}));
}

TEST_F(RateLimiterTest, CancelInTheMiddleKeepsTheOrder) {
  auto root = [&]() -> Task<void> {
    start = now();
    EXPECT_TRUE(limiter.try_acquire(3));
    StartedTask<void> a = visit("a").start_in_current_scope();
    StartedTask<void> b = visit("b").start_in_current_scope();
    StartedTask<void> c = visit("c").start_in_current_scope();
    co_await sleep_for(50ms);
    b.cancel();
    co_await std::move(a);
    co_await std::move(c);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"a@100", "c@200"}));
}

// The token is there and the task has not gone on: the next has it, now and not a token later.
TEST_F(RateLimiterTest, CancelWhileNotifiedServesTheNext) {
  auto root = [&]() -> Task<void> {
    start = now();
    EXPECT_TRUE(limiter.try_acquire(3));
    StartedTask<void> a = visit("a").start_in_current_scope();
    StartedTask<void> b = visit("b").start_in_current_scope();
    co_await sleep_for(100ms);  // armed before a's, so that this goes on first
    EXPECT_TRUE(events.empty());
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"b@100"}));
}

// A third of a second is no number of nanoseconds: what comes too early for one is the next one's.
TEST_F(RateLimiterTest, NothingIsRoundedAway) {
  RateLimiter thirds({.tokens = 3, .interval = 1s, .burst = 2});
  auto root = [&]() -> Task<void> {
    const TimePoint begin = now();
    co_await thirds.acquire(2);
    for (int i = 0; i < 300; ++i) co_await thirds.acquire();
    EXPECT_EQ(now() - begin, 100s);
  };
  run(loop, root());
}

TEST_F(RateLimiterTest, NoTimerIsArmedWhenNobodyWaits) {
  auto root = [&]() -> Task<void> {
    start = now();
    EXPECT_TRUE(limiter.try_acquire(3));
    StartedTask<void> a = visit("a").start_in_current_scope();
    co_await yields(2);
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await suspend_forever();
  };
  EXPECT_THROW(run(loop, root()), weft::testing::Stuck);
  EXPECT_EQ(loop.now_ns(), start.time_since_epoch().count());  // time jumps to a timer first
}

TEST_F(RateLimiterTest, TheTreeSaysWhatOneWantsAndWhereItStands) {
  auto root = [&]() -> Task<void> {
    start = now();
    EXPECT_TRUE(limiter.try_acquire(3));
    StartedTask<void> a = visit("a", 2).start_in_current_scope();
    co_await yields(2);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("RateLimiter 'test', wants 2, 1 of 1 waiting"), std::string::npos) << tree;
    co_await std::move(a);
  };
  run(loop, root());
}

TEST_F(RateLimiterTest, WhatCanNeverBeIsRefused) {
  EXPECT_THROW(RateLimiter({.tokens = 0, .interval = 1s, .burst = 1}), UsageError);
  EXPECT_THROW(RateLimiter({.tokens = 1, .interval = 0s, .burst = 1}), UsageError);
  EXPECT_THROW(RateLimiter({.tokens = 1, .interval = 1s, .burst = 0}), UsageError);
  EXPECT_THROW(RateLimiter({.tokens = 1, .interval = 10h, .burst = UINT32_MAX}), UsageError);
  EXPECT_THROW(static_cast<void>(limiter.acquire(0)), UsageError);
  EXPECT_THROW(static_cast<void>(limiter.acquire(4)), UsageError);
  EXPECT_THROW(static_cast<void>(limiter.try_acquire()), UsageError);  // off any loop
}

TEST_F(RateLimiterTest, AnotherLoopIsRefused) {
  VirtualLoop other{loop};
  auto there = [&]() -> Task<bool> {
    try {
      co_await limiter.acquire();
    } catch (const UsageError& error) {
      co_return std::string(error.what()).find("RateLimiter 'test'") != std::string::npos;
    }
    co_return false;
  };
  auto root = [&]() -> Task<void> {
    co_await limiter.acquire();
    const bool refused = co_await on(other, there());
    EXPECT_TRUE(refused);
  };
  run(loop, root());
}

TEST(RateLimiterDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      RateLimiter::Rate slow{.tokens = 1, .interval = 1h, .burst = 1};
      auto limiter = std::make_unique<RateLimiter>(slow, "short-lived");
      co_await limiter->acquire();
      auto waits = [&]() -> Task<void> { co_await limiter->acquire(); };
      StartedTask<void> started = waits().start_in_current_scope();
      co_await yields(2);
      limiter.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "RateLimiter 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
