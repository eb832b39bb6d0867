// SPDX-License-Identifier: MIT
#include "weft/time/interval.h"

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;
using Times = std::vector<std::chrono::milliseconds>;

struct IntervalTest : LoopTest<VirtualLoop> {
  Times ticks;
  void note() {
    ticks.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(loop.elapsed()));
  }
  // Five ticks every 10 ms; after the second one the work takes 35 ms.
  void late_ticks(MissedTicks missed) {
    auto root = [&]() -> Task<void> {
      Interval every(10ms, missed);
      for (int i = 0; i < 6; ++i) {
        EXPECT_TRUE(co_await every.tick());
        note();
        if (i == 1) co_await sleep_for(35ms);
      }
    };
    run(loop, root());
  }
};

TEST_F(IntervalTest, TicksAreDueFromTheStartAndDoNotDrift) {
  auto root = [&]() -> Task<void> {
    Interval every(10ms);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(co_await every.tick());
      note();
      co_await sleep_for(7ms);
    }
  };
  run(loop, root());
  EXPECT_EQ(ticks, (Times{10ms, 20ms, 30ms}));
}

TEST_F(IntervalTest, BurstMakesUpForMissedTicks) {
  late_ticks(MissedTicks::burst);
  EXPECT_EQ(ticks, (Times{10ms, 20ms, 55ms, 55ms, 55ms, 60ms}));
}
TEST_F(IntervalTest, DelayPutsOffAllThatFollow) {
  late_ticks(MissedTicks::delay);
  EXPECT_EQ(ticks, (Times{10ms, 20ms, 55ms, 65ms, 75ms, 85ms}));
}
TEST_F(IntervalTest, SkipGoesOnAtTheNextMultiple) {
  late_ticks(MissedTicks::skip);
  EXPECT_EQ(ticks, (Times{10ms, 20ms, 55ms, 60ms, 70ms, 80ms}));
}

// A task that ticks, and another that does something at some point.
template <class Fn>
Task<void> ticking(Interval& every, std::chrono::milliseconds at, Fn act, int count, auto note) {
  auto acts = [&]() -> Task<void> {
    co_await sleep_for(at);
    act();
  };
  StartedTask<void> other = acts().start_immediate_in_current_scope();
  for (int i = 0; i < count; ++i) {
    if (!co_await every.tick()) break;
    note();
  }
  co_await std::move(other);
}

TEST_F(IntervalTest, RestartMovesTheTickThatIsWaitedFor) {
  Interval every(10ms);
  auto act = [&] { every.restart(); };
  auto noting = [&] { note(); };
  run(loop, ticking(every, 4ms, act, 2, noting));
  EXPECT_EQ(ticks, (Times{14ms, 24ms}));
}

TEST_F(IntervalTest, RestartInTheStepOfTheFiringLosesNeitherTickNorWaiter) {
  Interval every(10ms);
  auto act = [&] { every.restart(); };
  auto noting = [&] { note(); };
  run(loop, ticking(every, 10ms, act, 3, noting));
  if (ticks.size() == 3 && ticks[0] == 20ms) {
    EXPECT_EQ(ticks, (Times{20ms, 30ms, 40ms}));  // restarted before it had fired
  } else {
    EXPECT_EQ(ticks, (Times{10ms, 20ms, 30ms}));  // I3: delivered, and not counted
  }
}

TEST_F(IntervalTest, AdjustCountsFromTheLastTick) {
  Interval every(10ms);
  auto act = [&] { every.adjust(4ms); };
  auto noting = [&] { note(); };
  run(loop, ticking(every, 11ms, act, 3, noting));
  EXPECT_EQ(ticks, (Times{10ms, 14ms, 18ms}));
  EXPECT_EQ(every.period(), 4ms);
}

TEST_F(IntervalTest, AdjustInTheStepOfTheFiringLosesNothing) {
  Interval every(10ms);
  auto act = [&] { every.adjust(15ms); };
  auto noting = [&] { note(); };
  run(loop, ticking(every, 10ms, act, 2, noting));
  ASSERT_EQ(ticks.size(), 2u);
  EXPECT_TRUE(ticks == (Times{15ms, 30ms}) || ticks == (Times{10ms, 15ms})) << ticks[1].count();
}

TEST_F(IntervalTest, StopWakesTheWaiterAndLaterTicksAreFalse) {
  auto root = [&]() -> Task<void> {
    Interval every(10ms);
    auto act = [&] { every.stop(); };
    auto noting = [&] { note(); };
    co_await ticking(every, 25ms, act, 9, noting);
    EXPECT_EQ(now().time_since_epoch(), 25ms);
    EXPECT_FALSE(co_await every.tick());
    every.restart();
    EXPECT_TRUE(co_await every.tick());
    note();
  };
  run(loop, root());
  EXPECT_EQ(ticks, (Times{10ms, 20ms, 35ms}));
}

TEST_F(IntervalTest, StopInTheStepOfTheFiringDoesNotBlock) {
  Interval every(10ms);
  auto act = [&] { every.stop(); };
  auto noting = [&] { note(); };
  run(loop, ticking(every, 10ms, act, 9, noting));
  EXPECT_TRUE(ticks.empty());
  EXPECT_EQ(loop.elapsed(), 10ms);
}

TEST_F(IntervalTest, StopAndRestartInOneStepStillEndTheTickThatWaited) {
  Interval every(10ms);
  auto act = [&] {
    every.stop();
    every.restart();
  };
  auto noting = [&] { note(); };
  run(loop, ticking(every, 3ms, act, 9, noting));
  EXPECT_TRUE(ticks.empty()) << "a tick that was not due";
  EXPECT_EQ(loop.elapsed(), 3ms);
}

TEST_F(IntervalTest, ACancelledTickIsNotUsedUp) {
  auto root = [&]() -> Task<void> {
    Interval every(10ms);
    for (int i = 0; i < 3; ++i) {
      auto [tick, slept] = co_await any_of(every.tick(), sleep_for(4ms));
      if (tick) note();
    }
    auto late = co_await timeout(1s, every.tick());
    EXPECT_EQ(late, true);
    note();
  };
  run(loop, root());
  EXPECT_EQ(ticks, (Times{10ms, 20ms}));
}

TEST_F(IntervalTest, MisuseIsRefused) {
  EXPECT_THROW(Interval(0s), UsageError);
  auto root = []() -> Task<void> {
    Interval every(1ms);
    EXPECT_THROW(every.restart(-1s), UsageError);
    EXPECT_THROW(every.adjust(0s), UsageError);
    EXPECT_THROW(co_await all_of(every.tick(), every.tick()), UsageError);
  };
  run(loop, root());
}

TEST_F(IntervalTest, APeriodTooLongToWriteDoesNotOverflow) {
  auto root = []() -> Task<void> {
    co_await sleep_for(1s);
    Interval every(std::chrono::nanoseconds::max());
    static_cast<void>(co_await timeout(1s, every.tick()));
  };
  run(loop, root());
}

}  // namespace
