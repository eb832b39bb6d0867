// SPDX-License-Identifier: MIT
// What starts in a scope that an exception or an ok() error has left, and that still waits.
#include <gtest/gtest.h>

#include <expected>
#include <stdexcept>
#include <string>

#include "support/loop_fixture.h"

namespace weft::test {
namespace {

struct LeavingScopeTest : EachLoopTest {};

using Failable = std::expected<int, std::string>;

Task<Failable> fails_by_exception(PromiseChildLease& lease) {
  auto& scope = co_await current_scope();
  lease = scope.lease();
  throw std::runtime_error("left");
}
Task<Failable> left_behind() { co_return std::unexpected("left"); }
Task<Failable> fails_by_ok(PromiseChildLease& lease) {
  auto& scope = co_await current_scope();
  lease = scope.lease();
  co_return co_await ok(left_behind());
}
Task<Failable> returns(PromiseChildLease& lease) {
  auto& scope = co_await current_scope();
  lease = scope.lease();
  co_return 1;
}

LOOP_TEST(LeavingScopeTest, AChildThatArrivesAfterAnExceptionIsCancelled) {
  auto test = [&]() -> Task<void> {
    auto& scope = co_await current_scope();
    PromiseChildLease lease;
    auto task = fails_by_exception(lease).start(scope);
    co_await yields(2);
    lease.start(parked());
    lease.reset();
    Outcome<Failable> how = co_await task.outcome();
    EXPECT_TRUE(how.has_error());
  };
  run_on(loop, test());
}

LOOP_TEST(LeavingScopeTest, AChildThatArrivesAfterAnOkErrorIsCancelled) {
  auto test = [&]() -> Task<void> {
    auto& scope = co_await current_scope();
    PromiseChildLease lease;
    auto task = fails_by_ok(lease).start(scope);
    co_await yields(2);
    lease.start(parked());
    lease.reset();
    Failable result = co_await std::move(task);
    EXPECT_EQ(result.error(), "left");
  };
  run_on(loop, test());
}

LOOP_TEST(LeavingScopeTest, AChildThatArrivesAfterCoReturnIsJoined) {
  Events events;
  auto test = [&]() -> Task<void> {
    auto& scope = co_await current_scope();
    PromiseChildLease lease;
    auto task = returns(lease).start(scope);
    co_await yields(2);
    auto child = [&]() -> Task<void> {
      co_await yields(3);
      events.push_back("ran to its end");
    };
    lease.start(child());
    lease.reset();
    Failable result = co_await std::move(task);
    EXPECT_EQ(result.value(), 1);
    EXPECT_EQ(events, Events{"ran to its end"});
  };
  run_on(loop, test());
}

}  // namespace
}  // namespace weft::test
