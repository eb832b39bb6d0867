// SPDX-License-Identifier: MIT
// What it is to share it, beside one who wants it alone. exclusive_lock_test.cc has the rules of its lock().
#include "weft/sync/shared_mutex.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct SharedMutexTest : SyncTest {
  SharedMutex mutex{"test"};

  // Locks, holds it for some turns, unlocks.
  Task<void> change(std::string name, int turns = 0) {
    ++asked;
    auto lock = co_await mutex.lock();
    events.push_back(name);
    co_await yields(turns);
    events.push_back("/" + name);
  }
  Task<void> look(std::string name, int turns = 0) {
    ++asked;
    auto lock = co_await mutex.lock_shared();
    events.push_back(name);
    co_await yields(turns);
    events.push_back("/" + name);
  }
};

// --- Who is inside ------------------------------------------------------------------------------

LOOP_TEST(SharedMutexTest, WhoHasItAloneIsAlone) {
  auto root = [&]() -> Task<void> {
    {
      auto lock = co_await mutex.lock();
      EXPECT_TRUE(lock);
      EXPECT_TRUE(mutex.is_locked());
      EXPECT_EQ(mutex.shared_count(), 0u);
      EXPECT_FALSE(mutex.try_lock());
      EXPECT_FALSE(mutex.try_lock_shared());
    }
    EXPECT_FALSE(mutex.is_locked());
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_FALSE(mutex.is_locked());  // the guard was a temporary
  };
  run_on(loop, root());
}

LOOP_TEST(SharedMutexTest, SomeShareItAndNobodyHasItAloneMeanwhile) {
  auto root = [&]() -> Task<void> {
    {
      auto a = co_await mutex.lock_shared();
      auto b = co_await mutex.lock_shared();
      auto c = mutex.try_lock_shared();
      EXPECT_TRUE(c);
      EXPECT_EQ(mutex.shared_count(), 3u);
      EXPECT_FALSE(mutex.is_locked());
      EXPECT_FALSE(mutex.try_lock());
      a.unlock();
      EXPECT_EQ(mutex.shared_count(), 2u);
      EXPECT_FALSE(mutex.try_lock());
    }
    EXPECT_EQ(mutex.shared_count(), 0u);
    EXPECT_TRUE(mutex.try_lock());
  };
  run_on(loop, root());
}

LOOP_TEST(SharedMutexTest, WhoComesAfterOneThatWaitsToChangeWaitsBehindIt) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await mutex.lock_shared();
    StartedTask<void> change = co_await begin(scope, this->change("change"));
    StartedTask<void> look = co_await begin(scope, this->look("look"));
    co_await yields(3);
    EXPECT_TRUE(events.empty());            // look could share it, and does not overtake
    EXPECT_FALSE(mutex.try_lock_shared());  // nor does this one
    EXPECT_EQ(mutex.shared_count(), 1u);
    held.unlock();
    EXPECT_TRUE(mutex.is_locked());  // it is change's at once
    EXPECT_TRUE(events.empty());     // and never inside of unlock()
    co_await std::move(look);
    co_await std::move(change);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"change", "/change", "look", "/look"}));
}

LOOP_TEST(SharedMutexTest, ThoseWhoLookAndStandTogetherAreLetInTogether) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await mutex.lock();
    StartedTask<void> a = co_await begin(scope, look("a", 5));
    StartedTask<void> b = co_await begin(scope, look("b", 5));
    StartedTask<void> change = co_await begin(scope, this->change("change"));
    StartedTask<void> c = co_await begin(scope, look("c"));
    held.unlock();
    EXPECT_EQ(mutex.shared_count(), 2u);  // a and b; c stands behind one that changes
    EXPECT_FALSE(mutex.try_lock_shared());
    co_await std::move(a);
    co_await std::move(b);
    co_await std::move(change);
    co_await std::move(c);
    EXPECT_EQ(mutex.shared_count(), 0u);
  };
  run_on(loop, root());
  const Events& seen = events;
  const auto at = [&](const char* what) { return std::ranges::find(seen, what) - seen.begin(); };
  ASSERT_EQ(seen.size(), 8u);
  EXPECT_LT(std::max(at("a"), at("b")), std::min(at("/a"), at("/b")));  // both inside at once
  EXPECT_EQ(Events(seen.begin() + 4, seen.end()), (Events{"change", "/change", "c", "/c"}));
}

LOOP_TEST(SharedMutexTest, AStreamOfThoseWhoLookDoesNotStarveOneThatChanges) {
  bool changed = false;
  int looks = 0;
  // There is always one inside: each leaves only after the next has come or waits.
  auto look = [&]() -> Task<void> {
    auto lock = co_await mutex.lock_shared();
    ++looks;
    co_await yields(4);
  };
  auto stream = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 1000 && !changed; ++i) {
        n.start(look());
        co_await yield();
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  auto change = [&]() -> Task<void> {
    co_await yields(10);
    auto lock = co_await mutex.lock();
    changed = true;
  };
  auto root = [&]() -> Task<void> { co_await all_of(stream(), change()); };
  run_on(loop, root());
  EXPECT_TRUE(changed);
  EXPECT_LT(looks, 100);
}

LOOP_TEST(SharedMutexTest, WaitersAreServedInTheOrderOfTheirComing) {
  std::string order;
  auto visit = [&](char name) -> Task<void> {
    ++asked;
    if (name >= 'a') {
      auto lock = co_await mutex.lock_shared();
      order.push_back(name);
      co_await yields(2);
    } else {
      auto lock = co_await mutex.lock();
      order.push_back(name);
      co_await yields(2);
    }
  };
  auto root = [&]() -> Task<void> {
    auto held = co_await mutex.lock();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      int started = 0;
      for (char name : std::string("AbcDEfGhij")) {
        n.start(visit(name));
        for (++started; asked < started;) co_await yield();
      }
      held.unlock();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  // Those who are let in together go on as their loop likes.
  ASSERT_EQ(order.size(), 10u);
  std::sort(order.begin() + 1, order.begin() + 3);
  std::sort(order.begin() + 7, order.end());
  EXPECT_EQ(order, "AbcDEfGhij");
}

// --- Cancellation: Waiting, Notified, Resumed ---------------------------------------------------

LOOP_TEST(SharedMutexTest, CancelWhileWaitingTakesNothing) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await mutex.lock();
    StartedTask<void> a = co_await begin(scope, change("a"));
    StartedTask<void> b = co_await begin(scope, look("b"));
    StartedTask<void> c = co_await begin(scope, change("c"));
    b.cancel();
    c.cancel();
    Outcome<void> how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    how = co_await c.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(mutex.is_locked());
    held.unlock();
    co_await std::move(a);
    EXPECT_FALSE(mutex.is_locked());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"a", "/a"}));
}

LOOP_TEST(SharedMutexTest, CancellingTheLastWaiterLeavesItWithoutWaiters) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    for (bool shared : {false, true}) {
      SharedMutexGuard alone;
      SharedMutexSharedGuard beside;
      if (shared) {
        beside = co_await mutex.lock_shared();
      } else {
        alone = co_await mutex.lock();
      }
      StartedTask<void> a = co_await begin(scope, change("a"));
      a.cancel();
      Outcome<void> how = co_await a.outcome();
      EXPECT_TRUE(how.is_cancelled());
      EXPECT_EQ(mutex.is_locked(), !shared);
      EXPECT_EQ(mutex.try_lock_shared().has_value(), shared);  // nobody is in the way
      alone.unlock();
      beside.unlock();
      EXPECT_TRUE(mutex.try_lock());
    }
  };
  run_on(loop, root());
  EXPECT_TRUE(events.empty());
}

LOOP_TEST(SharedMutexTest, CancelOfAChangeAtTheFrontLetsThoseWhoLookIn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await mutex.lock_shared();
    StartedTask<void> change = co_await begin(scope, this->change("change"));
    StartedTask<void> a = co_await begin(scope, look("a"));
    StartedTask<void> b = co_await begin(scope, look("b"));
    StartedTask<void> last = co_await begin(scope, this->change("last"));
    EXPECT_TRUE(events.empty());
    change.cancel();
    Outcome<void> how = co_await change.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(a);  // while it is still held
    co_await std::move(b);
    EXPECT_EQ(mutex.shared_count(), 1u);
    EXPECT_EQ(events.size(), 4u);
    held.unlock();
    co_await std::move(last);
  };
  run_on(loop, root());
  EXPECT_EQ(events.back(), "/last");
}

LOOP_TEST(SharedMutexTest, CancelWhileNotifiedPassesItOn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await mutex.lock();
    StartedTask<void> a = co_await begin(scope, change("a"));
    StartedTask<void> b = co_await begin(scope, look("b"));
    StartedTask<void> c = co_await begin(scope, look("c"));
    held.unlock();  // a has it alone and has not gone on
    EXPECT_TRUE(mutex.is_locked());
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    co_await std::move(c);
    EXPECT_EQ(mutex.shared_count(), 0u);
  };
  run_on(loop, root());
  EXPECT_EQ(events.size(), 4u);
}

LOOP_TEST(SharedMutexTest, CancelOfTheLastThatSharesWhileNotifiedLetsAChangeIn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await mutex.lock();
    StartedTask<void> a = co_await begin(scope, look("a"));
    StartedTask<void> b = co_await begin(scope, look("b"));
    StartedTask<void> c = co_await begin(scope, change("c"));
    held.unlock();
    EXPECT_EQ(mutex.shared_count(), 2u);
    a.cancel();
    b.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(c);
    EXPECT_TRUE(mutex.try_lock());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"c", "/c"}));
}

LOOP_TEST(SharedMutexTest, CancelOfEveryoneWhileNotifiedLosesNothing) {
  auto root = [&]() -> Task<void> {
    auto held = co_await mutex.lock();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 20; ++i) {
        n.start(i % 3 == 0 ? change("x") : look("x"));
      }
      while (asked < 20) co_await yield();
      held.unlock();
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_TRUE(mutex.try_lock());
  };
  run_on(loop, root());
  EXPECT_TRUE(events.empty());
}

LOOP_TEST(SharedMutexTest, CancelWhileResumedIsNoMatterOfTheMutex) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, look("a", 100));
    StartedTask<void> b = co_await begin(scope, change("b"));
    EXPECT_EQ(events, (Events{"a"}));  // it was free
    a.cancel();                        // inside: its guard unlocks as it unwinds
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"a", "b", "/b"}));
  EXPECT_FALSE(mutex.is_locked());
}

LOOP_TEST(SharedMutexTest, ATaskThatIsCancelledAlreadyDoesNotLock) {
  auto root = [&]() -> Task<void> {
    auto body = [&](bool shared) -> Task<void> {
      Scope& scope = co_await current_scope();
      scope.cancel();
      if (shared) co_await mutex.lock_shared_raw();
      co_await mutex.lock_raw();
      ADD_FAILURE() << "went on";
    };
    for (bool shared : {false, true}) {
      StartedTask<void> started = body(shared).start_in_current_scope();
      Outcome<void> how = co_await started.outcome();
      EXPECT_TRUE(how.is_cancelled());
      EXPECT_TRUE(mutex.try_lock());
    }
  };
  run_on(loop, root());
}

LOOP_TEST(SharedMutexTest, CancelStormsLeaveItFree) {
  int inside = 0;
  int alone = 0;
  auto visit = [&](int number) -> Task<void> {
    if (number % 3 == 0) {
      auto lock = co_await mutex.lock();
      EXPECT_EQ(inside + alone, 0);
      ++alone;
      OnExit leave([&] { --alone; });
      co_await yields(number % 5);
    } else {
      auto lock = co_await mutex.lock_shared();
      EXPECT_EQ(alone, 0);
      ++inside;
      OnExit leave([&] { --inside; });
      co_await yields(number % 5);
    }
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    for (int round = 0; round < 40; ++round) {
      std::vector<StartedTask<void>> visitors;
      for (int i = 0; i < 25; ++i) visitors.push_back(visit(round + i).start(scope));
      for (std::size_t i = 0; i < visitors.size(); ++i) {
        co_await yield();
        visitors[(i * 7 + static_cast<std::size_t>(round)) % visitors.size()].cancel();
      }
      for (auto& each : visitors) static_cast<void>(co_await each.outcome());
      EXPECT_TRUE(mutex.try_lock());
    }
  };
  run_on(loop, root());
}

// --- Combinators --------------------------------------------------------------------------------

LOOP_TEST(SharedMutexTest, WaitsForSeveralAtOnce) {
  auto root = [&]() -> Task<void> {
    SharedMutex other;
    auto held = co_await mutex.lock_shared();
    {
      auto [first, second] = co_await any_of(mutex.lock(), other.lock_shared());
      EXPECT_FALSE(first);
      EXPECT_TRUE(second);
      EXPECT_EQ(other.shared_count(), 1u);
    }
    EXPECT_EQ(other.shared_count(), 0u);
    EXPECT_TRUE(mutex.try_lock_shared());  // nobody waits any more
  };
  run_on(loop, root());
}

// The other branch throws, so nobody asks for the guards that these were given.
LOOP_TEST(SharedMutexTest, AResultThatNobodyTakesIsGivenBack) {
  auto root = [&]() -> Task<void> {
    SharedMutex other;
    bool caught = false;
    try {
      co_await all_of(mutex.lock_shared(), other.lock(), throws_after(1, "on purpose"));
    } catch (const std::runtime_error&) {
      caught = true;
    }
    EXPECT_TRUE(caught);
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_TRUE(other.try_lock());
  };
  run_on(loop, root());
}

LOOP_TEST(SharedMutexTest, ATimeoutEndsTheWaitAndLeavesNothing) {
  auto root = [&]() -> Task<void> {
    auto held = co_await mutex.lock();
    auto look = co_await timeout(1ms, mutex.lock_shared());
    EXPECT_FALSE(look);
    auto change = co_await timeout(1ms, mutex.lock());
    EXPECT_FALSE(change);
    held.unlock();
    EXPECT_TRUE(mutex.try_lock());
  };
  run_on(loop, root());
}

// --- Guards and the raw way ---------------------------------------------------------------------

LOOP_TEST(SharedMutexTest, SharedGuardsMoveUnlockEarlyAndRelease) {
  auto root = [&]() -> Task<void> {
    SharedMutexSharedGuard c = co_await mutex.lock_shared();
    SharedMutexSharedGuard d = co_await mutex.lock_shared();
    c = std::move(d);  // the one that c had is unlocked
    EXPECT_EQ(mutex.shared_count(), 1u);
    EXPECT_EQ(c.release(), &mutex);
    mutex.unlock_shared();

    co_await mutex.lock_shared_raw();
    EXPECT_EQ(mutex.shared_count(), 1u);
    mutex.unlock_shared();
    EXPECT_TRUE(mutex.try_lock());
  };
  run_on(loop, root());
}

LOOP_TEST(SharedMutexTest, TheTreeSaysWhoHoldsItAndWhereOneStands) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await mutex.lock_shared();
    StartedTask<void> a = co_await begin(scope, change("a", 3));
    StartedTask<void> b = co_await begin(scope, look("b"));
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("SharedMutex 'test', wants it alone, held by 1 who share it, the last"),
              std::string::npos)
        << tree;
    EXPECT_NE(tree.find("shared_mutex_test.cc"), std::string::npos) << tree;
    EXPECT_NE(tree.find("1 of 2 waiting"), std::string::npos) << tree;
    EXPECT_NE(tree.find("2 of 2 waiting"), std::string::npos) << tree;
    held.unlock();
    const std::string then = task_tree(scope);
    EXPECT_NE(then.find("wants it alone, just locked"), std::string::npos) << then;
    EXPECT_NE(then.find("wants to share it, held by a task that was just given it"),
              std::string::npos)
        << then;
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
}

}  // namespace
