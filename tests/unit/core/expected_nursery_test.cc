// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <expected>
#include <stdexcept>
#include <string>

#include "support/loop_fixture.h"

namespace weft::test {
namespace {

using Failable = std::expected<void, std::string>;
using End = std::expected<NurseryEnd, std::string>;

struct ExpectedNurseryTest : EachLoopTest {};

Task<Failable> succeed(int times) {
  co_await yields(times);
  co_return Failable();
}
Task<Failable> fail(int times, std::string why) {
  co_await yields(times);
  co_return std::unexpected(why);
}
Task<Failable> wait_forever(Events& events) {
  Marker marker(events, "sibling");
  co_await suspend_forever();
  co_return Failable();
}

LOOP_TEST(ExpectedNurseryTest, SucceedsWhenAllChildrenDo) {
  auto test = [&]() -> Task<void> {
    auto body = [&](ExpectedNursery<std::string>& n) -> Task<End> {
      n.start(succeed(1));
      n.start(succeed(3));
      co_return join;
    };
    Failable result = co_await with_expected_nursery<std::string>(body);
    EXPECT_TRUE(result.has_value());
  };
  run_on(loop, test());
}

LOOP_TEST(ExpectedNurseryTest, TheFirstErrorCancelsTheRestAndIsTheResult) {
  Events events;
  auto test = [&]() -> Task<void> {
    auto body = [&](ExpectedNursery<std::string>& n) -> Task<End> {
      n.start(wait_forever(events));
      n.start(fail(2, "first"));
      n.start(fail(20, "second"));
      co_return join;
    };
    Failable result = co_await with_expected_nursery<std::string>(body);
    EXPECT_EQ(result.error(), "first");
    EXPECT_EQ(events, Events{"~sibling"});
  };
  run_on(loop, test());
}

LOOP_TEST(ExpectedNurseryTest, TheBodysOwnErrorIsTheResult) {
  Events events;
  auto test = [&]() -> Task<void> {
    auto body = [&](ExpectedNursery<std::string>& n) -> Task<End> {
      n.start(wait_forever(events));
      co_await yield();
      co_return std::unexpected("body");
    };
    Failable result = co_await with_expected_nursery<std::string>(body);
    EXPECT_EQ(result.error(), "body");
    EXPECT_EQ(events, Events{"~sibling"});
  };
  run_on(loop, test());
}

LOOP_TEST(ExpectedNurseryTest, AnExceptionBeatsAnErrorThatIsAValue) {
  auto test = [&]() -> Task<void> {
    auto body = [&](ExpectedNursery<std::string>& n) -> Task<End> {
      n.start(throws_after(1, "thrown"));
      n.start(fail(1, "value"));
      co_return join;
    };
    EXPECT_THROW(co_await with_expected_nursery<std::string>(body), std::runtime_error);
  };
  run_on(loop, test());
}

}  // namespace
}  // namespace weft::test
