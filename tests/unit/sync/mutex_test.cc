// SPDX-License-Identifier: MIT
// Seed 000: the state diagram, the tree, loops and threads. exclusive_lock_test.cc has the rules on tasks, one by
// one; docs/design/mutex.md, the table.
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

// --- The tree -----------------------------------------------------------------------------------

struct MutexTest : SyncTest {
  Mutex mutex{"test"};

  Task<void> visit(std::string name) {
    ++asked;
    auto lock = co_await mutex.lock();
    events.push_back(name);
    events.push_back("/" + name);
  }
};

LOOP_TEST(MutexTest, TheTreeSaysWhoHoldsItAndWhereOneStands) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto held = co_await mutex.lock();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    StartedTask<void> b = co_await begin(scope, visit("b"));
    co_await yields(2);
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("Mutex 'test' held by"), std::string::npos) << tree;
    EXPECT_NE(tree.find("mutex_test.cc"), std::string::npos) << tree;
    EXPECT_NE(tree.find("1st of 2"), std::string::npos) << tree;
    EXPECT_NE(tree.find("2nd of 2"), std::string::npos) << tree;
    held.unlock();
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
}

// --- Several loops ------------------------------------------------------------------------------

// Two loops of one thread are two owners.
struct MutexLoops : TwoLoops {
  Mutex mutex;
};

TEST_F(MutexLoops, AWaiterGoesOnOnTheLoopThatItAwaitedFrom) {
  auto lock = [&] { return mutex.lock(); };
  expect_to_go_on_where_they_awaited(lock, lock);
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

}  // namespace
