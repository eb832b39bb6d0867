// SPDX-License-Identifier: MIT
// SharedMutex across loops and threads, and what ends the process.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

// --- Several loops ------------------------------------------------------------------------------

struct SharedMutexLoops : TwoLoops {
  SharedMutex mutex;
};

TEST_F(SharedMutexLoops, AWaiterGoesOnOnTheLoopThatItAwaitedFrom) {
  auto alone = [&] { return mutex.lock(); };
  auto shared = [&] { return mutex.lock_shared(); };
  expect_to_go_on_where_they_awaited(alone, shared);
  expect_to_go_on_where_they_awaited(shared, alone);
  EXPECT_TRUE(mutex.try_lock_shared());
}

// The posts are under way to the other loop when the cancel comes.
TEST_F(SharedMutexLoops, CancelWhileNotifiedFromAnotherLoopPassesItOn) {
  Events events;
  auto look = [&]() -> Task<void> {
    auto lock = co_await mutex.lock_shared();
    events.push_back("looked");
  };
  auto change = [&]() -> Task<void> {
    auto lock = co_await mutex.lock();
    events.push_back("changed");
  };
  auto root = [&]() -> Task<void> {
    auto held = co_await mutex.lock();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, look());
      n.start_on(b, look());
      co_await sleep_for(1ms);
      n.start_on(b, change());
      co_await sleep_for(1ms);
      held.unlock();
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_TRUE(mutex.try_lock());
    co_await change();
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"changed"}));
}

// A guard that shares it belongs to nobody; the header says so.
TEST_F(SharedMutexLoops, ASharedGuardMayLeaveItsLoop) {
  auto there = [&]() -> Task<SharedMutexSharedGuard> { co_return co_await mutex.lock_shared(); };
  auto keep = [](SharedMutexSharedGuard) -> Task<void> { co_return; };
  auto root = [&]() -> Task<void> {
    SharedMutexSharedGuard lock = co_await on(b, there());
    EXPECT_EQ(mutex.shared_count(), 1u);
    co_await on(b, keep(std::move(lock)));
    EXPECT_EQ(mutex.shared_count(), 0u);
    auto held = co_await mutex.lock_shared();
    co_await resume_on(b);
    held.unlock();
    EXPECT_EQ(mutex.shared_count(), 0u);
    co_await resume_on(a);
  };
  run(a, root());
}

TEST(SharedMutexThreads, AThreadWithoutALoopUnlocksWhatIsSharedAndWakesTheNext) {
  SharedMutex mutex;
  ThreadLoop loop;
  std::atomic<bool> waits = false;
  auto root = [&]() -> Task<void> {
    auto shared = co_await mutex.lock_shared();
    std::thread other([&, lock = std::move(shared)]() mutable {
      while (!waits) std::this_thread::yield();
      lock.unlock();
    });
    auto awaits = [&]() -> Task<void> {
      waits = true;
      auto lock = co_await mutex.lock();
      EXPECT_TRUE(mutex.is_locked());
    };
    co_await awaits();
    other.join();
  };
  run(loop, root());
  EXPECT_FALSE(mutex.is_locked());
}

// Some look, some change, some give up: what is seen is always whole.
class Crowd {
 public:
  static constexpr int kRounds = kSanitized ? 100 : 300;

  Task<void> visit(int number) {
    Executor* home = Executor::current_or_null();
    for (int i = 0; i < kRounds; ++i) {
      const bool changes = (number + i) % 4 == 0;
      changes ? co_await change(i) : co_await look(i);
      EXPECT_EQ(Executor::current_or_null(), home);
    }
  }
  void expect_whole() const {
    EXPECT_EQ(left_, changes_);
    EXPECT_EQ(right_, changes_);
    EXPECT_GT(changes_, 0);
    EXPECT_FALSE(mutex_.is_locked());
    EXPECT_EQ(mutex_.shared_count(), 0u);
  }

 private:
  Task<void> change(int i) {
    auto lock = co_await timeout(200us, mutex_.lock());
    if (!lock) co_return;
    ++left_;
    if (i % 5 == 0) co_await yield();
    ++right_;
    ++changes_;
  }
  Task<void> look(int i) {
    auto lock = co_await timeout(200us, mutex_.lock_shared());
    if (!lock) co_return;
    const long seen = left_;
    if (i % 5 == 0) co_await yield();
    EXPECT_EQ(right_, seen);
  }

  SharedMutex mutex_;
  long left_ = 0;  // guarded by the mutex
  long right_ = 0;
  long changes_ = 0;
};

TEST(SharedMutexThreads, ManyLoopsLookAndChange) {
  constexpr int kTasks = 12;
  Crowd crowd;
  ThreadLoop loop;
  LoopThread others[2];
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kTasks; ++i) {
        n.start(crowd.visit(i));
        for (LoopThread& other : others) n.start_on(other.executor(), crowd.visit(i + 1));
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
  crowd.expect_whole();
}

TEST(SharedMutexThreads, TheWorkersOfAnIOContextLookAndChange) {
  constexpr int kTasks = 30;
  Crowd crowd;
  IOContext context{{.workers = 3}};
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kTasks; ++i) {
        n.start_on(context.loop(static_cast<std::size_t>(i) % 3), crowd.visit(i));
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  context.run(root());
  crowd.expect_whole();
}

// Whoever is inside last may destroy it, also while an unlock before is about to return: seen by a
// sanitizer.
TEST(SharedMutexThreads, TheLastOneOutMayDestroyIt) {
  LoopThread other;
  for (int round = 0; round < 300; ++round) {
    auto mutex = std::make_unique<SharedMutex>();
    std::atomic<bool> waits = false;
    auto last = [&]() -> Task<void> {
      waits = true;
      {
        auto lock = co_await mutex->lock();
      }
      mutex.reset();
    };
    auto owner = [&]() -> Task<void> {
      auto lock = co_await mutex->lock_shared();
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        n.start_on(other.executor(), last());
        while (!waits) co_await yield();
        lock.unlock();
        co_return join;
      };
      co_await with_nursery(body);
    };
    ThreadLoop loop;
    run(loop, owner());
  }
}

// --- Misuse -------------------------------------------------------------------------------------

TEST(SharedMutexMisuse, LockingOffAnyLoopIsRefused) {
  SharedMutex mutex;
  EXPECT_THROW(static_cast<void>(mutex.try_lock()), UsageError);
  auto expect_refused = [](auto&& awaitable, const char* what) {
    auto awaiter = std::move(awaitable).operator co_await();
    try {
      static_cast<void>(awaiter.await_ready());
      ADD_FAILURE() << "was not refused";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  expect_refused(mutex.lock(), "SharedMutex::lock()");
  expect_refused(mutex.lock_shared(), "SharedMutex::lock_shared()");
  EXPECT_FALSE(mutex.is_locked());
  EXPECT_EQ(mutex.shared_count(), 0u);
  EXPECT_TRUE(mutex.try_lock_shared());  // belongs to nobody
}

class SharedMutexDeathTest : public ::testing::Test {
 protected:
  SharedMutexDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  template <class Body>
  void on_a_loop(Body body) {
    VirtualLoop loop;
    run(loop, body());
  }

  SharedMutex mutex{"routes"};
};

TEST_F(SharedMutexDeathTest, UnlockingWhatNobodySharesOrInTheOtherWay) {
  auto nobody_shared = [&]() -> Task<void> {
    mutex.unlock_shared();
    co_return;
  };
  EXPECT_DEATH(on_a_loop(nobody_shared),
               "unlock_shared\\(\\) of SharedMutex 'routes' that nobody holds");
  auto shared = [&]() -> Task<void> {
    co_await mutex.lock_shared_raw();
    mutex.unlock();
  };
  EXPECT_DEATH(on_a_loop(shared), "held by 1 who share it.*unlock_shared\\(\\)");
  auto alone = [&]() -> Task<void> {
    co_await mutex.lock_raw();
    mutex.unlock_shared();
  };
  EXPECT_DEATH(on_a_loop(alone),
               "unlock_shared\\(\\) of SharedMutex 'routes', but it is held alone");
}

TEST_F(SharedMutexDeathTest, DestroyingOneThatIsSharedAndAwaited) {
  auto awaited = []() -> Task<void> {
    auto mutex = std::make_unique<SharedMutex>("short-lived");
    auto lock = co_await mutex->lock_shared();
    auto waits = [&]() -> Task<void> { auto alone = co_await mutex->lock(); };
    StartedTask<void> waiter = waits().start_in_current_scope();
    co_await yields(2);
    mutex.reset();
  };
  EXPECT_DEATH(on_a_loop(awaited),
               "SharedMutex 'short-lived' is destroyed while it is held by 1 who share it");
}

}  // namespace
