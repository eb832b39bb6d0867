// SPDX-License-Identifier: MIT
#include "weft/testing/sequencer.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"

namespace weft::test {
namespace {

using weft::testing::LoopThread;
using weft::testing::Sequencer;
using weft::testing::Stuck;
using weft::testing::VirtualLoop;

struct SequencerTest : EachLoopTest {};

using Steps = std::vector<unsigned>;
Task<void> steps(Sequencer& seq, Events& events, std::string who, Steps numbers) {
  for (unsigned number : numbers) {
    auto turn = co_await seq.step(number);
    events.push_back(who + std::to_string(number));
  }
}

LOOP_TEST(SequencerTest, StepsHappenInOrderWhoeverAwaitsThem) {
  Sequencer seq;
  Events events;
  auto test = [&]() -> Task<void> {
    // Named: g++ 12 miscompiles braces inside a co_await expression.
    Steps of_a{3, 4};
    Steps of_b{1, 5};
    Steps of_c{2};
    co_await all_of(steps(seq, events, "a", of_a), steps(seq, events, "b", of_b),
                    steps(seq, events, "c", of_c));
  };
  run_on(loop, test());
  EXPECT_EQ(events, (Events{"b1", "c2", "a3", "a4", "b5"}));
  EXPECT_EQ(seq.passed(), 5u);
}

LOOP_TEST(SequencerTest, ACancelledStepIsNotPassed) {
  Sequencer seq;
  auto test = [&]() -> Task<void> {
    auto [waited, gave_up] = co_await any_of(seq.step(2), yields(2));
    EXPECT_FALSE(waited.has_value());
    EXPECT_EQ(seq.passed(), 0u);
  };
  run_on(loop, test());
}

LOOP_TEST(SequencerTest, AStepCannotBeUsedTwice) {
  Sequencer seq;
  auto test = [&]() -> Task<void> {
    {
      auto turn = co_await seq.step(1);
      EXPECT_EQ(seq.passed(), 0u);
    }
    EXPECT_EQ(seq.passed(), 1u);
    EXPECT_THROW(static_cast<void>(co_await seq.step(1)), UsageError);
  };
  run_on(loop, test());
}

TEST(Sequencer, OrdersTasksOnDifferentThreads) {
  Sequencer seq;
  Events events;  // each step happens before the next one
  VirtualLoop here;
  {
    LoopThread one;
    LoopThread two;
    one.lease().start(steps(seq, events, "one", {1, 3, 5}));
    two.lease().start(steps(seq, events, "two", {2, 4, 6}));
    while (seq.passed() < 6) std::this_thread::yield();
  }
  EXPECT_EQ(events, (Events{"one1", "two2", "one3", "two4", "one5", "two6"}));
}

TEST(Sequencer, AMissingStepIsReportedNotWaitedFor) {
  Sequencer seq;
  VirtualLoop loop;
  EXPECT_THROW(static_cast<void>(run(loop, seq.step(2))), Stuck);
}

}  // namespace
}  // namespace weft::test
