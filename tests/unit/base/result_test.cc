// SPDX-License-Identifier: MIT
#include "weft/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace {

using weft::or_throw;
using weft::Result;
using weft::TimedOut;

TEST(Result, OrThrowPassesTheValueOn) { EXPECT_EQ(or_throw(Result<int>(7)), 7); }

TEST(Result, OrThrowMovesAMoveOnlyValueOut) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  EXPECT_EQ(*or_throw(std::move(result)), 7);
}

TEST(Result, OrThrowOfVoidReturnsWithoutAnError) { EXPECT_NO_THROW(or_throw(Result<void>())); }

TEST(Result, OrThrowTurnsAnErrorCodeIntoASystemErrorThatSaysIt) {
  const auto code = std::make_error_code(std::errc::connection_refused);
  try {
    or_throw(Result<int>(std::unexpected(code)));
    FAIL() << "did not throw";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(std::string(error.what()), code.message());
  }
}

TEST(Result, OrThrowOfVoidThrowsTheError) {
  Result<void> result = std::unexpected(std::make_error_code(std::errc::broken_pipe));
  EXPECT_THROW(or_throw(result), std::system_error);
}

TEST(Result, OrThrowRethrowsAnExceptionUnchanged) {
  auto exception = std::make_exception_ptr(std::out_of_range("there"));
  try {
    or_throw(Result<int, std::exception_ptr>(std::unexpected(exception)));
    FAIL() << "did not throw";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "there");
  }
}

TEST(Result, OrThrowThrowsAnyOtherErrorAsItIs) {
  EXPECT_THROW(or_throw(Result<int, TimedOut>(std::unexpected(TimedOut{}))), TimedOut);
}

TEST(Result, TimedOutComparesAsAnError) {
  const Result<int, TimedOut> late = std::unexpected(TimedOut{});
  const Result<int, TimedOut> in_time = 1;
  EXPECT_EQ(late, std::unexpected(TimedOut{}));
  EXPECT_NE(late, in_time);
  static_assert(TimedOut{} == TimedOut{});
}

}  // namespace
