// SPDX-License-Identifier: MIT
// StartedTask across threads and loops.
#include <thread>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

constexpr CancelReason kWhy{"the test said so"};

TEST(StartedTaskAcrossThreads, CancelDetachAndDropWorkOnAnyThread) {
  weft::testing::ThreadLoop loop;
  auto root = []() -> Task<void> {
    StartedTask<void> cancelled = parked().start_in_current_scope();
    StartedTask<void> dropped = parked().start_in_current_scope();
    StartedTask<void> detached = yields(3).start_in_current_scope();
    std::thread([&, d = std::move(dropped)]() mutable {
      cancelled.cancel(kWhy);
      StartedTask<void> last = std::move(d);
      detached.detach();
    }).join();
    Outcome<void> how = co_await cancelled.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &kWhy);
    }
  };
  run_on(loop, root());
  EXPECT_EQ(loop.strand_count(), 0u);
}

TEST(StartedTaskAcrossLoops, AHandleIsAwaitedFromAnotherLoop) {
  weft::testing::LoopThread other;
  weft::testing::ThreadLoop loop;
  auto where = []() -> Task<Executor*> {
    co_await yield();
    co_return Executor::current_or_null();
  };
  auto root = [&]() -> Task<Executor*> {
    StartedTask<Executor*> s = where().start_with_parent_scope(other.lease());
    Executor* ran_on = co_await std::move(s);
    EXPECT_EQ(Executor::current_or_null(), &loop);
    co_return ran_on;
  };
  EXPECT_EQ(run_on(loop, root()), &other.executor());
}

TEST(StartedTaskAcrossLoops, CancellingTheWaiterReachesATaskOnAnotherLoop) {
  weft::testing::LoopThread other;
  weft::testing::ThreadLoop loop;
  auto waiter = [&]() -> Task<void> {
    StartedTask<void> s = parked().start_with_parent_scope(other.lease());
    co_await std::move(s);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> w = waiter().start_in_current_scope();
    co_await yield();
    w.cancel(kWhy);
    Outcome<void> how = co_await w.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
}

}  // namespace
