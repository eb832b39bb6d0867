// SPDX-License-Identifier: MIT
#include "weft/time/timer_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace {

using weft::detail::TimerNode;
using weft::detail::TimerWheel;

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

struct Timer : TimerNode {
  Timer(int number, std::vector<int>& log) : number(number), log(&log) {
    fire = [](TimerNode& node) noexcept {
      auto& self = static_cast<Timer&>(node);
      self.log->push_back(self.number);
      if (self.then) self.then();
    };
  }
  int number;
  std::vector<int>* log;
  std::function<void()> then;
};

TEST(TimerWheel, IsEmptyAtFirst) {
  TimerWheel wheel(5);
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wheel.next_deadline(), std::nullopt);
  EXPECT_EQ(wheel.fire_due(100, kAll), 0u);
  EXPECT_EQ(wheel.time(), 100);
}

TEST(TimerWheel, FiresAtItsNanosecondAndNotBefore) {
  std::vector<int> log;
  for (std::int64_t delay :
       {1ll, 63ll, 64ll, 65ll, 4095ll, 4096ll, 1'000'000'007ll, 1ll << 40, 1ll << 61}) {
    TimerWheel wheel(12345);
    Timer timer(1, log);
    wheel.arm(timer, 12345 + delay);
    EXPECT_EQ(wheel.next_deadline(), 12345 + delay);
    EXPECT_EQ(wheel.fire_due(12345 + delay - 1, kAll), 0u) << delay;
    EXPECT_EQ(wheel.next_deadline(), 12345 + delay);
    EXPECT_EQ(wheel.fire_due(12345 + delay, kAll), 1u) << delay;
    EXPECT_FALSE(timer.armed());
    EXPECT_EQ(wheel.size(), 0u);
  }
}

TEST(TimerWheel, CoversTheWholeClock) {
  std::vector<int> log;
  TimerWheel wheel(kMin);
  Timer a(1, log), b(2, log), c(3, log), d(4, log);
  wheel.arm(d, kMax);
  wheel.arm(b, -1);
  wheel.arm(c, 0);
  wheel.arm(a, kMin);
  EXPECT_EQ(wheel.next_deadline(), kMin);
  EXPECT_EQ(wheel.fire_due(-1, kAll), 2u);
  EXPECT_EQ(wheel.next_deadline(), 0);
  EXPECT_EQ(wheel.fire_due(kMax, kAll), 2u);
  EXPECT_EQ(log, (std::vector{1, 2, 3, 4}));
}

TEST(TimerWheel, APastDeadlineIsDueAtTheNextCall) {
  std::vector<int> log;
  TimerWheel wheel(1000);
  Timer late(1, log);
  wheel.arm(late, 10);
  EXPECT_EQ(wheel.next_deadline(), 1000);
  EXPECT_EQ(wheel.fire_due(1000, kAll), 1u);
}

TEST(TimerWheel, AClockThatStepsBackFiresNothing) {
  std::vector<int> log;
  TimerWheel wheel(1000);
  Timer timer(1, log);
  wheel.arm(timer, 1001);
  EXPECT_EQ(wheel.fire_due(10, kAll), 0u);
  EXPECT_EQ(wheel.time(), 1000);
  EXPECT_EQ(wheel.fire_due(1001, kAll), 1u);
}

// The first is armed from afar and moves down level by level, the second from near: equal
// deadlines.
TEST(TimerWheel, EarlyArmedFiresFirstAmongEqualsAlsoFromAHigherLevel) {
  std::vector<int> log;
  TimerWheel wheel(0);
  const std::int64_t deadline = 1'000'000'123;
  Timer far(1, log), middle(2, log), near(3, log), last(4, log);
  wheel.arm(far, deadline);
  wheel.fire_due(999'000'000, kAll);
  wheel.arm(middle, deadline);
  wheel.fire_due(1'000'000'000, kAll);
  wheel.arm(near, deadline);
  wheel.fire_due(deadline - 1, kAll);
  wheel.arm(last, deadline);
  EXPECT_EQ(wheel.fire_due(deadline, kAll), 4u);
  EXPECT_EQ(log, (std::vector{1, 2, 3, 4}));
}

TEST(TimerWheel, NextDeadlineIsExactWithinASlotArmedOutOfOrder) {
  std::vector<int> log;
  TimerWheel wheel(0);
  Timer a(1, log), b(2, log), c(3, log), d(4, log), e(5, log);
  wheel.arm(c, 700'300);
  wheel.arm(d, 700'300);
  wheel.arm(a, 700'100);
  wheel.arm(e, 700'900);
  wheel.arm(b, 700'200);
  EXPECT_EQ(wheel.next_deadline(), 700'100);
  wheel.disarm(a);
  EXPECT_EQ(wheel.next_deadline(), 700'200);
  wheel.arm(a, 700'150);
  EXPECT_EQ(wheel.next_deadline(), 700'150);
  EXPECT_EQ(wheel.fire_due(800'000, kAll), 5u);
  EXPECT_EQ(log, (std::vector{1, 2, 3, 4, 5}));  // sorting kept c before d
}

// Looking for the earliest of a great many would cost more than waking a little too early.
TEST(TimerWheel, NextDeadlineOfManyOutOfOrderIsNotLater) {
  TimerWheel wheel(0);
  std::vector<std::unique_ptr<Timer>> timers;
  std::vector<int> log;
  constexpr std::int64_t kBase = 40'000'000;
  for (int i = 0; i < 4 * TimerWheel::kScanMax; ++i) {
    timers.push_back(std::make_unique<Timer>(i, log));
    wheel.arm(*timers.back(), kBase - i * 1000);
  }
  const std::int64_t earliest = kBase - (4 * TimerWheel::kScanMax - 1) * 1000;
  std::int64_t now = 0;
  int looks = 0;
  while (wheel.fire_due(now, 1) == 0) {  // as a loop does: sleep until then, and look again
    const std::int64_t next = *wheel.next_deadline();
    ASSERT_GT(next, now);
    ASSERT_LE(next, earliest);
    now = next;
    ++looks;
  }
  EXPECT_EQ(now, earliest);
  EXPECT_LE(looks, 3);
  for (auto& each : timers) wheel.disarm(*each);
}

// A tick's timers are armed out of order while they fire.
TEST(TimerWheel, OneTicksTimersFireInOrderHoweverTheyAreArmed) {
  TimerWheel wheel(0);
  std::vector<std::unique_ptr<Timer>> timers;
  std::vector<std::int64_t> fired;
  std::vector<int> log;
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    timers.push_back(std::make_unique<Timer>(i, log));
    Timer& timer = *timers.back();
    timer.then = [&] { fired.push_back(wheel.time()); };
    wheel.arm(timer, static_cast<std::int64_t>(random() % 16'000));
    if (i % 50 == 49) wheel.fire_due(i * 10, 3);
  }
  wheel.fire_due(20'000, 1000);
  EXPECT_EQ(fired.size(), 500u);
  EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
}

// Armed ahead, so that the tick's list comes from a slot, and long enough to be dealt out by digits;
// most deadlines have several timers.
TEST(TimerWheel, ManyTimersOfOneTickFireByDeadlineThenByArming) {
  for (const std::int64_t start : {std::int64_t{0}, std::int64_t{-1} << 40}) {
    TimerWheel wheel(start);
    std::vector<std::unique_ptr<Timer>> timers;
    std::vector<int> log;
    std::vector<std::pair<std::int64_t, int>> expected;
    std::mt19937 random(11);
    for (int i = 0; i < 3000; ++i) {
      timers.push_back(std::make_unique<Timer>(i, log));
      const std::int64_t deadline = start + (1 << 20) + random() % 650 * 100;
      wheel.arm(*timers.back(), deadline);
      expected.emplace_back(deadline, i);
    }
    std::sort(expected.begin(), expected.end());
    while (wheel.fire_due(start + (1 << 21), 100) != 0) continue;
    ASSERT_EQ(log.size(), expected.size());
    for (std::size_t i = 0; i < log.size(); ++i) ASSERT_EQ(log[i], expected[i].second) << i;
  }
}

TEST(TimerWheel, DisarmLeavesNothingBehind) {
  std::vector<int> log;
  TimerWheel wheel(0);
  Timer a(1, log), b(2, log);
  wheel.disarm(a);  // not armed: without effect
  wheel.arm(a, 5'000);
  wheel.arm(b, 5'000);
  wheel.disarm(a);
  EXPECT_FALSE(a.armed());
  EXPECT_EQ(wheel.size(), 1u);
  wheel.disarm(b);
  wheel.disarm(b);
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wheel.next_deadline(), std::nullopt);
  EXPECT_EQ(wheel.fire_due(10'000, kAll), 0u);
}

TEST(TimerWheel, ArmingAgainMovesTheTimerBehindItsEquals) {
  std::vector<int> log;
  TimerWheel wheel(0);
  Timer a(1, log), b(2, log);
  wheel.arm(a, 500);
  wheel.arm(b, 500);
  wheel.arm(a, 500);
  EXPECT_EQ(wheel.size(), 2u);
  wheel.fire_due(500, kAll);
  EXPECT_EQ(log, (std::vector{2, 1}));
}

TEST(TimerWheel, TheBudgetStopsAndTheRestStaysDue) {
  std::vector<int> log;
  TimerWheel wheel(0);
  Timer a(1, log), b(2, log), c(3, log);
  wheel.arm(c, 3000);
  wheel.arm(a, 1000);
  wheel.arm(b, 2000);
  EXPECT_EQ(wheel.fire_due(5000, 0), 0u);
  EXPECT_EQ(wheel.fire_due(5000, 2), 2u);
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(wheel.next_deadline(), 3000);
  EXPECT_EQ(wheel.fire_due(5000, 2), 1u);
  EXPECT_EQ(log, (std::vector{1, 2, 3}));
}

TEST(TimerWheel, FireMayDisarmATimerThatIsDueNow) {
  std::vector<int> log;
  TimerWheel wheel(0);
  Timer a(1, log), b(2, log), c(3, log);
  a.then = [&] {
    wheel.disarm(b);
    wheel.disarm(c);
  };
  wheel.arm(a, 100);
  wheel.arm(b, 100);
  wheel.arm(c, 20'000);
  EXPECT_EQ(wheel.fire_due(30'000, kAll), 1u);
  EXPECT_EQ(wheel.size(), 0u);
}

TEST(TimerWheel, FireMayArmAndWhatIsDueFiresInItsPlace) {
  std::vector<int> log;
  TimerWheel wheel(0);
  Timer a(1, log), b(2, log), c(3, log), d(4, log);
  a.then = [&] {
    wheel.arm(b, 50);     // past: counts as now, behind nothing
    wheel.arm(d, 9'000);  // later than c, still due
    wheel.arm(a, 90'000);
  };
  wheel.arm(a, 100);
  wheel.arm(c, 5'000);
  EXPECT_EQ(wheel.fire_due(10'000, kAll), 4u);
  EXPECT_EQ(log, (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(wheel.next_deadline(), 90'000);
  wheel.disarm(a);
}

TEST(TimerWheel, ATimerThatRearmsItselfAtOnceIsBoundedByTheBudget) {
  std::vector<int> log;
  TimerWheel wheel(0);
  Timer a(1, log);
  a.then = [&] { wheel.arm(a, 0); };
  wheel.arm(a, 10);
  EXPECT_EQ(wheel.fire_due(10, 64), 64u);
  wheel.disarm(a);
}

TEST(TimerWheel, FireMayEndTheNodesLife) {
  std::vector<int> log;
  TimerWheel wheel(0);
  auto owner = std::make_unique<Timer>(1, log);
  owner->fire = [](TimerNode& node) noexcept { delete static_cast<Timer*>(&node); };
  wheel.arm(*owner.release(), 10);
  EXPECT_EQ(wheel.fire_due(10, kAll), 1u);
}

// The wheel against the obvious thing: a multimap from deadline to timer, which keeps equals in
// order.
class AgainstModel : public testing::TestWithParam<int> {
 protected:
  static constexpr int kTimers = 40;

  explicit AgainstModel() : random_(static_cast<unsigned>(GetParam())) {
    now_ = start();
    wheel_.emplace(now_);
    for (int i = 0; i < kTimers; ++i) {
      timers_.push_back(std::make_unique<Timer>(i, fired_));
      places_.push_back(model_.end());
    }
  }

  ~AgainstModel() override {
    for (auto& timer : timers_) wheel_->disarm(*timer);
  }

  std::int64_t start() {
    switch (random_() % 3) {
      case 0:
        return 0;
      case 1:
        return -static_cast<std::int64_t>(random_() % 100'000);
      default:
        return static_cast<std::int64_t>(random_() >> 2);
    }
  }

  // Delays of all magnitudes, a few round ones so that equals are common, some in the past.
  std::int64_t some_deadline() {
    const std::int64_t delay = static_cast<std::int64_t>(random_() >> (24 + random_() % 40));
    switch (random_() % 4) {
      case 0:
        return now_ + delay;
      case 1:
        return (now_ + delay) & ~std::int64_t{0xFFF};
      case 2:
        return now_ + static_cast<std::int64_t>(random_() % 4) * 100;
      default:
        return now_ - static_cast<std::int64_t>(random_() % 200);
    }
  }

  void arm(int i, std::int64_t deadline) {
    disarm_in_model(i);
    wheel_->arm(*timers_[i], deadline);
    places_[i] = model_.emplace(std::max(deadline, wheel_->time()), i);
  }

  void disarm(int i) {
    disarm_in_model(i);
    wheel_->disarm(*timers_[i]);
  }

  void disarm_in_model(int i) {
    if (places_[i] != model_.end()) model_.erase(places_[i]);
    places_[i] = model_.end();
  }

  // From inside fire(): what the model knows must be what fired.
  void check_fired(int i) {
    ASSERT_FALSE(model_.empty());
    EXPECT_EQ(model_.begin()->second, i);
    EXPECT_LE(model_.begin()->first, now_);
    EXPECT_EQ(wheel_->time(), model_.begin()->first);
    disarm_in_model(i);
    for (int k = static_cast<int>(random_() % 3); k > 0; --k)
      act(static_cast<int>(random_() % kTimers));
  }

  void act(int i) {
    if (random_() % 3 == 0) {
      disarm(i);
    } else {
      arm(i, some_deadline());
    }
  }

  void check_state() {
    ASSERT_EQ(wheel_->size(), model_.size());
    if (random_() % 2 == 0) return;  // looking sorts: half of the states go unseen
    const auto next = wheel_->next_deadline();
    ASSERT_EQ(next.has_value(), !model_.empty());
    if (next) {
      ASSERT_EQ(*next, model_.begin()->first);
    }
  }

  std::mt19937_64 random_;
  std::int64_t now_ = 0;
  std::optional<TimerWheel> wheel_;
  std::vector<std::unique_ptr<Timer>> timers_;
  std::multimap<std::int64_t, int> model_;
  std::vector<std::multimap<std::int64_t, int>::iterator> places_;
  std::vector<int> fired_;
};

TEST_P(AgainstModel, FiresTheSameTimersInTheSameOrder) {
  for (int i = 0; i < kTimers; ++i) timers_[i]->then = [this, i] { check_fired(i); };
  for (int step = 0; step < 600 && !HasFatalFailure(); ++step) {
    act(static_cast<int>(random_() % kTimers));
    check_state();
    if (random_() % 4 != 0) continue;
    if (random_() % 3 == 0 && !model_.empty()) {
      now_ = std::max(now_, model_.begin()->first - static_cast<std::int64_t>(random_() % 2));
    } else {
      now_ += static_cast<std::int64_t>(random_() >> (26 + random_() % 38));
    }
    const std::size_t budget = random_() % 5 == 0 ? random_() % 3 : 200;
    const std::size_t fired = wheel_->fire_due(now_, budget);
    EXPECT_LE(fired, budget);
    if (fired != budget) {
      EXPECT_TRUE(model_.empty() || model_.begin()->first > now_);
    }
    check_state();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstModel, testing::Range(0, 200));

#ifndef NDEBUG
TEST(TimerWheelDeathTest, MisuseIsNamedInDebugBuilds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<int> log;
  EXPECT_DEATH(
      {
        TimerWheel wheel(0);
        Timer timer(1, log);
        wheel.arm(timer, 5);
      },
      "before the loop ends");
}
#endif

}  // namespace
