// SPDX-License-Identifier: MIT
// Seed 000, rule by rule; docs/design/mutex.md has the table.
#include "weft/sync/mutex.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

template <class L>
struct MutexTest : SyncTest<L> {
  Mutex mutex{"test"};

  // Locks, holds it for some turns, unlocks.
  Task<void> visit(std::string name, int turns = 0) {
    auto lock = co_await mutex.lock();
    this->events.push_back(name);
    co_await yields(turns);
    this->events.push_back("/" + name);
  }
  Task<void> join_all(std::vector<Task<void>> tasks) {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (Task<void>& task : tasks) n.start(std::move(task));
      co_return join;
    };
    co_await with_nursery(body);
  }
};
TYPED_TEST_SUITE(MutexTest, LoopTypes);

// --- The state diagram --------------------------------------------------------------------------

// Each arrow, on the core itself: U, L0 and L1 are the seed's.
struct MutexDiagram : ::testing::Test {
  enum class State { U, L0, L1 };
  static constexpr detail::MutexCore::Home kHome = 1;

  detail::MutexCore core;
  detail::WaitNode a, b, c;
  detail::WaitNode nobody;

  MutexDiagram() { a.home = b.home = c.home = kHome; }

  State state() {
    if (!core.is_locked()) return State::U;
    return core.standing_of(nobody).place.of == 0 ? State::L0 : State::L1;
  }
  bool queued(detail::WaitNode& node) { return !core.lock_or_wait(node, 0); }
  // Returns: who owns it now.
  detail::WaitNode* unlock() {
    if (core.try_unlock(kHome)) return nullptr;
    auto [was_owner, next] = core.unlock(kHome, 0);
    EXPECT_TRUE(was_owner);
    return next;
  }
  void lock_with_waiters(std::initializer_list<detail::WaitNode*> waiters) {
    ASSERT_TRUE(core.try_lock(kHome));
    for (detail::WaitNode* each : waiters) ASSERT_TRUE(queued(*each));
  }
};

TEST_F(MutexDiagram, UToL0ByLock) {
  EXPECT_EQ(state(), State::U);
  EXPECT_FALSE(queued(a));
  EXPECT_EQ(state(), State::L0);
  EXPECT_EQ(core.owner(), kHome);
  EXPECT_EQ(unlock(), nullptr);
}

TEST_F(MutexDiagram, UToL0ByTryLock) {
  EXPECT_TRUE(core.try_lock(kHome));
  EXPECT_EQ(state(), State::L0);
  EXPECT_FALSE(core.try_lock(kHome));
  EXPECT_EQ(unlock(), nullptr);
}

TEST_F(MutexDiagram, L0ToUByUnlockWithoutWaiters) {
  lock_with_waiters({});
  EXPECT_EQ(unlock(), nullptr);
  EXPECT_EQ(state(), State::U);
}

TEST_F(MutexDiagram, L0ToL1ByLockQueued) {
  lock_with_waiters({});
  EXPECT_TRUE(queued(a));
  EXPECT_EQ(state(), State::L1);
  EXPECT_FALSE(core.try_lock(kHome));    // nobody overtakes it
  EXPECT_FALSE(core.try_unlock(kHome));  // M1: the short way out is closed
  EXPECT_EQ(unlock(), &a);
  EXPECT_EQ(unlock(), nullptr);
}

TEST_F(MutexDiagram, L1ToL1ByLockQueued) {
  lock_with_waiters({&a});
  EXPECT_TRUE(queued(b));
  EXPECT_EQ(state(), State::L1);
  EXPECT_EQ(unlock(), &a);
  EXPECT_EQ(unlock(), &b);
  EXPECT_EQ(unlock(), nullptr);
}

TEST_F(MutexDiagram, L1ToL1ByUnlockWhileOthersWait) {
  lock_with_waiters({&a, &b});
  b.home = 2;
  EXPECT_EQ(unlock(), &a);
  EXPECT_EQ(state(), State::L1);
  EXPECT_EQ(core.owner(), kHome);  // at once
  EXPECT_EQ(a.state, detail::WaitState::notified);
  EXPECT_EQ(b.state, detail::WaitState::waiting);
  EXPECT_EQ(unlock(), &b);
  EXPECT_EQ(core.owner(), 2u);
  EXPECT_TRUE(core.try_unlock(2));
}

TEST_F(MutexDiagram, L1ToL0ByUnlockToTheLastWaiter) {
  lock_with_waiters({&a});
  EXPECT_EQ(unlock(), &a);
  EXPECT_EQ(state(), State::L0);
  EXPECT_TRUE(core.try_unlock(kHome));  // M1: and open again
}

TEST_F(MutexDiagram, L1ToL1ByCancelOfOneOfSeveral) {
  lock_with_waiters({&a, &b, &c});
  auto [how, next] = core.withdraw(b, 0);
  EXPECT_EQ(how, detail::Withdrawn::unlinked);
  EXPECT_EQ(next, nullptr);
  EXPECT_EQ(state(), State::L1);
  EXPECT_EQ(unlock(), &a);
  EXPECT_EQ(unlock(), &c);
  EXPECT_EQ(unlock(), nullptr);
}

TEST_F(MutexDiagram, L1ToL0ByCancelOfTheLastWaiter) {
  lock_with_waiters({&a});
  auto [how, next] = core.withdraw(a, 0);
  EXPECT_EQ(how, detail::Withdrawn::unlinked);
  EXPECT_EQ(next, nullptr);
  EXPECT_EQ(state(), State::L0);
  EXPECT_TRUE(core.try_unlock(kHome));
  EXPECT_EQ(state(), State::U);
}

TEST_F(MutexDiagram, L1ToL1ByCancelOfTheNotifiedWhileOthersWait) {
  lock_with_waiters({&a, &b, &c});
  EXPECT_EQ(unlock(), &a);
  auto [how, next] = core.withdraw(a, 0);
  EXPECT_EQ(how, detail::Withdrawn::passed_on);
  EXPECT_EQ(next, &b);
  EXPECT_EQ(state(), State::L1);
  EXPECT_EQ(unlock(), &c);
  EXPECT_EQ(unlock(), nullptr);
}

TEST_F(MutexDiagram, L1ToL0ByCancelOfTheNotifiedBeforeTheLastWaiter) {
  lock_with_waiters({&a, &b});
  EXPECT_EQ(unlock(), &a);
  EXPECT_EQ(core.withdraw(a, 0).next, &b);
  EXPECT_EQ(state(), State::L0);
  EXPECT_TRUE(core.try_unlock(kHome));
}

TEST_F(MutexDiagram, L0ToUByCancelOfTheNotifiedWithoutOthers) {
  lock_with_waiters({&a});
  EXPECT_EQ(unlock(), &a);
  auto [how, next] = core.withdraw(a, 0);
  EXPECT_EQ(how, detail::Withdrawn::passed_on);
  EXPECT_EQ(next, nullptr);
  EXPECT_EQ(state(), State::U);
}

TEST_F(MutexDiagram, UnlockByAnotherThanTheOwnerChangesNothing) {
  lock_with_waiters({&a});
  EXPECT_FALSE(core.try_unlock(kHome + 1));
  EXPECT_FALSE(core.unlock(kHome + 1, 0).was_owner);
  EXPECT_EQ(state(), State::L1);
  EXPECT_EQ(unlock(), &a);
  EXPECT_EQ(unlock(), nullptr);
}

// --- The rules, on tasks --------------------------------------------------------------------------

TYPED_TEST(MutexTest, LockOfAnUnlockedOneSucceedsAtOnce) {  // U -> L0 -> U
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

TYPED_TEST(MutexTest, WaitersAreServedInTheOrderOfTheirComing) {  // L0 -> L1 -> L1 -> … -> L0 -> U
  auto root = [&]() -> Task<void> {
    std::vector<Task<void>> tasks;
    for (const char* name : {"a", "b", "c", "d"}) tasks.push_back(this->visit(name, 2));
    co_await this->join_all(std::move(tasks));
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"a", "/a", "b", "/b", "c", "/c", "d", "/d"}));
}

TYPED_TEST(MutexTest, UnlockGivesOwnershipAtOnceAndResumesLater) {
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    StartedTask<void> next = this->visit("next").start_in_current_scope();
    co_await yields(2);
    held.unlock();
    this->events.push_back("unlocked");    // never inside of unlock()
    EXPECT_TRUE(this->mutex.is_locked());  // and it is the waiter's
    EXPECT_FALSE(this->mutex.try_lock());  // nobody gets in between
    StartedTask<void> late = this->visit("late").start_in_current_scope();
    co_await std::move(next);
    co_await std::move(late);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"unlocked", "next", "/next", "late", "/late"}));
}

// --- Cancellation: Waiting, Notified, Resumed ---------------------------------------------------

TYPED_TEST(MutexTest, CancelWhileWaitingUnlinksAndTakesNothing) {
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = this->visit("a").start_in_current_scope();
    StartedTask<void> b = this->visit("b").start_in_current_scope();
    StartedTask<void> c = this->visit("c").start_in_current_scope();
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

TYPED_TEST(MutexTest, CancellingTheLastWaiterLeavesItLockedWithoutWaiters) {  // L1 -> L0 -> U
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = this->visit("a").start_in_current_scope();
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

TYPED_TEST(MutexTest, CancelWhileNotifiedPassesTheLockToTheNext) {
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = this->visit("a").start_in_current_scope();
    StartedTask<void> b = this->visit("b").start_in_current_scope();
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

TYPED_TEST(MutexTest, CancelWhileNotifiedWithoutOthersUnlocks) {
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = this->visit("a").start_in_current_scope();
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
TYPED_TEST(MutexTest, CancelOfEveryoneWhileNotifiedLosesNothing) {
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

TYPED_TEST(MutexTest, CancelWhileResumedIsNoMatterOfTheMutex) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = this->visit("a", 100).start_in_current_scope();
    StartedTask<void> b = this->visit("b").start_in_current_scope();
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

TYPED_TEST(MutexTest, ATaskThatIsCancelledAlreadyDoesNotLock) {
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

TYPED_TEST(MutexTest, AnIgnoredCancellationLocks) {
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    auto body = [&]() -> Task<void> {
      auto guard = co_await ignore_cancellation();
      auto lock = co_await this->mutex.lock();
      this->events.push_back("locked");
    };
    StartedTask<void> a = body().start_in_current_scope();
    co_await yields(2);
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

TYPED_TEST(MutexTest, WaitsForSeveralAtOnce) {
  auto root = [&]() -> Task<void> {
    Mutex other;
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
TYPED_TEST(MutexTest, AResultThatNobodyTakesIsGivenBack) {
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

TYPED_TEST(MutexTest, ATimeoutEndsTheWaitAndLeavesNothing) {
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

TYPED_TEST(MutexTest, AGuardMovesUnlocksEarlyAndReleases) {
  auto root = [&]() -> Task<void> {
    MutexGuard a = co_await this->mutex.lock();
    MutexGuard b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_TRUE(b);
    b.unlock();
    EXPECT_FALSE(this->mutex.is_locked());
    b.unlock();  // without effect
    b = co_await this->mutex.lock();
    Mutex* owed = b.release();
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

TYPED_TEST(MutexTest, ItIsUnlockedWhenAnExceptionLeaves) {
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

TYPED_TEST(MutexTest, TheTreeSaysWhoHoldsItAndWhereOneStands) {
  auto root = [&]() -> Task<void> {
    auto held = co_await this->mutex.lock();
    StartedTask<void> a = this->visit("a").start_in_current_scope();
    StartedTask<void> b = this->visit("b").start_in_current_scope();
    co_await yields(2);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("Mutex 'test' held by"), std::string::npos) << tree;
    EXPECT_NE(tree.find("mutex_test.cc"), std::string::npos) << tree;
    EXPECT_NE(tree.find("1st of 2"), std::string::npos) << tree;
    EXPECT_NE(tree.find("2nd of 2"), std::string::npos) << tree;
    held.unlock();
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(this->loop, root());
}

// --- Several loops ------------------------------------------------------------------------------

// Two loops of one thread are two owners.
struct MutexLoops : ::testing::Test {
  VirtualLoop a;
  VirtualLoop b{a};
  Mutex mutex;
};

TEST_F(MutexLoops, AWaiterGoesOnOnTheLoopThatItAwaitedFrom) {
  std::vector<Executor*> seen;
  auto there = [&]() -> Task<void> {
    auto lock = co_await mutex.lock();
    seen.push_back(Executor::current_or_null());
  };
  auto root = [&]() -> Task<void> {
    auto held = co_await mutex.lock();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, there());
      n.start(there());
      n.start_on(b, there());
      co_await sleep_for(1ms);
      held.unlock();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(a, root());
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), &b), 2);
  EXPECT_FALSE(mutex.is_locked());
}

// Waiting suspends the task, not the thread: its loop does other things meanwhile.
TEST_F(MutexLoops, AWaiterDoesNotHoldUpItsLoop) {
  Events events;
  auto waits = [&]() -> Task<void> {
    events.push_back("waits");
    auto lock = co_await mutex.lock();
    events.push_back("locked");
  };
  auto works = [&]() -> Task<void> {
    co_await yields(3);
    events.push_back("works");
  };
  auto root = [&]() -> Task<void> {
    auto held = co_await mutex.lock();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, waits());
      n.start_on(b, works());
      co_await sleep_for(1ms);
      held.unlock();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"waits", "works", "locked"}));
}

// The post is under way to the other loop when the cancel comes.
TEST_F(MutexLoops, CancelWhileNotifiedFromAnotherLoopPassesTheLockOn) {
  Events events;
  auto visit = [&](std::string name) -> Task<void> {
    auto lock = co_await mutex.lock();
    events.push_back(name);
  };
  auto root = [&]() -> Task<void> {
    auto held = co_await mutex.lock();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, visit("cancelled"));
      co_await sleep_for(1ms);
      held.unlock();
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_FALSE(mutex.is_locked());
    co_await visit("later");
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"later"}));
}

TEST(MutexThreads, ManyLoopsTakeTurns) {
  constexpr int kLoops = 3;
  constexpr int kTasks = 20;
  constexpr int kRounds = 200;
  Mutex mutex;
  int inside = 0;  // guarded by the mutex
  long count = 0;
  auto visitor = [&]() -> Task<void> {
    Executor* home = Executor::current_or_null();
    for (int i = 0; i < kRounds; ++i) {
      auto lock = co_await mutex.lock();
      EXPECT_EQ(Executor::current_or_null(), home);
      EXPECT_EQ(++inside, 1);
      ++count;
      if (i % 7 == 0) co_await yield();
      --inside;
    }
  };
  ThreadLoop loop;
  LoopThread others[kLoops];
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kTasks; ++i) {
        n.start(visitor());
        for (LoopThread& other : others) n.start_on(other.executor(), visitor());
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
  EXPECT_EQ(count, long{kTasks} * kRounds * (kLoops + 1));
  EXPECT_FALSE(mutex.is_locked());
}

// Whoever gets the lock last may destroy it, also while the unlock() before is about to return: seen by
// a sanitizer. The waiter is cancelled so that the unlock() finds nobody at the last moment.
TEST(MutexThreads, TheLastOneOutMayDestroyIt) {
  LoopThread other;
  for (int round = 0; round < 300; ++round) {
    auto mutex = std::make_unique<Mutex>();
    std::atomic<bool> waits = false;
    auto waiter = [&]() -> Task<void> {
      waits = true;
      auto lock = co_await mutex->lock();
    };
    auto last = [&]() -> Task<void> {
      {
        auto lock = co_await mutex->lock();
      }
      mutex.reset();
    };
    auto owner = [&]() -> Task<void> {
      auto lock = co_await mutex->lock();
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        n.start_on(other.executor(), waiter());
        while (!waits) co_await yield();
        co_return cancel;
      };
      co_await with_nursery(body);
      auto rest = [&](Nursery& n) -> Task<NurseryEnd> {
        n.start_on(other.executor(), last());
        co_await yield();
        lock.unlock();
        co_return join;
      };
      co_await with_nursery(rest);
    };
    ThreadLoop loop;
    run(loop, owner());
  }
}

// --- Misuse -------------------------------------------------------------------------------------

TEST(MutexMisuse, LockingOffAnyLoopIsRefused) {
  Mutex mutex;
  EXPECT_THROW(static_cast<void>(mutex.try_lock()), UsageError);
  auto awaiter = mutex.lock().operator co_await();
  try {
    static_cast<void>(awaiter.await_ready());
    FAIL() << "was not refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("Mutex::lock()"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(mutex.is_locked());
}

class MutexDeathTest : public ::testing::Test {
 protected:
  MutexDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  Mutex mutex{"accounts"};
};

// With the checks of a debug build it is refused before: ResumeOnIsRefusedWhileTheTaskHasAGuard. A guard
// that was moved is found out here in every build.
TEST_F(MutexDeathTest, AGuardThatIsHeldAcrossResumeOn) {
  auto misuse = [&] {
    VirtualLoop a;
    VirtualLoop b{a};
    auto root = [&]() -> Task<void> {
      auto lock = co_await mutex.lock();
#ifdef WEFT_AWAITABLE_STATE_DEBUG
      auto moved = std::move(lock);
#endif
      co_await resume_on(b);
    };
    run(a, root());
  };
  EXPECT_DEATH(misuse(), "Mutex 'accounts'.* loop [0-9]+.* loop [0-9]+ .*mutex_test");
}

TEST_F(MutexDeathTest, AGuardThatIsReturnedOutOfOn) {
  auto misuse = [&] {
    VirtualLoop a;
    VirtualLoop b{a};
    auto there = [&]() -> Task<MutexGuard> { co_return co_await mutex.lock(); };
    auto root = [&]() -> Task<void> { MutexGuard lock = co_await on(b, there()); };
    run(a, root());
  };
  EXPECT_DEATH(misuse(), "Mutex 'accounts'.* loop [0-9]+.* loop [0-9]+ .*mutex_test");
}

TEST_F(MutexDeathTest, AGuardThatIsMovedToATaskElsewhere) {
  auto misuse = [&] {
    VirtualLoop a;
    VirtualLoop b{a};
    auto keep = [](MutexGuard) -> Task<void> { co_return; };
    auto root = [&]() -> Task<void> {
      MutexGuard lock = co_await mutex.lock();
      co_await on(b, keep(std::move(lock)));
    };
    run(a, root());
  };
  EXPECT_DEATH(misuse(), "Mutex 'accounts'.* loop [0-9]+.* loop [0-9]+ .*mutex_test");
}

TEST_F(MutexDeathTest, UnlockingOffAnyLoop) {
  auto misuse = [&] {
    VirtualLoop loop;
    auto root = [&]() -> Task<void> { co_await mutex.lock_raw(); };
    run(loop, root());
    mutex.unlock();
  };
  EXPECT_DEATH(misuse(), "Mutex 'accounts' on no loop, but loop [0-9]+ holds it");
}

TEST_F(MutexDeathTest, UnlockingWhatNobodyHolds) {
  auto misuse = [&] {
    VirtualLoop loop;
    auto root = [&]() -> Task<void> {
      mutex.unlock();
      co_return;
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "Mutex 'accounts' that nobody holds");
}

TEST_F(MutexDeathTest, DestroyingOneThatIsHeldOrAwaited) {
  auto held = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto mutex = std::make_unique<Mutex>("short-lived");
      auto lock = co_await mutex->lock();
      mutex.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(held(), "Mutex 'short-lived' is destroyed while it is held");
}

}  // namespace
