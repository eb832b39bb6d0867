// SPDX-License-Identifier: MIT
#include "weft/time/sleep.h"

#include "support/ending.h"
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

static_assert(Skippable<decltype(sleep_for(1s))> && Abortable<decltype(sleep_for(1s))>);
static_assert(Skippable<decltype(sleep_until(TimePoint()))>);

struct SleepTest : LoopTest<VirtualLoop> {
  Events events;
  auto noting() {
    return [this](const char* name, std::chrono::nanoseconds duration) -> Task<void> {
      co_await sleep_for(duration);
      events.push_back(name);
    };
  }
};

TEST_F(SleepTest, TimePassesExactly) {
  auto root = []() -> Task<void> {
    TimePoint start = now();
    co_await sleep_for(1ns);
    EXPECT_EQ(now() - start, 1ns);
    co_await sleep_for(3h);
    EXPECT_EQ(now() - start, 3h + 1ns);
    co_await sleep_until(start + 4h);
    EXPECT_EQ(now() - start, 4h);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 4h);
}

TEST_F(SleepTest, SleepersWakeInDeadlineOrder) {
  auto sleeper = noting();
  auto root = [&]() -> Task<void> {
    co_await all_of(sleeper("c", 3ms), sleeper("a", 1ms), sleeper("b", 2ms), sleeper("b2", 2ms));
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"a", "b", "b2", "c"}));
}

TEST_F(SleepTest, ZeroNegativeAndPastDeadlinesYieldOnce) {
  auto root = [&]() -> Task<void> {
    TimePoint before = now();
    auto other = [&]() -> Task<void> {
      events.push_back("other");
      co_return;
    };
    StartedTask<void> s = other().start_in_current_scope();
    co_await sleep_for(0s);
    events.push_back("zero");
    co_await sleep_for(-5s);
    co_await sleep_until(before - 1h);
    EXPECT_EQ(now(), before);
    co_await std::move(s);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"other", "zero"}));
  EXPECT_EQ(loop.elapsed(), 0s);
}

TEST_F(SleepTest, TheDeadlineCountsFromTheStartOfTheWait) {
  auto root = []() -> Task<void> {
    auto nap = sleep_for(2ms);
    co_await sleep_for(5ms);
    co_await nap;
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 7ms);
}

TEST_F(SleepTest, DurationsTooLongToWriteDoNotOverflow) {
  auto root = []() -> Task<void> {
    co_await sleep_for(1s);
    co_await any_of(sleep_for(std::chrono::hours::max()),
                    sleep_for(std::chrono::nanoseconds::max()),
                    sleep_for(std::chrono::duration<double>(1e300)), sleep_for(1ms));
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 1001ms);
}

TEST_F(SleepTest, FractionsAreRoundedUp) {
  auto root = []() -> Task<void> {
    co_await sleep_for(std::chrono::duration<double, std::nano>(1.5));
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 2ns);
}

TEST_F(SleepTest, ACancelledSleepIsDisarmedAtOnce) {
  auto root = []() -> Task<void> {
    auto sleeper = []() -> Task<void> { co_await sleep_for(1h); };
    StartedTask<void> s = sleeper().start_in_current_scope();
    co_await sleep_for(1ms);
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 1ms);
  auto nothing = []() -> Task<void> { co_await suspend_forever(); };
  EXPECT_THROW(run(loop, nothing()), weft::testing::Stuck) << "no timer is left";
  EXPECT_EQ(loop.elapsed(), 1ms);
}

TEST_F(SleepTest, EverySleepIsACancelPoint) {
  auto subject = [&]() -> Task<void> {
    co_await noncancellable(sleep_for(2ms));
    events.push_back("cancelled by now");
    co_await sleep_for(0s);
    events.push_back("not reached");
  };
  EXPECT_TRUE(cancelled_midway(loop, subject).is_cancelled());
  EXPECT_EQ(events, (Events{"cancelled by now"}));
}

TEST_F(SleepTest, ACancelAtTheVeryDeadlineEndsTheSleepOnce) {
  for (bool canceller_first : {true, false}) {
    auto root = [&]() -> Task<void> {
      auto sleeper = []() -> Task<void> { co_await sleep_for(1ms); };
      CancelHandle target;
      auto cancels = [&]() -> Task<void> {
        co_await sleep_for(1ms);
        target.cancel();
      };
      StartedTask<void> c;
      if (canceller_first) c = cancels().start_immediate_in_current_scope();
      StartedTask<void> s = sleeper().start_immediate_in_current_scope();
      target = s.cancel_handle();
      if (!canceller_first) c = cancels().start_immediate_in_current_scope();
      Outcome<void> how = co_await s.outcome();
      EXPECT_FALSE(how.has_error());
      co_await std::move(c);
    };
    run(loop, root());
  }
}

TEST(Sleep, NowNeedsALoop) { EXPECT_THROW(static_cast<void>(now()), UsageError); }

}  // namespace
