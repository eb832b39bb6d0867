// SPDX-License-Identifier: MIT
#include "weft/time/timeout.h"

#include <memory>
#include <stdexcept>

#include "support/ending.h"
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

static_assert(Skippable<decltype(timeout(1s, suspend_forever()))>);
static_assert(!Skippable<decltype(timeout(1s, parked()))>);

struct TimeoutTest : LoopTest<VirtualLoop> {
  Events events;
};

Task<int> after(std::chrono::nanoseconds duration, int value) {
  co_await sleep_for(duration);
  co_return value;
}

TEST_F(TimeoutTest, AResultInTimeIsDelivered) {
  auto root = []() -> Task<void> {
    int number = 0;
    auto reference = [&]() -> Task<int&> { co_return number; };
    auto pointer = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(2); };
    std::expected<int, TimedOut> value = co_await timeout(2ms, after(1ms, 3));
    EXPECT_EQ(value, 3);
    std::expected<int*, TimedOut> same = co_await timeout(2ms, reference());
    EXPECT_EQ(*same, &number);
    std::expected<std::unique_ptr<int>, TimedOut> moved = co_await timeout(2ms, pointer());
    EXPECT_EQ(**moved, 2);
    std::expected<void, TimedOut> nothing = co_await timeout(2ms, sleep_for(1ms));
    EXPECT_TRUE(nothing.has_value());
    std::expected<int, TimedOut> at_once = co_await timeout(0s, just(4));
    EXPECT_EQ(at_once, 4);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 2ms);
}

TEST_F(TimeoutTest, TimeRunsOutExactlyAndXIsCancelledAndWaitedFor) {
  auto root = [&]() -> Task<void> {
    auto slow = [&]() -> Task<int> {
      Marker marker(events, "slow");
      co_await sleep_for(1h);
      co_return 1;
    };
    std::expected<int, TimedOut> value = co_await timeout(5ms, slow);
    EXPECT_FALSE(value.has_value());
    events.push_back("timed out");
    std::expected<void, TimedOut> leaf = co_await deadline(now() + 5ms, suspend_forever());
    EXPECT_FALSE(leaf.has_value());
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 10ms);
  EXPECT_EQ(events, (Events{"~slow", "timed out"}));
}

TEST_F(TimeoutTest, AResultThatComesAfterAllIsDelivered) {
  auto root = []() -> Task<void> {
    auto stubborn = []() -> Task<int> {
      co_await noncancellable(sleep_for(3ms));
      co_return 1;
    };
    std::expected<int, TimedOut> value = co_await timeout(1ms, stubborn);
    EXPECT_EQ(value, 1);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 3ms);
}

TEST_F(TimeoutTest, TimedOutIsNotCancelled) {
  auto subject = [&]() -> Task<void> {
    static_cast<void>(co_await timeout(1ms, parked()));
    co_await yield();  // a cancelled task would end here
    events.push_back("goes on");
    Scope& scope = co_await current_scope();
    EXPECT_FALSE(scope.is_cancelled());
  };
  run(loop, subject());
  EXPECT_EQ(events, (Events{"goes on"}));
}

TEST_F(TimeoutTest, ErrorsPassAlsoAfterTheDeadline) {
  auto root = []() -> Task<void> {
    auto late = []() -> Task<void> {
      co_await noncancellable(sleep_for(2ms));
      throw std::runtime_error("late");
    };
    EXPECT_THROW(co_await timeout(1ms, throws_after(1, "x")), std::runtime_error);
    EXPECT_THROW(co_await timeout(1ms, late), std::runtime_error);
  };
  run(loop, root());
}

TEST_F(TimeoutTest, ZeroAndPastDeadlinesLetXRunToItsFirstWait) {
  auto root = [&]() -> Task<void> {
    auto x = [&]() -> Task<void> {
      events.push_back("entered");
      co_await suspend_forever();
    };
    std::expected<void, TimedOut> zero = co_await timeout(0s, x);
    std::expected<void, TimedOut> past = co_await deadline(now() - 1h, x);
    EXPECT_FALSE(zero.has_value() || past.has_value());
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"entered", "entered"}));
  EXPECT_EQ(loop.elapsed(), 0s);
}

TEST_F(TimeoutTest, TheInnermostOfNestedTimeoutsWinsATie) {
  auto root = []() -> Task<void> {
    auto both = co_await timeout(1ms, timeout(1ms, suspend_forever()));
    EXPECT_TRUE(!both.has_value() || !both->has_value());
    auto inner = co_await timeout(2ms, timeout(1ms, suspend_forever()));
    EXPECT_TRUE(inner.has_value());
    EXPECT_FALSE(inner->has_value());
    auto outer = co_await timeout(1ms, timeout(2ms, suspend_forever()));
    EXPECT_FALSE(outer.has_value());
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 3ms);
}

TEST_F(TimeoutTest, TimeCountsFromTheStartOfTheWaitAlsoInsideAnotherAwaiter) {
  auto goodbye = [&](std::chrono::nanoseconds takes) -> Task<void> {
    co_await until_cancelled_and(timeout(3ms, sleep_for(takes)));
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> in_time = goodbye(2ms).start_in_current_scope();
    StartedTask<void> too_long = goodbye(1h).start_in_current_scope();
    co_await sleep_for(10ms);
    in_time.cancel();
    static_cast<void>(co_await in_time.outcome());
    EXPECT_EQ(now().time_since_epoch(), 12ms);
    too_long.cancel();
    static_cast<void>(co_await too_long.outcome());
    EXPECT_EQ(now().time_since_epoch(), 15ms);
  };
  run(loop, root());
}

TEST_F(TimeoutTest, TheCallersCancelDisarmsTheClock) {
  auto subject = [&]() -> Task<void> {
    auto stubborn = []() -> Task<void> { co_await until_cancelled_and(sleep_for(5ms)); };
    static_cast<void>(co_await timeout(2ms, stubborn));
    events.push_back("not reached");
  };
  EXPECT_TRUE(cancelled_midway(loop, subject).is_cancelled());
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(loop.elapsed(), 6ms);
}

TEST_F(TimeoutTest, ACancelAfterTheDeadlineCancelsAlthoughXTimedOut) {
  auto subject = [&]() -> Task<void> {
    auto lingers = []() -> Task<void> { co_await until_cancelled_and(sleep_for(5ms)); };
    static_cast<void>(co_await timeout(1ms, lingers));
    events.push_back("not reached");
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = subject().start_in_current_scope();
    co_await sleep_for(2ms);
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(loop, root());
  EXPECT_TRUE(events.empty());
}

}  // namespace
