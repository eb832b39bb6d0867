// SPDX-License-Identifier: MIT
#include "weft/core/then.h"

#include <memory>
#include <stdexcept>

#include "support/ending.h"
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

static_assert(Skippable<decltype(suspend_forever() | then([] { return noop(); }))>);
static_assert(!Skippable<decltype(parked() | then([] { return noop(); }))>);

struct ThenTest : LoopTest<VirtualLoop> {};

TEST_F(ThenTest, TheSecondGetsTheFirstsResult) {
  auto root = []() -> Task<void> {
    auto plus = [](int value) { return just(value + 1); };
    auto twice = [](int value) -> Task<int> { co_return value * 2; };
    auto nothing = [] { return noop(); };
    int result = co_await (returns(3) | then(plus) | then(twice));
    EXPECT_EQ(result, 8);
    co_await (yields(1) | then(nothing));
  };
  run(loop, root());
}

TEST_F(ThenTest, TheFirstResultLivesUntilTheSecondEnds) {
  auto root = []() -> Task<int> {
    auto keep = [](Counted& value) -> Task<int> {
      co_await yield();
      co_return value.value();  // a value that was moved from or has died says something else
    };
    co_return co_await (just(Counted(7)) | then(keep));
  };
  EXPECT_EQ(run(loop, root()), 7);
  EXPECT_EQ(Counted::live, 0);
}

TEST_F(ThenTest, ReferencesAndMoveOnlyResultsPass) {
  auto root = []() -> Task<void> {
    int number = 1;
    auto reference = [&]() -> Task<int&> { co_return number; };
    auto change = [](int& value) -> Task<int&> {
      value = 2;
      co_return value;
    };
    int& same = co_await (reference() | then(change));
    EXPECT_EQ(&same, &number);
    EXPECT_EQ(number, 2);
    auto take = [](std::unique_ptr<int> value) { return just(std::move(value)); };
    std::unique_ptr<int> moved = co_await (just(std::make_unique<int>(9)) | then(take));
    EXPECT_EQ(*moved, 9);
  };
  run(loop, root());
}

TEST_F(ThenTest, ErrorsOfEitherStageAndOfTheFunctionPass) {
  auto root = []() -> Task<void> {
    bool called = false;
    auto note = [&] {
      called = true;
      return noop();
    };
    auto throws = [] {
      throw std::logic_error("function");
      return noop();
    };
    auto second = [] { return throws_after(1, "second"); };
    EXPECT_THROW(co_await (throws_after(1, "first") | then(note)), std::runtime_error);
    EXPECT_FALSE(called);
    EXPECT_THROW(co_await (noop() | then(throws)), std::logic_error);
    EXPECT_THROW(co_await (noop() | then(second)), std::runtime_error);
  };
  run(loop, root());
}

TEST_F(ThenTest, AFirstStageThatCompletesAlthoughCancelledIsFollowed) {
  Events events;
  auto subject = [&]() -> Task<void> {
    auto next = [&](int) -> Task<int> {
      events.push_back("second");
      co_await yield();
      events.push_back("not reached");
      co_return 1;
    };
    auto first = []() -> Task<int> {
      co_await noncancellable(sleep_for(2ms));
      co_return 1;
    };
    co_await (first() | then(next));
    events.push_back("not reached");
  };
  EXPECT_TRUE(cancelled_midway(loop, subject).is_cancelled());
  EXPECT_EQ(events, (Events{"second"}));
}

}  // namespace
