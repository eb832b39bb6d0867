// SPDX-License-Identifier: MIT
#include "weft/core/ok.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;
using Text = std::expected<int, std::string>;

struct OkTest : LoopTest<VirtualLoop> {
  Events events;
};

Task<Text> later(Text result) {
  co_await yield();
  co_return result;
}

TEST_F(OkTest, AValueGoesOnAndAnErrorEndsTheCoroutine) {
  auto twice = [&](Text input) -> Task<Text> {
    Marker marker(events, "local");
    int value = co_await ok(later(input));
    events.push_back("went on");
    co_return value * 2;
  };
  EXPECT_EQ(run(loop, twice(4)), 8);
  EXPECT_EQ(run(loop, twice(std::unexpected("bad"))), std::unexpected("bad"));
  EXPECT_EQ(events, (Events{"went on", "~local", "~local"}));
}

TEST_F(OkTest, AwaitedInLineTheCallerGoesOnWithTheError) {
  auto inner = []() -> Task<Text> {
    Text bad = std::unexpected("deep");
    int value = co_await ok(just(bad));
    co_return value;
  };
  auto outer = [&]() -> Task<std::string> {
    Text result = co_await inner();
    co_return result.error();
  };
  EXPECT_EQ(run(loop, outer()), "deep");
}

TEST_F(OkTest, VoidAndMoveOnlyValuesAndConvertibleErrorsPass) {
  using Void = std::expected<void, const char*>;
  using Pointer = std::expected<std::unique_ptr<int>, const char*>;
  auto subject = [](bool fail) -> Task<Text> {
    co_await ok(just(Void()));
    std::unique_ptr<int> pointer = co_await ok(just(Pointer(std::make_unique<int>(2))));
    if (fail) co_await ok(just(Void(std::unexpected("converted"))));
    co_return *pointer;
  };
  EXPECT_EQ(run(loop, subject(false)), 2);
  EXPECT_EQ(run(loop, subject(true)), std::unexpected("converted"));
}

TEST_F(OkTest, ExceptionsPassThrough) {
  auto fails = []() -> Task<Text> {
    co_await yield();
    throw std::runtime_error("thrown");
    co_return 1;
  };
  auto subject = [&]() -> Task<Text> {
    int value = co_await ok(fails());
    co_return value;
  };
  EXPECT_THROW(run(loop, subject()), std::runtime_error);
}

TEST_F(OkTest, AnErrorCancelsAndJoinsTheChildrenBeforeTheLocalsDie) {
  auto child = [&]() -> Task<void> {
    Marker marker(events, "child");
    co_await suspend_forever();
  };
  auto subject = [&](bool at_once) -> Task<Text> {
    Marker marker(events, "local");
    child().start_in_current_scope().detach();
    co_await yield();
    Text bad = std::unexpected("no");
    if (at_once) {
      co_await ok(just(bad));
    } else {
      co_await ok(later(bad));
    }
    events.push_back("not reached");
    co_return 1;
  };
  for (bool at_once : {false, true}) {
    events.clear();
    EXPECT_EQ(run(loop, subject(at_once)), std::unexpected("no"));
    EXPECT_EQ(events, (Events{"~child", "~local"}));
  }
}

TEST_F(OkTest, CancellationReachesItAndAnErrorThatComesAnywayIsDelivered) {
  auto stubborn = [](Text result) -> Task<Text> {
    co_await noncancellable(sleep_for(2ms));
    co_return result;
  };
  auto subject = [&](bool is_stubborn) -> Task<Text> {
    if (is_stubborn) {
      int value = co_await ok(stubborn(std::unexpected("late")));
      co_return value;
    }
    co_await suspend_forever();
    co_return 1;
  };
  auto root = [&](bool is_stubborn) -> Task<Outcome<Text>> {
    StartedTask<Text> s = subject(is_stubborn).start_in_current_scope();
    co_await sleep_for(1ms);
    s.cancel();
    co_return co_await s.outcome();
  };
  Outcome<Text> late = run(loop, root(true));
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(std::move(late).get(), std::unexpected("late"));
  EXPECT_TRUE(run(loop, root(false)).is_cancelled());
}

}  // namespace
