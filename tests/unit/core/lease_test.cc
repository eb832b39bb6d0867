// SPDX-License-Identifier: MIT
// PromiseChildLease: a scope held open from plain code and from other threads.
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

constexpr CancelReason kWhy{"the test said so"};

struct LeaseTest : EachLoopTest {};

LOOP_TEST(LeaseTest, AScopeDoesNotEndBeforeItsLeasesAreDropped) {
  Events events;
  PromiseChildLease lease;
  auto held = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    lease = make_promise_child_lease(scope);
  };
  auto drop = [&]() -> Task<void> {
    co_await yields(5);
    events.push_back("dropped");
    lease.reset();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> dropper = drop().start_in_current_scope();
    co_await held();
    events.push_back("ended");
    co_await std::move(dropper);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"dropped", "ended"}));
}

LOOP_TEST(LeaseTest, ALeaseDroppedBeforeTheEndCostsNothing) {
  auto body = []() -> Task<int> {
    Scope& scope = co_await current_scope();
    PromiseChildLease lease = scope.lease();
    PromiseChildLease copy = lease;
    EXPECT_TRUE(copy);
    lease.reset();
    EXPECT_FALSE(lease);
    co_return 1;
  };
  EXPECT_EQ(run_on(loop, body()), 1);
}

LOOP_TEST(LeaseTest, EveryCopyHoldsTheScope) {
  Events events;
  std::vector<PromiseChildLease> leases;
  auto held = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    leases.push_back(scope.lease());
    leases.push_back(leases.front());
    leases.push_back(leases.back());
  };
  auto drop = [&]() -> Task<void> {
    while (!leases.empty()) {
      co_await yields(2);
      events.push_back("drop");
      leases.pop_back();
    }
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> dropper = drop().start_in_current_scope();
    co_await held();
    events.push_back("ended");
    co_await std::move(dropper);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"drop", "drop", "drop", "ended"}));
}

LOOP_TEST(LeaseTest, ALeaseStartsAChildAndStays) {
  Events events;
  auto child = [&](std::string name) -> Task<void> {
    co_await yield();
    events.push_back(name);
  };
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    PromiseChildLease lease = scope.lease();
    lease.start(child("a"));
    lease.start(child("b"));
    EXPECT_TRUE(lease);
    co_return;
  };
  auto root = [&]() -> Task<void> {
    co_await body();
    events.push_back("ended");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"a", "b", "ended"}));
}

LOOP_TEST(LeaseTest, StartWithParentScopeConsumesTheLease) {
  auto body = []() -> Task<int> {
    Scope& scope = co_await current_scope();
    PromiseChildLease lease = scope.lease();
    StartedTask<int> a = returns(1).start_with_parent_scope(std::move(lease));
    EXPECT_FALSE(lease);
    StartedTask<int> b = returns(2).start_immediate_with_parent_scope(scope.lease());
    EXPECT_TRUE(b.is_done());
    int first = co_await std::move(a);
    int second = co_await std::move(b);
    co_return first * 10 + second;
  };
  EXPECT_EQ(run_on(loop, body()), 12);
}

LOOP_TEST(LeaseTest, AScopeThatWaitsForALeaseTakesOneMoreChildThroughIt) {
  Events events;
  PromiseChildLease lease;
  auto held = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    lease = scope.lease();
  };
  auto child = [&]() -> Task<void> {
    co_await yields(4);
    events.push_back("child");
  };
  auto later = [&]() -> Task<void> {
    co_await yields(3);  // held() waits for the lease by now
    StartedTask<void> s = child().start_with_parent_scope(std::move(lease));
    s.detach();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> l = later().start_in_current_scope();
    co_await held();
    events.push_back("ended");
    co_await std::move(l);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"child", "ended"}));
}

LOOP_TEST(LeaseTest, AChildStartedThroughALeaseIntoACancelledScopeIsCancelled) {
  auto body = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    PromiseChildLease lease = scope.lease();
    auto guard = co_await ignore_cancellation();  // keeps this task going
    StartedTask<void> before = parked().start_with_parent_scope(lease);
    lease.cancel(kWhy);
    EXPECT_TRUE(lease.is_cancelled());
    EXPECT_FALSE(scope.is_effectively_cancelled());
    before.cancel(kWhy);
    Outcome<void> how = co_await before.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, body());

  auto parent = [](StartedTask<void>* out) -> Task<void> {
    Scope& scope = co_await current_scope();
    PromiseChildLease lease = scope.lease();
    scope.cancel(kWhy);
    *out = parked().start_with_parent_scope(std::move(lease));
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> child;
    StartedTask<void> p = parent(&child).start_in_current_scope();
    Outcome<void> joined = co_await p.outcome();
    EXPECT_TRUE(joined.has_value());
    Outcome<void> how = co_await child.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &kWhy);
    }
  };
  run_on(loop, root());
}

LOOP_TEST(LeaseTest, ALeasesErrorBelongsToTheScope) {
  auto body = []() -> Task<void> {
    auto in_nursery = [](Nursery& n) -> Task<NurseryEnd> {
      n.lease().start(throws_after(1, "leased"));
      co_await suspend_forever();
      co_return join;
    };
    try {
      co_await with_nursery(in_nursery);
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "leased");
    }
  };
  run_on(loop, body());
}

LOOP_TEST(LeaseTest, ANurseryStaysOpenWhileItsCancelHandleLives) {
  Events events;
  PromiseChildLease handle;
  auto drop = [&]() -> Task<void> {
    co_await yields(5);
    handle.cancel(kWhy);
    events.push_back("cancelled");
    handle.reset();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> d = drop().start_in_current_scope();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      handle = n.cancel_handle();
      n.start(parked_with(events, "child"));
      co_return join;
    };
    co_await with_nursery(body);
    events.push_back("ended");
    co_await std::move(d);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"cancelled", "~child", "ended"}));
}

LOOP_TEST(LeaseTest, ACancelledTaskWaitsForItsLeasesBeforeItsFrameIsDestroyed) {
  Events events;
  PromiseChildLease lease;
  auto held = [&]() -> Task<void> {
    Marker marker(events, "frame");
    Scope& scope = co_await current_scope();
    lease = scope.lease();
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = held().start_in_current_scope();
    co_await yields(2);
    s.cancel();
    co_await yields(3);
    events.push_back("dropped");
    lease.reset();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"dropped", "~frame"}));
}

// --- Across threads and loops -------------------------------------------------------------------

TEST(LeaseAcrossThreads, APlainThreadStartsCancelsAndDrops) {
  ThreadLoop loop;
  std::atomic<int> ran = 0;
  auto child = [&]() -> Task<void> {
    EXPECT_EQ(Executor::current_or_null(), &loop);
    ++ran;
    co_await suspend_forever();
  };
  std::thread worker;
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      worker = std::thread([&child, lease = n.lease()]() mutable {
        for (int i = 0; i < 10; ++i) lease.start(child());
        lease.cancel(kWhy);
        lease.reset();
      });
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  worker.join();
  EXPECT_EQ(ran, 10);
  EXPECT_EQ(loop.strand_count(), 0u);
}

TEST(LeaseAcrossThreads, ADroppedLeaseNeverCompletesItsScopeInline) {
  ThreadLoop loop;
  std::thread worker;
  std::thread::id ended_on;
  auto held = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    worker = std::thread([lease = scope.lease()]() mutable { lease.reset(); });
  };
  auto root = [&]() -> Task<void> {
    co_await held();
    ended_on = std::this_thread::get_id();
  };
  run_on(loop, root());
  worker.join();
  EXPECT_EQ(ended_on, std::this_thread::get_id());
}

TEST(LeaseAcrossThreads, ACancelThroughALeaseThatRacesTheEndIsWaitedFor) {
  // The kick lies in the loop's inbox when the task ends: the loop must not end before it.
  auto body = []() -> Task<int> {
    Scope& scope = co_await current_scope();
    std::thread([lease = scope.lease()]() mutable {
      lease.cancel();
      lease.reset();
    }).join();
    co_return 1;
  };
  {
    VirtualLoop loop;
    EXPECT_EQ(run_on(loop, body()), 1);
    EXPECT_EQ(loop.strand_count(), 0u);
  }
  {
    ThreadLoop loop;
    EXPECT_EQ(run_on(loop, body()), 1);
    EXPECT_EQ(loop.strand_count(), 0u);
  }
}

TEST(LeaseAcrossThreads, ACancelThroughALeaseRacingTheParentsCancelKicksOnce) {
  // A child without a handle whose scope was leased is not the home loop's alone.
  constexpr int kRounds = 50;
  ThreadLoop loop;
  std::atomic<int> round{-1};
  std::atomic<int> done{-1};
  std::vector<PromiseChildLease> leases(kRounds);
  std::thread worker([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (round.load() < i) std::this_thread::yield();
      leases[i].cancel(kWhy);
      leases[i].reset();
      done = i;
    }
  });
  auto child = [&](int i) -> Task<void> {
    Scope& scope = co_await current_scope();
    leases[i] = scope.lease();
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    for (int i = 0; i < kRounds; ++i) {
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        n.start(child(i));
        co_await yields(2);
        round = i;
        co_return cancel;
      };
      co_await with_nursery(body);
    }
  };
  run_on(loop, root());
  worker.join();
  EXPECT_EQ(done, kRounds - 1);
}

TEST(LeaseAcrossLoops, AChildStartedHereIsAChildOfAScopeThere) {
  VirtualLoop here;
  VirtualLoop there(here);
  Events events;
  auto child = [&]() -> Task<void> {
    EXPECT_EQ(Executor::current_or_null(), &here);
    co_await yields(3);
    EXPECT_EQ(Executor::current_or_null(), &here);
    events.push_back("child");
  };
  PromiseChildLease lease;
  auto held = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    lease = scope.lease();
  };
  auto starter = [&]() -> Task<void> {
    while (!lease) co_await yield();
    StartedTask<void> s = child().start_immediate_with_parent_scope(std::move(lease));
    s.detach();
  };
  auto root = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    PromiseChildLease my_lease = mine.lease();
    // `there` runs held() as a guest of this tree.
    struct Post : Runnable {
      Post(Task<void> t, PromiseChildLease l)
          : Runnable(&call), task(std::move(t)), lease(std::move(l)) {}
      static void call(Runnable& work) noexcept {
        auto& self = static_cast<Post&>(work);
        self.started =
            std::move(self.task).start_immediate_with_parent_scope(std::move(self.lease));
      }
      Task<void> task;
      PromiseChildLease lease;
      StartedTask<void> started;
    };
    Post post(held(), std::move(my_lease));
    EXPECT_TRUE(there.post(post));
    StartedTask<void> s = starter().start(mine);
    co_await std::move(s);
    while (!post.started.valid() || !post.started.is_done()) co_await yield();
    events.push_back("scope there ended");
  };
  run_on(here, root());
  EXPECT_EQ(events, (Events{"child", "scope there ended"}));
}

}  // namespace
