// SPDX-License-Identifier: MIT
// Condition across loops and threads, and what ends the process.
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

// --- Several loops ------------------------------------------------------------------------------

struct ConditionLoops : TwoLoops {
  Mutex mutex;
  Condition condition;
};

TEST_F(ConditionLoops, AWaiterGoesOnOnTheLoopThatItAwaitedFromAndUnlocksThere) {
  int seen = 0;
  auto there = [&]() -> Task<void> {
    auto lock = co_await mutex.lock();
    co_await condition.wait(lock);
    EXPECT_EQ(Executor::current_or_null(), &b);
    ++seen;
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, there());
      n.start_on(b, there());
      co_await sleep_for(1ms);
      condition.notify_all();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(a, root());
  EXPECT_EQ(seen, 2);
  EXPECT_FALSE(mutex.is_locked());
}

// The lock has been given to the other loop, and the post is under way when the cancel comes.
TEST_F(ConditionLoops, ACancelOnItsWayToAnotherLoopPassesTheNotifyOn) {
  Events events;
  auto visit = [&](std::string name) -> Task<void> {
    auto lock = co_await mutex.lock();
    OnExit leave([&] { EXPECT_TRUE(mutex.is_locked()); });
    co_await condition.wait(lock);
    events.push_back(name);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> next;
    Scope& scope = co_await current_scope();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, visit("cancelled"));
      co_await sleep_for(1ms);
      next = visit("next").start(scope);  // not the nursery's, which is cancelled
      co_await sleep_for(1ms);
      condition.notify_one();
      co_return cancel;
    };
    co_await with_nursery(body);
    co_await std::move(next);
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"next"}));
  EXPECT_FALSE(mutex.is_locked());
}

// A loop that stops cancels what waits on it; the owner is on another loop and unlocks in its own time.
TEST(ConditionThreads, ALoopStopsAlthoughItsWaitersNeedTheLock) {
  Mutex mutex;
  Condition condition;
  std::atomic<int> waiting = 0;
  std::atomic<int> unwound = 0;
  ThreadLoop here;
  ThreadLoop there;
  auto waits = [&]() -> Task<void> {
    auto lock = co_await mutex.lock();
    OnExit leave([&] {
      EXPECT_TRUE(mutex.is_locked());
      ++unwound;
    });
    ++waiting;
    co_await condition.wait(lock);
    ADD_FAILURE() << "nobody notifies";
  };
  auto guests = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 5; ++i) n.start(waits());
      co_return join;
    };
    co_await with_nursery(body);
  };
  std::thread thread([&] {
    try {
      run(there, guests());
      ADD_FAILURE() << "was stopped";
    } catch (const TaskCancelled&) {
    } catch (const LoopStopped&) {
    }
  });
  auto owner = [&]() -> Task<void> {
    while (waiting < 5) co_await yield();
    auto lock = co_await mutex.lock();  // the last of them has unlocked
    there.stop();
    co_await yields(50);
    EXPECT_EQ(unwound, 0);
  };
  run(here, owner());
  thread.join();
  EXPECT_EQ(unwound, 5);
  EXPECT_FALSE(mutex.is_locked());
}

// A bounded queue: what is put in comes out, once, whoever gives up in between.
class Store {
 public:
  static constexpr int kItems = kSanitized ? 300 : 1000;

  Task<void> produce() {
    for (int i = 1; i <= kItems; ++i) {
      auto has_room = [&] { return items_.size() < 4; };
      auto lock = co_await mutex_.lock();
      co_await not_full_.wait(lock, has_room);
      items_.push_back(i);
      not_empty_.notify_one();
    }
  }
  // Gives up now and then: a notify that it had is another's then.
  Task<void> consume() {
    auto has_some = [&] { return !items_.empty(); };
    for (;;) {
      auto lock = co_await mutex_.lock();
      if (taken_ == expected_) co_return;
      auto is_over = [&] { return has_some() || taken_ == expected_; };
      auto waited = co_await timeout(50us, not_empty_.wait(lock, is_over));
      EXPECT_TRUE(mutex_.is_locked());
      if (!waited || items_.empty()) continue;
      sum_ += items_.front();
      items_.pop_front();
      if (++taken_ == expected_) not_empty_.notify_all();
      not_full_.notify_one();
    }
  }
  void expect(int producers) { expected_ = producers * kItems; }
  void expect_all(int producers) const {
    EXPECT_EQ(taken_, expected_);
    EXPECT_EQ(sum_, long{producers} * kItems * (kItems + 1) / 2);
    EXPECT_FALSE(mutex_.is_locked());
  }

 private:
  Mutex mutex_;
  Condition not_empty_;
  Condition not_full_;
  std::deque<int> items_;  // guarded by the mutex, like the rest
  int taken_ = 0;
  int expected_ = 0;
  long sum_ = 0;
};

TEST(ConditionThreads, AQueueOfManyLoopsLosesNothing) {
  constexpr int kEach = 3;
  Store store;
  store.expect(2 * kEach);
  ThreadLoop loop;
  LoopThread others[2];
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kEach; ++i) {
        n.start(store.produce());
        n.start(store.consume());
        n.start_on(others[0].executor(), store.produce());
        n.start_on(others[1].executor(), store.consume());
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
  store.expect_all(2 * kEach);
}

TEST(ConditionThreads, AQueueOfAnIOContextLosesNothing) {
  constexpr int kEach = 4;
  Store store;
  store.expect(kEach);
  IOContext context{{.workers = 3}};
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (std::size_t i = 0; i < kEach; ++i) {
        n.start_on(context.loop(i % 3), store.produce());
        n.start_on(context.loop((i + 1) % 3), store.consume());
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  context.run(root());
  store.expect_all(kEach);
}

// Notifies from a thread without a loop, with nothing held, race with waits and their cancels: every
// wait ends, and whoever ends has the lock.
TEST(ConditionThreads, NotifiesRaceWithCancels) {
  constexpr int kRounds = kSanitized ? 300 : 2000;
  Mutex mutex;
  Condition condition;
  int inside = 0;  // guarded by the mutex
  std::atomic<bool> done = false;
  std::atomic<int> notified = 0;
  std::atomic<int> cancelled = 0;
  auto visitor = [&](int number) -> Task<void> {
    for (int i = 0; i < kRounds; ++i) {
      auto lock = co_await mutex.lock();
      auto woken =
          co_await timeout(std::chrono::microseconds((number + i) % 40), condition.wait(lock));
      ++(woken ? notified : cancelled);
      EXPECT_EQ(++inside, 1);
      if (i % 9 == 0) co_await yield();
      --inside;
    }
  };
  std::thread notifier([&] {
    for (int i = 0; !done; ++i) {
      i % 8 == 0 ? condition.notify_all() : condition.notify_one();
      std::this_thread::yield();
    }
  });
  ThreadLoop loop;
  LoopThread other;
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 4; ++i) {
        n.start(visitor(i));
        n.start_on(other.executor(), visitor(7 * i));
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
  done = true;
  notifier.join();
  EXPECT_EQ(notified + cancelled, 8 * kRounds);
  EXPECT_FALSE(mutex.is_locked());
}

// --- Misuse -------------------------------------------------------------------------------------

TEST(ConditionMisuse, AnEmptyGuardIsRefused) {
  VirtualLoop loop;
  Mutex mutex;
  Condition condition("test");
  auto root = [&]() -> Task<void> {
    auto lock = co_await mutex.lock();
    lock.unlock();
    try {
      co_await condition.wait(lock);
      ADD_FAILURE() << "was not refused";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("Condition 'test'"), std::string::npos);
    }
  };
  run(loop, root());
}

TEST(ConditionDeathTest, AWaitOnAnotherLoopThanTheLocks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop a;
    VirtualLoop b{a};
    Mutex mutex("accounts");
    Condition condition;
    auto root = [&]() -> Task<void> {
      auto lock = co_await mutex.lock();
      auto there = [&]() -> Task<void> { co_await condition.wait(lock); };
      co_await on(b, there());
    };
    run(a, root());
  };
  EXPECT_DEATH(misuse(), "Mutex 'accounts'.* loop [0-9]+.* loop [0-9]+ ");
}

TEST(ConditionDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      Mutex mutex;
      auto condition = std::make_unique<Condition>("short-lived");
      auto waits = [&]() -> Task<void> {
        auto lock = co_await mutex.lock();
        co_await condition->wait(lock);
      };
      StartedTask<void> waiter = waits().start_in_current_scope();
      co_await yields(2);
      condition.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "Condition 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
