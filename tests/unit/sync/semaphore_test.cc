// SPDX-License-Identifier: MIT
#include "weft/sync/semaphore.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct SemaphoreTest : SyncTest {
  Semaphore semaphore{4, "test"};

  // Acquires, holds them for some turns, gives them back.
  Task<void> visit(std::string name, unsigned count = 1, int turns = 0) {
    ++asked;
    auto permit = co_await semaphore.acquire(count);
    events.push_back(name);
    co_await yields(turns);
    events.push_back("/" + name);
  }
  // It stands behind those that were started before.
  Task<StartedTask<void>> start_visit(Scope& scope, std::string name, unsigned count = 1) {
    return begin(scope, visit(name, count));
  }
};

// --- Taking and giving --------------------------------------------------------------------------

LOOP_TEST(SemaphoreTest, WhatIsFreeIsTakenAtOnce) {
  auto root = [&]() -> Task<void> {
    {
      auto three = co_await semaphore.acquire(3);
      EXPECT_TRUE(three);
      EXPECT_EQ(three.count(), 3u);
      EXPECT_EQ(semaphore.available(), 1u);
      EXPECT_FALSE(semaphore.try_acquire(2));
      EXPECT_TRUE(semaphore.try_acquire(1));  // a temporary: given back at once
      EXPECT_EQ(semaphore.available(), 1u);
    }
    EXPECT_EQ(semaphore.available(), 4u);
  };
  run_on(loop, root());
}

LOOP_TEST(SemaphoreTest, AsManyAsThereArePermitsAreInside) {
  int inside = 0;
  int most = 0;
  auto visitor = [&]() -> Task<void> {
    auto permit = co_await semaphore.acquire();
    most = std::max(most, ++inside);
    co_await yields(3);
    --inside;
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 20; ++i) n.start(visitor());
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_EQ(semaphore.available(), 4u);
  };
  run_on(loop, root());
  EXPECT_EQ(most, 4);
}

LOOP_TEST(SemaphoreTest, ALargeRequestAtTheFrontIsNotOvertaken) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await semaphore.acquire(2);
    StartedTask<void> large = co_await start_visit(scope, "large", 4);
    StartedTask<void> small = co_await start_visit(scope, "small", 1);
    co_await yields(3);
    EXPECT_TRUE(events.empty());  // two are free, and small would fit
    EXPECT_EQ(semaphore.available(), 2u);
    EXPECT_FALSE(semaphore.try_acquire(1));  // nor does this one overtake
    held.release();
    EXPECT_EQ(semaphore.available(), 0u);  // they are large's at once
    EXPECT_TRUE(events.empty());           // and never inside of release()
    co_await std::move(large);
    co_await std::move(small);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"large", "/large", "small", "/small"}));
}

LOOP_TEST(SemaphoreTest, OneReleaseServesAllThatItSufficesFor) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await semaphore.acquire(4);
    StartedTask<void> a = co_await start_visit(scope, "a", 1);
    StartedTask<void> b = co_await start_visit(scope, "b", 2);
    StartedTask<void> c = co_await start_visit(scope, "c", 2);
    held.release();
    EXPECT_EQ(semaphore.available(), 1u);  // a and b have theirs, c does not fit
    co_await std::move(c);
    co_await std::move(a);
    co_await std::move(b);
    EXPECT_EQ(semaphore.available(), 4u);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"a", "/a", "b", "/b", "c", "/c"}));
}

LOOP_TEST(SemaphoreTest, ReleaseAddsPermitsUpToTheMaximum) {
  auto root = [&]() -> Task<void> {
    Semaphore items({.permits = 0, .max = 2}, "items");
    auto consumer = [&]() -> Task<void> {
      co_await items.acquire_raw(2);
      events.push_back("both");
    };
    StartedTask<void> started = consumer().start_in_current_scope();
    co_await yields(2);
    items.release();
    co_await yields(2);
    EXPECT_TRUE(events.empty());
    items.release();
    co_await std::move(started);
    items.release(2);
    EXPECT_EQ(items.available(), 2u);
    EXPECT_THROW(items.release(), UsageError);
    EXPECT_EQ(items.available(), 2u);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"both"}));
}

LOOP_TEST(SemaphoreTest, APermitMovesAndIsReleasedEarly) {
  auto root = [&]() -> Task<void> {
    SemaphorePermit a = co_await semaphore.acquire(2);
    SemaphorePermit b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(a.count(), 0u);
    EXPECT_EQ(b.count(), 2u);
    b.release();
    EXPECT_FALSE(b);
    b.release();  // without effect
    EXPECT_EQ(semaphore.available(), 4u);
    b = co_await semaphore.acquire(1);
    b = co_await semaphore.acquire(3);  // the one is given back
    EXPECT_EQ(semaphore.available(), 1u);
  };
  run_on(loop, root());
  EXPECT_EQ(semaphore.available(), 4u);
}

// --- Cancellation -------------------------------------------------------------------------------

LOOP_TEST(SemaphoreTest, CancelWhileWaitingTakesNothing) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await semaphore.acquire(4);
    StartedTask<void> a = co_await start_visit(scope, "a", 2);
    StartedTask<void> b = co_await start_visit(scope, "b", 2);
    StartedTask<void> c = co_await start_visit(scope, "c", 2);
    co_await yields(2);
    b.cancel();
    Outcome<void> how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    held.release();
    EXPECT_EQ(semaphore.available(), 0u);
    co_await std::move(a);
    co_await std::move(c);
    EXPECT_EQ(semaphore.available(), 4u);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"a", "/a", "c", "/c"}));
}

LOOP_TEST(SemaphoreTest, CancelOfALargeOneAtTheFrontLetsThoseBehindItGo) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await semaphore.acquire(2);
    StartedTask<void> large = co_await start_visit(scope, "large", 4);
    StartedTask<void> a = co_await start_visit(scope, "a", 1);
    StartedTask<void> b = co_await start_visit(scope, "b", 1);
    co_await yields(2);
    EXPECT_TRUE(events.empty());
    large.cancel();
    Outcome<void> how = co_await large.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(a);
    co_await std::move(b);
    EXPECT_EQ(semaphore.available(), 2u);
    EXPECT_TRUE(semaphore.try_acquire());  // nobody waits any more
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"a", "/a", "b", "/b"}));
}

LOOP_TEST(SemaphoreTest, CancelWhileNotifiedServesTheNext) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await semaphore.acquire(4);
    StartedTask<void> a = co_await start_visit(scope, "a", 3);
    StartedTask<void> b = co_await start_visit(scope, "b", 2);
    StartedTask<void> c = co_await start_visit(scope, "c", 2);
    co_await yields(2);
    held.release();  // a has its three and has not gone on
    EXPECT_EQ(semaphore.available(), 1u);
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    co_await std::move(c);
    EXPECT_EQ(semaphore.available(), 4u);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"b", "/b", "c", "/c"}));
}

LOOP_TEST(SemaphoreTest, CancelOfEveryoneWhileNotifiedLosesNothing) {
  auto root = [&]() -> Task<void> {
    auto held = co_await semaphore.acquire(4);
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (unsigned i = 0; i < 20; ++i) n.start(visit("x", 1 + i % 4));
      co_await until_asked(20);
      held.release();
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_EQ(semaphore.available(), 4u);
  };
  run_on(loop, root());
  EXPECT_TRUE(events.empty());
}

LOOP_TEST(SemaphoreTest, ATaskThatIsCancelledAlreadyDoesNotAcquire) {
  auto root = [&]() -> Task<void> {
    auto wait = [&] { return semaphore.acquire(); };
    co_await wait_when_cancelled(wait);
    EXPECT_EQ(semaphore.available(), 4u);
  };
  run_on(loop, root());
}

// The other branch throws, so nobody asks for the permit that this one was given.
LOOP_TEST(SemaphoreTest, AResultThatNobodyTakesIsGivenBack) {
  auto root = [&]() -> Task<void> {
    bool caught = false;
    try {
      co_await all_of(semaphore.acquire(3), throws_after(1, "on purpose"));
    } catch (const std::runtime_error&) {
      caught = true;
    }
    EXPECT_TRUE(caught);
    EXPECT_EQ(semaphore.available(), 4u);
  };
  run_on(loop, root());
}

LOOP_TEST(SemaphoreTest, ATimeoutEndsTheWaitAndLeavesNothing) {
  auto root = [&]() -> Task<void> {
    auto held = co_await semaphore.acquire(3);
    auto permit = co_await timeout(1ms, semaphore.acquire(2));
    EXPECT_FALSE(permit);
    EXPECT_TRUE(semaphore.try_acquire(1));
  };
  run_on(loop, root());
  EXPECT_EQ(semaphore.available(), 4u);
}

LOOP_TEST(SemaphoreTest, TheTreeSaysWhatOneWantsAndWhereItStands) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await semaphore.acquire(2);
    StartedTask<void> a = co_await start_visit(scope, "a", 3);
    StartedTask<void> b = co_await start_visit(scope, "b", 1);
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("Semaphore 'test', wants 3, 1 of 2 waiting"), std::string::npos) << tree;
    EXPECT_NE(tree.find("Semaphore 'test', wants 1, 2 of 2 waiting"), std::string::npos) << tree;
    held.release();
    const std::string later = task_tree(scope);
    EXPECT_NE(later.find("Semaphore 'test', wants 3, just acquired"), std::string::npos) << later;
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
}

// --- Several loops ------------------------------------------------------------------------------

struct SemaphoreLoops : TwoLoops {
  Semaphore semaphore{2};
};

TEST_F(SemaphoreLoops, AWaiterGoesOnOnTheLoopThatItAwaitedFrom) {
  auto one = [&] { return semaphore.acquire(); };
  auto both = [&] { return semaphore.acquire(2); };
  expect_to_go_on_where_they_awaited(one, both);
  EXPECT_EQ(semaphore.available(), 2u);
}

// The post is under way to the other loop when the cancel comes.
TEST_F(SemaphoreLoops, CancelWhileNotifiedFromAnotherLoopGivesBack) {
  auto there = [&]() -> Task<void> {
    auto permit = co_await semaphore.acquire(2);
    ADD_FAILURE() << "went on";
  };
  auto root = [&]() -> Task<void> {
    auto held = co_await semaphore.acquire();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, there());
      co_await sleep_for(1ms);
      held.release();
      EXPECT_EQ(semaphore.available(), 0u);
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_EQ(semaphore.available(), 2u);
  };
  run(a, root());
}

TEST_F(SemaphoreLoops, APermitMayBeReturnedOutOfOnAndReleasedElsewhere) {
  auto there = [&]() -> Task<SemaphorePermit> { co_return co_await semaphore.acquire(); };
  auto root = [&]() -> Task<void> {
    SemaphorePermit permit = co_await on(b, there());
    EXPECT_EQ(semaphore.available(), 1u);
  };
  run(a, root());
  EXPECT_EQ(semaphore.available(), 2u);
}

TEST(SemaphoreThreads, AThreadWithoutALoopReleases) {
  Semaphore items({.permits = 0, .max = 100});
  ThreadLoop loop;
  auto root = [&]() -> Task<void> {
    for (int i = 0; i < 100; ++i) co_await items.acquire_raw();
  };
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) items.release();
  });
  run(loop, root());
  producer.join();
  EXPECT_EQ(items.available(), 0u);
}

TEST(SemaphoreThreads, ManyLoopsShareThePermits) {
  constexpr unsigned kPermits = 3;
  constexpr int kTasks = 12;
  constexpr int kRounds = 200;
  Semaphore semaphore(kPermits);
  std::atomic<unsigned> inside{0};
  std::atomic<int> cancelled{0};
  auto visitor = [&](unsigned wants) -> Task<void> {
    Executor* home = Executor::current_or_null();
    for (int i = 0; i < kRounds; ++i) {
      auto permit = co_await timeout(100us, semaphore.acquire(wants));
      if (!permit) {
        ++cancelled;
        continue;
      }
      EXPECT_EQ(Executor::current_or_null(), home);
      EXPECT_LE(inside += wants, kPermits);
      if (i % 7 == 0) co_await yield();
      inside -= wants;
    }
  };
  ThreadLoop loop;
  LoopThread others[2];
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kTasks; ++i) {
        n.start(visitor(1 + i % kPermits));
        for (LoopThread& other : others) n.start_on(other.executor(), visitor(1 + i % kPermits));
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
  EXPECT_EQ(inside, 0u);
  EXPECT_EQ(semaphore.available(), kPermits);
}

// --- Misuse -------------------------------------------------------------------------------------

std::string refusal_of(auto misuse) {
  try {
    misuse();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "was not refused";
}

TEST(SemaphoreMisuse, AcquiringWhatCanNeverBeIsRefused) {
  Semaphore semaphore(4, "seats");
  for (unsigned count : {0u, 5u}) {
    auto acquire = [&] { static_cast<void>(semaphore.acquire(count)); };
    auto acquire_raw = [&] { static_cast<void>(semaphore.acquire_raw(count)); };
    auto try_acquire = [&] { static_cast<void>(semaphore.try_acquire(count)); };
    for (const std::string& why :
         {refusal_of(acquire), refusal_of(acquire_raw), refusal_of(try_acquire)}) {
      EXPECT_NE(why.find("Semaphore 'seats': from 1 to 4"), std::string::npos) << why;
    }
  }
  EXPECT_EQ(semaphore.available(), 4u);
}

TEST(SemaphoreMisuse, ReleasingMoreThanTheMaximumIsRefused) {
  Semaphore semaphore(4, "seats");
  const std::string why = refusal_of([&] { semaphore.release(); });
  EXPECT_NE(why.find("release(1) of Semaphore 'seats': more than its maximum, 4"),
            std::string::npos)
      << why;
  EXPECT_EQ(semaphore.available(), 4u);
  EXPECT_THROW(semaphore.release(UINT32_MAX), UsageError);
  semaphore.release(0);  // nothing
}

TEST(SemaphoreMisuse, LimitsThatMakeNoSenseAreRefused) {
  EXPECT_THROW(Semaphore(0), UsageError);
  EXPECT_THROW(Semaphore({.permits = 3, .max = 2}), UsageError);
}

TEST(SemaphoreMisuse, AcquiringOffAnyLoopIsRefused) {
  Semaphore semaphore(1);
  auto awaiter = semaphore.acquire().operator co_await();
  const std::string why = refusal_of([&] { static_cast<void>(awaiter.await_ready()); });
  EXPECT_NE(why.find("Semaphore::acquire()"), std::string::npos) << why;
  EXPECT_TRUE(semaphore.try_acquire());  // that may be done anywhere
}

class SemaphoreDeathTest : public ::testing::Test {
 protected:
  SemaphoreDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SemaphoreDeathTest, DestroyingOneThatIsAwaited) {
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto semaphore = std::make_unique<Semaphore>(1, "short-lived");
      co_await semaphore->acquire_raw();
      auto waits = [&]() -> Task<void> { co_await semaphore->acquire_raw(); };
      StartedTask<void> started = waits().start_in_current_scope();
      co_await yields(2);
      semaphore.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "Semaphore 'short-lived' is destroyed while tasks wait for it");
}

TEST_F(SemaphoreDeathTest, APermitThatComesBackTwice) {
  auto misuse = [] {
    Semaphore semaphore(1, "seats");
    auto permit = semaphore.try_acquire();
    semaphore.release();
  };
  EXPECT_DEATH(misuse(), "Semaphore 'seats': a permit comes back and all 1 are free");
}

}  // namespace
