// SPDX-License-Identifier: MIT
// L11 for sync/: no wait allocates, whether it ends well or is cancelled.
#include "support/counted_allocations.h"
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

constexpr int kWarmUp = 4;
constexpr int kRounds = 50;

struct SyncAllocationTest : LoopTest<VirtualLoop> {
  // Frames are the pool's, and not counted here.
  template <class Fn>
  void expect_no_allocation(Fn round) {
    auto measured = [&]() -> Task<void> {
      for (int i = 0; i < kWarmUp; ++i) co_await round();
      CountedAllocations counted;
      for (int i = 0; i < kRounds; ++i) co_await round();
      EXPECT_EQ(counted.news(), 0u);
    };
    run(loop, measured());
  }
};

TEST_F(SyncAllocationTest, ChannelWaits) {
  Channel<int> channel(1);
  auto sends = [&]() -> Task<void> {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(co_await channel.send(int(i)));
  };
  auto round = [&]() -> Task<void> {
    StartedTask<void> sender = sends().start_in_current_scope();
    for (int i = 0; i < 4; ++i) {  // it waits, and the sender does
      std::optional<int> item = co_await channel.receive();
      EXPECT_EQ(*item, i);
      if (i == 1) co_await yield();
    }
    co_await std::move(sender);
    auto late = co_await timeout(1ms, channel.receive());
    EXPECT_FALSE(late);
  };
  expect_no_allocation(round);
}

#ifdef WEFT_TEST_REPLACES_NEW

// L5: what was taken is not lost where there is no memory for more.
TEST_F(SyncAllocationTest, ReceiveUpToLosesNothingWithoutMemory) {
  Channel<int> channel(4);
  auto fill = [&](int first) {
    for (int i = first; i < first + 3; ++i) EXPECT_TRUE(channel.try_send(int(i)));
  };
  auto waits = [&](std::vector<int>& got) -> Task<void> {
    got = co_await channel.receive_up_to(4);
  };
  auto root = [&]() -> Task<void> {
    fill(1);
    bool refused = false;
    try {
      global_new_fails = true;
      std::vector<int> items = co_await channel.receive_up_to(4);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    global_new_fails = false;
    EXPECT_TRUE(refused);
    EXPECT_EQ(channel.size(), 3u);
    const std::vector<int> all = co_await channel.receive_up_to(4);
    EXPECT_EQ(all, (std::vector<int>{1, 2, 3}));

    // One that has waited, and is given one.
    std::vector<int> got;
    StartedTask<void> waiter = waits(got).start_in_current_scope();
    co_await yields(2);
    fill(4);
    global_new_fails = true;
    co_await yields(2);
    global_new_fails = false;
    co_await std::move(waiter);
    EXPECT_EQ(got, std::vector<int>{4});
    EXPECT_EQ(channel.size(), 2u);
  };
  run(loop, root());
}

#endif

// The halves' block, and nothing for the wait.
TEST_F(SyncAllocationTest, OneshotTakesOneBlock) {
  auto receives = [](OneshotReceiver<int>& receiver) -> Task<void> {
    std::optional<int> value = co_await receiver.receive();
    EXPECT_EQ(value, 1);
  };
  auto measured = [&]() -> Task<void> {
    for (int i = 0; i < kWarmUp; ++i) {
      CountedAllocations counted;
      auto [sender, receiver] = oneshot<int>();
      StartedTask<void> waits = receives(receiver).start_in_current_scope();
      co_await yields(2);
      EXPECT_TRUE(sender.send(1));
      co_await std::move(waits);
      EXPECT_LE(counted.news(), 1u);
    }
  };
  run(loop, measured());
}

TEST_F(SyncAllocationTest, WaitsForWatchAndBroadcast) {
  Watch<int> watch(1);
  Broadcast<int> broadcast(1);
  auto subscriber = broadcast.subscribe();
  auto round = [&]() -> Task<void> {
    auto changed = co_await timeout(1ms, watch.until_changed());
    EXPECT_FALSE(changed);
    auto received = co_await timeout(1ms, subscriber.receive());
    EXPECT_FALSE(received);
  };
  expect_no_allocation(round);
}

TEST_F(SyncAllocationTest, AnUnboundedChannelKeepsAChunk) {
  auto channel = Channel<int>::unbounded();
  auto round = [&]() -> Task<void> {
    constexpr int kMoreThanAChunk = 1500;
    for (int i = 0; i < kMoreThanAChunk; ++i) EXPECT_TRUE(co_await channel.send(int(i)));
    for (int i = 0; i < kMoreThanAChunk; ++i) static_cast<void>(co_await channel.receive());
  };
  expect_no_allocation(round);
}

// The predicate is false after the first notify, and the lock is taken when the second comes.
TEST_F(SyncAllocationTest, AConditionsWaitForAPredicate) {
  Mutex mutex;
  Condition condition;
  auto waits = [&]() -> Task<void> {
    int asked = 0;
    auto asked_thrice = [&] { return ++asked == 3; };
    auto lock = co_await mutex.lock();
    co_await condition.wait(lock, asked_thrice);
    EXPECT_EQ(asked, 3);
  };
  auto round = [&]() -> Task<void> {
    StartedTask<void> waiter = waits().start_in_current_scope();
    co_await yields(2);
    condition.notify_one();
    co_await yields(3);
    {
      auto lock = co_await mutex.lock();
      condition.notify_one();
      co_await yield();
    }
    co_await std::move(waiter);
    auto lock = co_await mutex.lock();
    auto late = co_await timeout(1ms, condition.wait(lock));
    EXPECT_FALSE(late);
  };
  expect_no_allocation(round);
}

struct SyncWaitAllocationTest : LoopTest<VirtualLoop> {
  // A round starts a task that waits, lets it through, and starts another that is cancelled while
  // it waits: two frames for each task, its own and the subject's, beside the round's.
  template <class Subject, class Let>
  void expect_frames_only(Subject subject, Let let_through) {
    auto round = [&]() -> Task<void> {
      StartedTask<void> served = subject().start_in_current_scope();
      co_await yield();
      co_await yield();
      let_through();
      co_await std::move(served);
      StartedTask<void> cancelled = subject().start_in_current_scope();
      co_await yield();
      co_await yield();
      cancelled.cancel();
      Outcome<void> how = co_await cancelled.outcome();
      EXPECT_TRUE(how.is_cancelled());
    };
    auto measured = [&]() -> Task<void> {
      for (int i = 0; i < kWarmUp; ++i) co_await round();
      CountedAllocations counted;
      for (int i = 0; i < kRounds; ++i) co_await round();
      EXPECT_EQ(counted.news(), 0u);
      EXPECT_LE(counted.blocks(), std::uint64_t{3} * kRounds);
    };
    run(loop, measured());
  }
};

TEST_F(SyncWaitAllocationTest, MutexLock) {
  Mutex mutex;
  auto subject = [&]() -> Task<void> { co_await mutex.lock_raw(); };
  auto unlock = [&] { mutex.unlock(); };
  auto unlock_at_the_end = [&]() -> Task<void> {
    mutex.unlock();
    co_return;
  };
  run(loop, subject());
  expect_frames_only(subject, unlock);
  run(loop, unlock_at_the_end());
}

TEST_F(SyncWaitAllocationTest, SharedMutexLock) {
  SharedMutex mutex;
  auto subject = [&]() -> Task<void> {
    co_await mutex.lock_raw();
    mutex.unlock();
    co_await mutex.lock_shared_raw();
  };
  auto unlock = [&] { mutex.unlock_shared(); };
  auto share = [&]() -> Task<void> { co_await mutex.lock_shared_raw(); };
  auto unlock_at_the_end = [&]() -> Task<void> {
    mutex.unlock_shared();
    co_return;
  };
  run(loop, share());
  expect_frames_only(subject, unlock);
  run(loop, unlock_at_the_end());
}

TEST_F(SyncWaitAllocationTest, SharedMutexLockShared) {
  SharedMutex mutex;
  auto subject = [&]() -> Task<void> {
    co_await mutex.lock_shared_raw();
    mutex.unlock_shared();
    co_await mutex.lock_raw();
  };
  auto unlock = [&] { mutex.unlock(); };
  auto lock = [&]() -> Task<void> { co_await mutex.lock_raw(); };
  auto unlock_at_the_end = [&]() -> Task<void> {
    mutex.unlock();
    co_return;
  };
  run(loop, lock());
  expect_frames_only(subject, unlock);
  run(loop, unlock_at_the_end());
}

TEST_F(SyncWaitAllocationTest, ConditionWait) {
  Mutex mutex;
  Condition condition;
  auto subject = [&]() -> Task<void> {
    auto lock = co_await mutex.lock();
    co_await condition.wait(lock);
  };
  auto notify = [&] { condition.notify_one(); };
  expect_frames_only(subject, notify);
}

TEST_F(SyncWaitAllocationTest, SemaphoreAcquire) {
  Semaphore semaphore({.permits = 0, .max = 3});
  auto subject = [&]() -> Task<void> { co_await semaphore.acquire_raw(3); };
  auto release = [&] { semaphore.release(3); };
  expect_frames_only(subject, release);
}

TEST_F(SyncWaitAllocationTest, EventWait) {
  Event event;
  auto subject = [&]() -> Task<void> { co_await event.wait(); };
  auto pulse = [&] {
    event.set();
    event.reset();
  };
  expect_frames_only(subject, pulse);
}

TEST_F(SyncWaitAllocationTest, AutoEventWait) {
  AutoEvent event;
  auto subject = [&]() -> Task<void> { co_await event.wait(); };
  auto set = [&] { event.set(); };
  expect_frames_only(subject, set);
}

TEST_F(SyncWaitAllocationTest, LatchWait) {
  Latch* current = nullptr;
  auto subject = [&]() -> Task<void> {
    Latch latch(1);
    current = &latch;
    co_await latch.wait();
  };
  auto count_down = [&] { current->count_down(); };
  expect_frames_only(subject, count_down);
}

TEST_F(SyncWaitAllocationTest, BarrierArriveAndWait) {
  Barrier* current = nullptr;
  auto subject = [&]() -> Task<void> {
    Barrier barrier(2);
    current = &barrier;
    co_await barrier.arrive_and_wait();
  };
  auto drop = [&] { current->arrive_and_drop(); };
  expect_frames_only(subject, drop);
}

TEST_F(SyncWaitAllocationTest, ParkingLotPark) {
  ParkingLot lot;
  auto subject = [&]() -> Task<void> { co_await lot.park(); };
  auto unpark = [&] { lot.unpark_one(); };
  expect_frames_only(subject, unpark);
}

TEST_F(SyncWaitAllocationTest, RateLimiterAcquire) {
  RateLimiter limiter({.tokens = 1, .interval = std::chrono::seconds(1), .burst = 1});
  auto subject = [&]() -> Task<void> {
    static_cast<void>(limiter.try_acquire());  // so that the next one waits
    co_await limiter.acquire();
  };
  auto time_does_it = [] {};
  expect_frames_only(subject, time_does_it);
}

// The block and the operation's frame when it is made; then nothing, for those who wait, for those
// who are cancelled, and for those who find it done.
TEST_F(SyncAllocationTest, SharedTakesOneBlock) {
  auto operation = []() -> Task<int> {
    co_await yields(3);
    co_return 1;
  };
  auto measured = [&]() -> Task<void> {
    for (int i = 0; i < kWarmUp; ++i) {
      CountedAllocations counted;
      Shared shared(operation());
      auto waits = [&]() -> Task<void> { co_await shared; };
      StartedTask<void> a = waits().start_in_current_scope();
      StartedTask<void> b = waits().start_in_current_scope();
      co_await yield();
      b.cancel();
      Outcome<void> how = co_await b.outcome();
      EXPECT_TRUE(how.is_cancelled());
      co_await std::move(a);
      int one = co_await shared;
      EXPECT_EQ(one, 1);
      EXPECT_LE(counted.news(), 1u);
      // The operation, what it awaits, and the two who wait.
      EXPECT_LE(counted.blocks(), 4u);
    }
  };
  run(loop, measured());
}

Generator<int> count_to(int end) {
  for (int i = 1; i <= end; ++i) {
    if (i % 10 == 0) co_await yield();
    co_yield i;
  }
}

// Its frame, and nothing per value, whether it waits before it or not.
TEST_F(SyncAllocationTest, AGeneratorTakesOneFrame) {
  constexpr int kValues = 1000;
  auto measured = [&]() -> Task<void> {
    CountedAllocations counted;
    Generator<int> numbers = count_to(kValues);
    int sum = 0;
    while (std::optional<int> n = co_await numbers.next()) sum += *n;
    EXPECT_EQ(sum, kValues * (kValues + 1) / 2);
    EXPECT_EQ(counted.news(), 0u);
    EXPECT_EQ(counted.blocks(), 1u);
  };
  run(loop, measured());
}

TEST_F(SyncAllocationTest, ANextThatIsABranchTakesAFrame) {
  auto measured = [&]() -> Task<void> {
    Generator<int> numbers = count_to(kRounds);
    CountedAllocations counted;
    for (int i = 1; i <= kRounds; ++i) {
      auto n = co_await timeout(1h, numbers.next());
      EXPECT_EQ(n.value(), i);
    }
    EXPECT_EQ(counted.news(), 0u);
    EXPECT_EQ(counted.blocks(), static_cast<std::uint64_t>(kRounds));
  };
  run(loop, measured());
}

}  // namespace
