// SPDX-License-Identifier: MIT
// Seed 000, rule by rule.
#include "weft/sync/mutex.h"

#include <algorithm>
#include <atomic>
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
    EXPECT_NE(tree.find("1 of 2 waiting"), std::string::npos) << tree;
    EXPECT_NE(tree.find("2 of 2 waiting"), std::string::npos) << tree;
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

TEST_F(MutexDeathTest, AGuardThatIsHeldAcrossResumeOn) {
  auto misuse = [&] {
    VirtualLoop a;
    VirtualLoop b{a};
    auto root = [&]() -> Task<void> {
      auto lock = co_await mutex.lock();
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
