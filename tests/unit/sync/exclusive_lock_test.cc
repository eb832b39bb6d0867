// SPDX-License-Identifier: MIT
// What every lock that one task has alone must do, rule by rule: Mutex (seed 000; docs/design/mutex.md has the
// table), LocalMutex, and SharedMutex by its lock(). What each has besides is in its own file.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/sync_fixture.h"
#include "support/typed_loop_test.h"

namespace {

using namespace weft;
using namespace weft::test;

template <class LockType>
struct ExclusiveLockTest : SyncTest {
  using Lock = LockType;
  using Guard = typename Lock::Guard;

  Lock mutex{"test"};

  // Locks, holds it for some turns, unlocks.
  Task<void> visit(std::string name, int turns = 0) {
    ++asked;
    auto lock = co_await mutex.lock();
    events.push_back(name);
    co_await yields(turns);
    events.push_back("/" + name);
  }
  Task<void> join_all(std::vector<Task<void>> tasks) {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (Task<void>& task : tasks) {
        const int before = asked;
        n.start(std::move(task));
        while (asked == before) co_await yield();
      }
      co_return join;
    };
    co_await with_nursery(body);
  }
};
using LockTypes = ::testing::Types<Mutex, LocalMutex, SharedMutex>;
TYPED_LOOP_TEST_SUITE(ExclusiveLockTest, LockTypes);

TYPED_LOOP_TEST(ExclusiveLockTest, LockOfAnUnlockedOneSucceedsAtOnce) {  // U -> L0 -> U
  auto root = [&]() -> Task<void> {
    EXPECT_FALSE(this->mutex.is_locked());
    {
      auto lock = co_await this->mutex.lock();
      EXPECT_TRUE(lock);
      EXPECT_TRUE(this->mutex.is_locked());
      EXPECT_FALSE(this->mutex.try_lock());
    }
    EXPECT_FALSE(this->mutex.is_locked());
    EXPECT_TRUE(this->mutex.try_lock());
    EXPECT_FALSE(this->mutex.is_locked());  // the guard was a temporary
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ExclusiveLockTest,
                WaitersAreServedInTheOrderOfTheirComing) {  // L0 -> L1 -> L1 -> … -> L0 -> U
  auto root = [&]() -> Task<void> {
    std::vector<Task<void>> tasks;
    for (const char* name : {"a", "b", "c", "d"}) tasks.push_back(this->visit(name, 2));
    co_await this->join_all(std::move(tasks));
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"a", "/a", "b", "/b", "c", "/c", "d", "/d"}));
}

TYPED_LOOP_TEST(ExclusiveLockTest, UnlockGivesOwnershipAtOnceAndResumesLater) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await this->mutex.lock();
    StartedTask<void> next = co_await this->begin(scope, this->visit("next"));
    co_await yields(2);
    held.unlock();
    this->events.push_back("unlocked");    // never inside of unlock()
    EXPECT_TRUE(this->mutex.is_locked());  // and it is the waiter's
    EXPECT_FALSE(this->mutex.try_lock());  // nobody gets in between
    StartedTask<void> late = co_await this->begin(scope, this->visit("late"));
    co_await std::move(next);
    co_await std::move(late);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"unlocked", "next", "/next", "late", "/late"}));
}

// --- Cancellation: Waiting, Notified, Resumed ---------------------------------------------------

TYPED_LOOP_TEST(ExclusiveLockTest, CancelWhileWaitingUnlinksAndTakesNothing) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    StartedTask<void> c = co_await this->begin(scope, this->visit("c"));
    co_await yields(2);
    b.cancel();
    Outcome<void> how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(this->mutex.is_locked());  // while the lock is held, and will be
    held.unlock();
    co_await std::move(a);
    co_await std::move(c);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"a", "/a", "c", "/c"}));
}

TYPED_LOOP_TEST(ExclusiveLockTest,
                CancellingTheLastWaiterLeavesItLockedWithoutWaiters) {  // L1 -> L0 -> U
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    co_await yields(2);
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(this->mutex.is_locked());
    held.unlock();
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_TRUE(this->events.empty());
}

TYPED_LOOP_TEST(ExclusiveLockTest, CancelWhileNotifiedPassesTheLockToTheNext) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    co_await yields(2);
    held.unlock();  // a owns it now and has not gone on
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"b", "/b"}));
}

TYPED_LOOP_TEST(ExclusiveLockTest, CancelWhileNotifiedWithoutOthersUnlocks) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    co_await yields(2);
    held.unlock();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_TRUE(this->events.empty());
}

// All that are notified one after the other are cancelled; the lock goes through their hands.
TYPED_LOOP_TEST(ExclusiveLockTest, CancelOfEveryoneWhileNotifiedLosesNothing) {
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 20; ++i) n.start(this->visit("x"));
      co_await yields(2);
      held.unlock();
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_TRUE(this->events.empty());
}

TYPED_LOOP_TEST(ExclusiveLockTest, CancelWhileResumedIsNoMatterOfTheMutex) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a", 100));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    co_await yields(5);
    EXPECT_EQ(this->events, (Events{"a"}));
    a.cancel();  // inside: its guard unlocks as it unwinds
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"a", "b", "/b"}));
}

TYPED_LOOP_TEST(ExclusiveLockTest, ATaskThatIsCancelledAlreadyDoesNotLock) {
  auto root = [&]() -> Task<void> {
    auto body = [&]() -> Task<void> {
      Scope& scope = co_await current_scope();
      scope.cancel();
      auto lock = co_await this->mutex.lock();
      ADD_FAILURE() << "went on";
    };
    StartedTask<void> started = body().start_in_current_scope();
    Outcome<void> how = co_await started.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ExclusiveLockTest, AnIgnoredCancellationLocks) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await this->mutex.lock();
    auto body = [&]() -> Task<void> {
      auto guard = co_await ignore_cancellation();
      ++this->asked;
      auto lock = co_await this->mutex.lock();
      this->events.push_back("locked");
    };
    StartedTask<void> a = co_await this->begin(scope, body());
    a.cancel();
    co_await yields(2);
    held.unlock();
    static_cast<void>(co_await a.outcome());
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"locked"}));
}

// --- Combinators --------------------------------------------------------------------------------

TYPED_LOOP_TEST(ExclusiveLockTest, WaitsForSeveralAtOnce) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::Lock other;
    auto held = co_await this->mutex.lock();
    {
      auto [first, second] = co_await any_of(this->mutex.lock(), other.lock());
      EXPECT_FALSE(first);
      EXPECT_TRUE(second);
      EXPECT_TRUE(other.is_locked());
    }
    EXPECT_FALSE(other.is_locked());
    held.unlock();
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
}

// The other branch throws, so nobody asks for the guard that this one was given.
TYPED_LOOP_TEST(ExclusiveLockTest, AResultThatNobodyTakesIsGivenBack) {
  auto root = [&]() -> Task<void> {
    auto fails = []() -> Task<void> {
      co_await yield();
      throw std::runtime_error("on purpose");
    };
    bool caught = false;
    try {
      co_await all_of(this->mutex.lock(), fails());
    } catch (const std::runtime_error&) {
      caught = true;
    }
    EXPECT_TRUE(caught);
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ExclusiveLockTest, ATimeoutEndsTheWaitAndLeavesNothing) {
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    auto lock = co_await timeout(1ms, this->mutex.lock());
    EXPECT_FALSE(lock);
    held.unlock();
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
}

// --- Guards and the raw way ---------------------------------------------------------------------

TYPED_LOOP_TEST(ExclusiveLockTest, AGuardMovesUnlocksEarlyAndReleases) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::Guard a = co_await this->mutex.lock();
    typename TestFixture::Guard b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_TRUE(b);
    b.unlock();
    EXPECT_FALSE(this->mutex.is_locked());
    b.unlock();  // without effect
    b = co_await this->mutex.lock();
    typename TestFixture::Lock* owed = b.release();
    EXPECT_EQ(owed, &this->mutex);
    EXPECT_TRUE(this->mutex.is_locked());
    owed->unlock();
    co_await this->mutex.lock_raw();
    EXPECT_TRUE(this->mutex.is_locked());
    this->mutex.unlock();
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ExclusiveLockTest, ItIsUnlockedWhenAnExceptionLeaves) {
  auto root = [&]() -> Task<void> {
    auto fails = [&]() -> Task<void> {
      auto lock = co_await this->mutex.lock();
      co_await yield();
      throw std::runtime_error("on purpose");
    };
    try {
      co_await fails();
    } catch (const std::runtime_error&) {
      this->events.push_back("caught");
    }
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"caught"}));
}

// --- A guard stays on its loop --------------------------------------------------------------------

template <class LockType>
struct ExclusiveLockDeathTest : ::testing::Test {
  using Lock = LockType;
  using Guard = typename Lock::Guard;
  static constexpr const char* kNamesBoth =
      "Mutex 'accounts'.* loop [0-9]+.* loop [0-9]+.*exclusive_lock_test";

  ExclusiveLockDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // body(there) runs on one loop; there is another.
  template <class Body>
  void on_two_loops(Body body) {
    VirtualLoop a;
    VirtualLoop b{a};
    run(a, body(b));
  }

  Lock mutex{"accounts"};
};
TYPED_TEST_SUITE(ExclusiveLockDeathTest, LockTypes);

// With the checks of a debug build it is refused before: ResumeOnIsRefusedWhileTheTaskHasAGuard. A guard
// that was moved is found out here in every build.
TYPED_TEST(ExclusiveLockDeathTest, AGuardThatIsHeldAcrossResumeOn) {
  auto root = [&](VirtualLoop& there) -> Task<void> {
    auto lock = co_await this->mutex.lock();
#ifdef WEFT_AWAITABLE_STATE_DEBUG
    auto moved = std::move(lock);
#endif
    co_await resume_on(there);
  };
  EXPECT_DEATH(this->on_two_loops(root), this->kNamesBoth);
}

TYPED_TEST(ExclusiveLockDeathTest, AGuardThatIsReturnedOutOfOn) {
  using Guard = typename TestFixture::Guard;
  auto elsewhere = [&]() -> Task<Guard> { co_return co_await this->mutex.lock(); };
  auto root = [&](VirtualLoop& there) -> Task<void> {
    Guard lock = co_await on(there, elsewhere());
  };
  EXPECT_DEATH(this->on_two_loops(root), this->kNamesBoth);
}

TYPED_TEST(ExclusiveLockDeathTest, AGuardThatIsMovedToATaskElsewhere) {
  using Guard = typename TestFixture::Guard;
  auto keep = [](Guard) -> Task<void> { co_return; };
  auto root = [&](VirtualLoop& there) -> Task<void> {
    Guard lock = co_await this->mutex.lock();
    co_await on(there, keep(std::move(lock)));
  };
  EXPECT_DEATH(this->on_two_loops(root), this->kNamesBoth);
}

TYPED_TEST(ExclusiveLockDeathTest, UnlockingOffAnyLoop) {
  auto misuse = [&] {
    VirtualLoop loop;
    auto root = [&]() -> Task<void> { co_await this->mutex.lock_raw(); };
    run(loop, root());
    this->mutex.unlock();
  };
  EXPECT_DEATH(misuse(), "Mutex 'accounts' on no loop, but .*loop [0-9]+");
}

TYPED_TEST(ExclusiveLockDeathTest, UnlockingWhatNobodyHolds) {
  auto root = [&](VirtualLoop&) -> Task<void> {
    this->mutex.unlock();
    co_return;
  };
  EXPECT_DEATH(this->on_two_loops(root), "unlock\\(\\) of .*Mutex 'accounts' that nobody holds");
}

TYPED_TEST(ExclusiveLockDeathTest, DestroyingOneThatIsHeld) {
  auto root = [](VirtualLoop&) -> Task<void> {
    auto mutex = std::make_unique<typename TestFixture::Lock>("short-lived");
    auto lock = co_await mutex->lock();
    mutex.reset();
  };
  EXPECT_DEATH(this->on_two_loops(root), "Mutex 'short-lived' is destroyed while it is held");
}

}  // namespace
