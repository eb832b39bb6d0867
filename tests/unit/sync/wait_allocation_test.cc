// SPDX-License-Identifier: MIT
// L11 for sync/: waiting, being served and being cancelled takes no global operator new, and no
// pool block but the frames of the tasks themselves.
#include <gtest/gtest.h>

#include "support/counted_allocations.h"
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::VirtualLoop;

constexpr int kWarmUp = 4;
constexpr int kRounds = 50;

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

}  // namespace
