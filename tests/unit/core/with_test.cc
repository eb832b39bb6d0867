// SPDX-License-Identifier: MIT
#include "weft/core/with.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;
using Expected = std::expected<int, std::string>;

struct WithTest : LoopTest<VirtualLoop> {};

TEST_F(WithTest, BackgroundStartsFirstAndIsCancelledWhenWorkEnds) {
  Events events;
  auto root = [&]() -> Task<int> {
    auto work = [&]() -> Task<int> {
      events.push_back("work");
      co_await sleep_for(1ms);
      co_return 3;
    };
    auto background = [&]() -> Task<void> {
      events.push_back("background");
      Marker marker(events, "background");
      co_await suspend_forever();
    };
    int value = co_await with(background, work);
    events.push_back("after");
    co_return value;
  };
  EXPECT_EQ(run(loop, root()), 3);
  EXPECT_EQ(events, (Events{"background", "work", "~background", "after"}));
}

TEST_F(WithTest, WorkGoesOnWhenBackgroundEnds) {
  auto root = []() -> Task<void> {
    int number = 0;
    auto work = [&]() -> Task<int&> {
      co_await sleep_for(2ms);
      co_return number;
    };
    int& same = co_await with(sleep_for(1ms), work);
    EXPECT_EQ(&same, &number);
    co_await with(sleep_for(1ms), sleep_for(2ms));
    auto pointer = co_await with(noop(), just(std::make_unique<int>(1)));
    EXPECT_EQ(*pointer, 1);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 4ms);
}

TEST_F(WithTest, AnErrorOfEitherCancelsTheOther) {
  Events events;
  auto root = [&](bool background) -> Task<void> {
    if (background) {
      co_await with(throws_after(2, "background"), parked_with(events, "work"));
    } else {
      co_await with(parked_with(events, "background"), throws_after(2, "work"));
    }
  };
  EXPECT_THROW(run(loop, root(true)), std::runtime_error);
  EXPECT_THROW(run(loop, root(false)), std::runtime_error);
  EXPECT_EQ(events, (Events{"~work", "~background"}));
}

TEST_F(WithTest, AnUnexpectedBackgroundEndsWorkWithItsError) {
  auto root = []() -> Task<void> {
    auto fails = []() -> Task<Expected> {
      co_await sleep_for(1ms);
      co_return std::unexpected("background");
    };
    auto work = []() -> Task<Expected> {
      co_await sleep_for(1h);
      co_return 1;
    };
    auto quick = []() -> Task<Expected> { co_return 2; };
    Expected lost = co_await with(fails, work);
    EXPECT_EQ(lost, std::unexpected("background"));
    Expected won = co_await with(fails, quick);
    EXPECT_EQ(won, 2);
    Expected own = co_await with(work, fails);
    EXPECT_EQ(own, std::unexpected("background"));
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 2ms);
}

}  // namespace
