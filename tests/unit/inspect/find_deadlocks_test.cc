// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/inspect/deadlock.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using inspect::Deadlock;
using inspect::find_deadlocks;
using weft::testing::VirtualLoop;

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "no \"" << (part) << "\" in:\n" << (text)

struct FindDeadlocks : ::testing::Test {
  VirtualLoop loop;
  VirtualLoop other{loop};
  Mutex a{"a"}, b{"b"}, c{"c"};
  SharedMutex s{"s"}, t{"t"};
  std::vector<Executor*> both{&loop, &other};

  // Starts the tasks here, lets all come to a wait, and asks.
  Task<std::vector<Deadlock>> found_among(std::vector<Task<void>> tasks) {
    std::vector<Deadlock> found;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (Task<void>& task : tasks) n.start(std::move(task));
      co_await sleep_for(1ms);
      found = co_await find_deadlocks(both);
      co_return cancel;
    };
    co_await with_nursery(body);
    co_return found;
  }
  template <class... Tasks>
  std::vector<Deadlock> found(Tasks... tasks) {
    std::vector<Task<void>> all;
    (all.push_back(std::move(tasks)), ...);
    return run(loop, found_among(std::move(all)));
  }
};

Task<void> lock_both(Mutex& first, Mutex& second) {
  auto outer = co_await first.lock();
  co_await yields(3);
  auto inner = co_await second.lock();
}
Task<void> lock_one(Mutex& mutex) { auto lock = co_await mutex.lock(); }
Task<void> hold(Mutex& mutex) {
  auto lock = co_await mutex.lock();
  co_await suspend_forever();
}

Task<void> share_one(SharedMutex& mutex) { auto lock = co_await mutex.lock_shared(); }
Task<void> hold_shared(SharedMutex& mutex) {
  auto lock = co_await mutex.lock_shared();
  co_await suspend_forever();
}
// The first is shared, the second wanted alone.
template <class Second>
Task<void> share_and_lock(SharedMutex& first, Second& second) {
  auto outer = co_await first.lock_shared();
  co_await yields(3);
  auto inner = co_await second.lock();
}
template <class First, class Second>
Task<void> lock_and_lock(First& first, Second& second) {
  auto outer = co_await first.lock();
  co_await yields(3);
  auto inner = co_await second.lock();
}

// The locks that are wanted, in the circle's order, from the first name on.
std::vector<std::string> wanted(const Deadlock& deadlock) {
  std::vector<std::string> names;
  for (const inspect::Deadlocked& each : deadlock.tasks) names.push_back(each.lock);
  if (!names.empty()) {
    std::rotate(names.begin(), std::min_element(names.begin(), names.end()), names.end());
  }
  return names;
}

// --- Found ----------------------------------------------------------------------------------------

TEST_F(FindDeadlocks, TwoThatWantEachOthersLock) {
  const std::vector<Deadlock> all = found(lock_both(a, b), lock_both(b, a), lock_one(a));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(wanted(all[0]), (std::vector<std::string>{"Mutex 'a'", "Mutex 'b'"}));
  for (const inspect::Deadlocked& each : all[0].tasks) {
    EXPECT_EQ(each.loop, loop.home());
    EXPECT_FALSE(each.through_child);
    EXPECT_NE(std::string(each.wanted_at.function_name()).find("lock_both"), std::string::npos);
    EXPECT_EQ(each.held_at.line() + 2, each.wanted_at.line());
    EXPECT_HAS(each.stack, "task waits in ");
    EXPECT_HAS(each.stack, each.lock + " held by task in ");
    EXPECT_HAS(each.stack, "started in a nursery of ");
  }
  const std::string text = inspect::to_text(all[0]);
  EXPECT_HAS(text, "deadlock of 2 tasks\n");
  EXPECT_HAS(text, "task 1 on loop " + std::to_string(loop.home()) + " wants Mutex '");
  EXPECT_HAS(text, "  which task 2 has, locked in ");
  EXPECT_HAS(text, "  which task 1 has, locked in ");
}

TEST_F(FindDeadlocks, ThreeInACircle) {
  const std::vector<Deadlock> all = found(lock_both(a, b), lock_both(b, c), lock_both(c, a));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(wanted(all[0]), (std::vector<std::string>{"Mutex 'a'", "Mutex 'b'", "Mutex 'c'"}));
}

TEST_F(FindDeadlocks, ALongCircleAndWhoStandsBehindItIsNotPartOfIt) {
  constexpr std::size_t kLocks = 200;
  std::vector<std::unique_ptr<Mutex>> locks;
  for (std::size_t i = 0; i <= kLocks; ++i) locks.push_back(std::make_unique<Mutex>());
  std::vector<Task<void>> tasks;
  tasks.push_back(lock_both(*locks[kLocks], *locks[0]));  // behind
  for (std::size_t i = 0; i < kLocks; ++i) {
    tasks.push_back(lock_both(*locks[i], *locks[(i + 1) % kLocks]));
  }
  const std::vector<Deadlock> all = run(loop, found_among(std::move(tasks)));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].tasks.size(), kLocks);
}

TEST_F(FindDeadlocks, SeveralAtOnce) {
  Mutex d{"d"};
  const std::vector<Deadlock> all =
      found(lock_both(a, b), lock_both(b, a), lock_both(c, d), lock_both(d, c));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(wanted(all[0]), wanted(all[1]));
}

TEST_F(FindDeadlocks, ATaskThatLocksTwice) {
  const std::vector<Deadlock> all = found(lock_both(a, a));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].tasks.size(), 1u);
  EXPECT_HAS(inspect::to_text(all[0]), "deadlock of 1 task\n");
}

TEST_F(FindDeadlocks, ATaskThatLocksTwiceInATaskThatItAwaits) {
  auto twice = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await lock_one(a);
  };
  const std::vector<Deadlock> all = found(twice());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_HAS(all[0].tasks[0].stack, "lock_one(");
}

TEST_F(FindDeadlocks, AHolderThatWaitsForItsChildren) {
  auto parent = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(parked());
      n.start(lock_one(b));
      co_return join;
    };
    co_await with_nursery(body);
  };
  const std::vector<Deadlock> all = found(parent(), lock_both(b, a));
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].tasks.size(), 2u);
  EXPECT_EQ(all[0].tasks[0].through_child + all[0].tasks[1].through_child, 1);
  EXPECT_HAS(inspect::to_text(all[0]), "'s parent has, locked in ");
}

TEST_F(FindDeadlocks, AHolderThatJoinsTheChildrenOfATaskThatItAwaits) {
  auto starts = [&]() -> Task<void> {
    lock_one(b).start_in_current_scope().detach();
    co_return;
  };
  auto parent = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    co_await starts();
  };
  EXPECT_EQ(found(parent(), lock_both(b, a)).size(), 1u);
}

TEST_F(FindDeadlocks, AHolderThatAwaitsTheOneThroughWrappers) {
  auto all_branch = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    auto nothing = []() -> Task<void> { co_return; };
    co_await all_of(nothing(), lock_one(b));
  };
  EXPECT_EQ(found(all_branch(), lock_both(b, a)).size(), 1u);
  auto chained = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    auto next = [this] { return lock_one(c); };
    co_await (lock_one(b) | then(next));
  };
  EXPECT_EQ(found(chained(), lock_both(b, a)).size(), 1u);
  auto named = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    auto inner = co_await annotate("both", b.lock());
  };
  EXPECT_EQ(found(named(), lock_both(b, a)).size(), 1u);
}

TEST_F(FindDeadlocks, AcrossLoops) {
  auto there = [&]() -> Task<void> {
    auto work = [&]() -> Task<void> { co_await lock_both(b, a); };
    co_await on(other, work());
  };
  const std::vector<Deadlock> all = found(lock_both(a, b), there());
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].tasks.size(), 2u);
  EXPECT_NE(all[0].tasks[0].loop, all[0].tasks[1].loop);
}

// The holder is here, and what it waits for is there.
TEST_F(FindDeadlocks, AHolderThatAwaitsOneOnAnotherLoop) {
  auto by_on = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    co_await on(other, lock_one(b));
  };
  EXPECT_EQ(found(by_on(), lock_both(b, a)).size(), 1u);
  auto by_nursery = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(other, lock_one(b));
      co_return join;
    };
    co_await with_nursery(body);
  };
  EXPECT_EQ(found(by_nursery(), lock_both(b, a)).size(), 1u);
}

TEST_F(FindDeadlocks, OnTheLoopOfTheTaskThatAsks) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(lock_both(a, b));
      n.start(lock_both(b, a));
      co_await sleep_for(1ms);
      const std::vector<Deadlock> here = co_await find_deadlocks();
      EXPECT_EQ(here.size(), 1u);
      const std::vector<Deadlock> there = co_await on(other, find_deadlocks());
      EXPECT_TRUE(there.empty());
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

TEST_F(FindDeadlocks, AfterTheCancelOfOneThereIsNone) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      StartedTask<void> one = lock_both(a, b).start(n);
      n.start(lock_both(b, a));
      co_await sleep_for(1ms);
      const std::vector<Deadlock> before = co_await find_deadlocks(both);
      EXPECT_EQ(before.size(), 1u);
      one.cancel();
      const std::vector<Deadlock> after = co_await find_deadlocks(both);
      EXPECT_TRUE(after.empty());
      static_cast<void>(co_await one.outcome());
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

// A cancel ends a wait before anybody looks again; one that is shielded goes on.
TEST_F(FindDeadlocks, ACancelledTaskWhoseWaitIsShielded) {
  auto alone = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    auto inner = co_await noncancellable(b.lock());
  };
  auto other_one = [&]() -> Task<void> {
    auto lock = co_await b.lock();
    co_await yields(3);
    auto inner = co_await a.lock();
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      StartedTask<void> cancelled = alone().start(n);
      StartedTask<void> second = other_one().start(n);
      co_await sleep_for(1ms);
      cancelled.cancel();
      const std::vector<Deadlock> all = co_await find_deadlocks(both);
      EXPECT_EQ(all.size(), 1u);
      second.cancel();
      static_cast<void>(co_await cancelled.outcome());
      static_cast<void>(co_await second.outcome());
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

// --- A lock that is shared --------------------------------------------------------------------------

TEST_F(FindDeadlocks, OneThatSharesItAndOneThatWantsItAlone) {
  const std::vector<Deadlock> all = found(share_and_lock(s, a), lock_and_lock(a, s));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(wanted(all[0]), (std::vector<std::string>{"Mutex 'a'", "SharedMutex 's'"}));
  for (std::size_t i : {0u, 1u}) {
    EXPECT_EQ(all[0].tasks[i].held_at.line() + 2, all[0].tasks[1 - i].wanted_at.line());
  }
  const std::string text = inspect::to_text(all[0]);
  EXPECT_HAS(text, "share_and_lock(");
  EXPECT_HAS(text, "lock_and_lock(");
  EXPECT_HAS(text, "SharedMutex 's', wants it alone, held by 1 who share it, the last locked in ");
}

TEST_F(FindDeadlocks, TwoThatHaveSharedMutexesAlone) {
  const std::vector<Deadlock> all = found(lock_and_lock(s, t), lock_and_lock(t, s));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(wanted(all[0]), (std::vector<std::string>{"SharedMutex 's'", "SharedMutex 't'"}));
  EXPECT_HAS(inspect::to_text(all[0]), "wants it alone, held by task in ");
}

TEST_F(FindDeadlocks, OneOfSeveralThatShareIt) {
  EXPECT_EQ(found(hold_shared(s), share_and_lock(s, a), hold_shared(s), lock_and_lock(a, s)).size(),
            1u);
}

TEST_F(FindDeadlocks, TwoThatShareItAndWantWhatTheOneWhoWaitsHas) {
  const std::vector<Deadlock> all =
      found(share_and_lock(s, a), share_and_lock(s, a), lock_and_lock(a, s));
  EXPECT_EQ(all.size(), 2u) << "one with each";
}

// It stands behind one that waits for it to leave.
TEST_F(FindDeadlocks, ATaskThatSharesItTwiceWithOneInBetween) {
  auto twice = [&]() -> Task<void> {
    auto outer = co_await s.lock_shared();
    co_await yields(5);
    auto inner = co_await s.lock_shared();
  };
  auto between = [&]() -> Task<void> {
    co_await yields(2);
    auto lock = co_await s.lock();
  };
  const std::vector<Deadlock> all = found(twice(), between());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].tasks.size(), 1u);
}

TEST_F(FindDeadlocks, AcrossLoopsAMutexAndASharedMutex) {
  auto there = [&]() -> Task<void> {
    auto work = [&]() -> Task<void> { co_await lock_and_lock(a, s); };
    co_await on(other, work());
  };
  const std::vector<Deadlock> all = found(share_and_lock(s, a), there());
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].tasks.size(), 2u);
  EXPECT_NE(all[0].tasks[0].loop, all[0].tasks[1].loop);
}

// A guard that shares it may leave its loop with its task.
TEST_F(FindDeadlocks, OneThatSharesItAndHasMovedToAnotherLoop) {
  auto moves = [&]() -> Task<void> {
    auto lock = co_await s.lock_shared();
    co_await resume_on(other);
    co_await lock_one(a);
  };
  auto started = [&]() -> Task<void> { co_await on(loop, moves()); };
  EXPECT_EQ(found(lock_and_lock(a, s), started()).size(), 1u);
}

TEST_F(FindDeadlocks, TwoThatShareAreNone) {
  auto shares = [](SharedMutex& first, SharedMutex& second) -> Task<void> {
    auto outer = co_await first.lock_shared();
    co_await yields(3);
    auto inner = co_await second.lock_shared();
    co_await suspend_forever();
  };
  EXPECT_TRUE(found(shares(s, t), shares(t, s)).empty());
  EXPECT_TRUE(found(shares(s, t), shares(t, s), lock_and_lock(a, s)).empty()) << "they do not wait";
}

TEST_F(FindDeadlocks, WhoHasSharedItAndLeftIsNotInTheWay) {
  auto shared_once = [&]() -> Task<void> {
    co_await share_one(s);
    co_await lock_one(a);
  };
  EXPECT_TRUE(found(hold_shared(s), lock_and_lock(a, s), shared_once()).empty());
}

TEST_F(FindDeadlocks, AShareThatWasGivenAwayIsNotItsFirstOwners) {
  auto keep = [](SharedMutexSharedGuard) -> Task<void> { co_await sleep_for(1h); };
  auto gives = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      SharedMutexSharedGuard lock = co_await s.lock_shared();
      n.start(keep(std::move(lock)));
      co_await yields(3);
      co_await lock_one(b);
      co_return join;
    };
    co_await with_nursery(body);
  };
  EXPECT_TRUE(found(gives(), lock_and_lock(b, s)).empty());
  auto raw = [&]() -> Task<void> {
    co_await s.lock_shared_raw();
    OnExit unlock([&] { s.unlock_shared(); });
    co_await yields(3);
    co_await lock_one(b);
  };
  EXPECT_TRUE(found(raw(), lock_and_lock(b, s)).empty());
  auto raw_alone = [&]() -> Task<void> {
    co_await s.lock_raw();
    OnExit unlock([&] { s.unlock(); });
    co_await yields(3);
    co_await lock_one(b);
  };
  EXPECT_TRUE(found(raw_alone(), lock_and_lock(b, s)).empty());
}

// --- A Condition's lock -------------------------------------------------------------------------------

// It was notified, and waits for the lock of another that waits for one of its own.
TEST_F(FindDeadlocks, OneThatWaitsToHaveItsLockAgain) {
  Condition changed{"changed"};
  auto among = [&](auto& lock) {
    auto waits = [&]() -> Task<void> {
      auto outer = co_await b.lock();
      auto inner = co_await lock.lock();
      co_await changed.wait(inner);
    };
    auto notifies = [&]() -> Task<void> {
      co_await yields(3);
      auto inner = co_await lock.lock();
      changed.notify_one();
      co_await lock_one(b);
    };
    return found(waits(), notifies());
  };
  for (const std::vector<Deadlock>& all : {among(a), among(s)}) {
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].tasks.size(), 2u);
  }
}

TEST_F(FindDeadlocks, OneThatWaitsForANotifyIsNone) {
  Condition changed{"changed"};
  auto waits = [&]() -> Task<void> {
    auto outer = co_await b.lock();
    auto inner = co_await s.lock();
    co_await changed.wait(inner);
  };
  auto wants = [&]() -> Task<void> {
    co_await yields(3);
    auto inner = co_await s.lock();
    co_await lock_one(b);
  };
  EXPECT_TRUE(found(waits(), wants()).empty());
}

// --- Not found --------------------------------------------------------------------------------------

TEST_F(FindDeadlocks, AChainIsNoCircle) {
  EXPECT_TRUE(found(hold(c), lock_both(b, c), lock_both(a, b)).empty());
}

TEST_F(FindDeadlocks, AWaitForOneOfSeveralIsNone) {
  auto any = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    co_await any_of(b.lock(), sleep_for(1h));
  };
  EXPECT_TRUE(found(any(), lock_both(b, a)).empty());
  auto any_task = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    co_await any_of(lock_one(b), sleep_for(1h));
  };
  EXPECT_TRUE(found(any_task(), lock_both(b, a)).empty());
  auto timed = [&]() -> Task<void> {
    auto lock = co_await a.lock();
    co_await yields(3);
    static_cast<void>(co_await timeout(1h, b.lock()));
  };
  EXPECT_TRUE(found(timed(), lock_both(b, a)).empty());
}

// Whoever has the guard will unlock it.
TEST_F(FindDeadlocks, AGuardThatWasGivenAwayIsNotItsFirstOwners) {
  auto keep = [](MutexGuard) -> Task<void> { co_await sleep_for(1h); };
  auto gives = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      MutexGuard lock = co_await a.lock();
      n.start(keep(std::move(lock)));
      co_await yields(3);
      co_await lock_one(b);
      co_return join;
    };
    co_await with_nursery(body);
  };
  EXPECT_TRUE(found(gives(), lock_both(b, a)).empty());
  auto raw = [&]() -> Task<void> {
    co_await a.lock_raw();
    OnExit unlock([&] { a.unlock(); });
    co_await yields(3);
    co_await lock_one(b);
  };
  EXPECT_TRUE(found(raw(), lock_both(b, a)).empty());
}

// Two looks that are each right, and a circle that never was: one waits for b, is served and holds a;
// then the other, which has given b back, waits for a.
TEST_F(FindDeadlocks, WhatChangesBetweenTheLoopsIsNoDeadlock) {
  for (int turns = 0; turns < 40; ++turns) {
    Event second{"second"};
    auto here = [&]() -> Task<void> {
      auto outer = co_await a.lock();
      {
        auto inner = co_await b.lock();
      }
      co_await suspend_forever();
    };
    auto there = [&]() -> Task<void> {
      {
        auto lock = co_await b.lock();
        co_await second.wait();
      }
      auto lock = co_await a.lock();
    };
    auto root = [&]() -> Task<void> {
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        n.start_on(other, there());
        co_await sleep_for(1ms);
        n.start(here());
        co_await sleep_for(1ms);
        StartedTask<std::vector<Deadlock>> asked = find_deadlocks(both).start(n);
        co_await yields(turns);
        second.set();
        const std::vector<Deadlock> all = co_await std::move(asked);
        EXPECT_TRUE(all.empty()) << "after " << turns << " turns:\n" << inspect::to_text(all[0]);
        co_return cancel;
      };
      co_await with_nursery(body);
    };
    run(loop, root());
  }
}

// --- Threads ----------------------------------------------------------------------------------------

Task<void> lock_both_met(Mutex& first, Mutex& second, Latch& met) {
  auto outer = co_await first.lock();
  co_await met.arrive_and_wait();
  auto inner = co_await second.lock();
}

TEST(FindDeadlocksOnAContext, AmongItsWorkers) {
  IOContext ctx{{.workers = 3}};
  Mutex a{"a"}, b{"b"}, c{"c"};
  Latch met{3};
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(ctx.loop(0), lock_both_met(a, b, met));
      n.start_on(ctx.loop(1), lock_both_met(b, c, met));
      n.start_on(ctx.loop(2), lock_both_met(c, a, met));
      std::vector<Deadlock> all;
      while (all.empty()) {  // until they have come so far
        all = co_await find_deadlocks(ctx);
      }
      EXPECT_EQ(all.size(), 1u);
      EXPECT_EQ(wanted(all[0]), (std::vector<std::string>{"Mutex 'a'", "Mutex 'b'", "Mutex 'c'"}));
      const std::vector<Deadlock> again = co_await find_deadlocks();
      EXPECT_EQ(again.size(), 1u);
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  ctx.run(root());
}

// A LocalMutex has nothing that guards it from another loop's look.
TEST(FindDeadlocksOnAContext, ALocalMutexIsLookedAtOnItsOwnLoopOnly) {
  constexpr int kVisits = 2000;
  IOContext ctx{{.workers = 2}};
  LocalMutex mutex{"local"};
  Event over{"over"};
  auto visits = [&]() -> Task<void> {
    for (int i = 0; i < kVisits; ++i) {
      auto lock = co_await mutex.lock();
      co_await yield();
    }
  };
  auto there = [&]() -> Task<void> {
    co_await all_of(visits(), visits(), visits());
    auto lock = co_await mutex.lock();
    over.set();
    auto twice = co_await mutex.lock();
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(ctx.loop(1), there());
      const std::vector<Executor*> here{&ctx.loop(0)};
      while (!over.is_set()) {
        const std::vector<Deadlock> none = co_await find_deadlocks(here);
        EXPECT_TRUE(none.empty());
        co_await yield();
      }
      std::vector<Deadlock> all;
      while (all.empty()) all = co_await find_deadlocks(ctx);
      EXPECT_EQ(wanted(all[0]), std::vector<std::string>{"LocalMutex 'local'"});
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  ctx.run(root());
}

}  // namespace
