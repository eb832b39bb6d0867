// SPDX-License-Identifier: MIT
// A Mutex that tasks of several loops use: the engine lives on one of them. For the thread sanitizer.
#include <gtest/gtest.h>

#include <semaphore>
#include <string>

#include "support/durable_fixture.h"
#include "weft/durable/mutex.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::durable;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::durable::Mutex;  // not the one of sync/

constexpr unsigned kWorkers = 3;

template <class Body>
void on_workers(Body body) {
  IOContext context({.workers = kWorkers});
  auto root = [&]() -> Task<void> {
    auto inside = [&](Engine& engine) -> Task<void> { co_await body(context, engine); };
    or_throw(co_await with_engine(fresh_store_url(), inside));
  };
  context.run(root());
}

TEST(DurableLoops, OneAtATimeOnWhicheverLoop) {
  int counter = 0;  // plain: the lock is all that orders them
  std::uint64_t last = 0;
  constexpr int kTasks = 30;
  constexpr int kRounds = 40;
  on_workers([&](IOContext& context, Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto section = [&](LockContext& held) -> Task<void> {
      EXPECT_GT(held.fencing_token(), last);
      EXPECT_GT(held.lease_left(), 1s);
      last = held.fencing_token();
      int before = counter;
      co_await yield();
      counter = before + 1;
    };
    auto one = [&]() -> Task<void> {
      for (int round = 0; round < kRounds; ++round) or_throw(co_await lock.on_acquire(section));
    };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (unsigned i = 0; i < kTasks; ++i) nursery.start_on(context.loop(i % kWorkers), one);
      co_return join;
    };
    co_await with_nursery(all);
    EXPECT_EQ(engine.statistics().acquired, static_cast<std::uint64_t>(kTasks * kRounds));
  });
  EXPECT_EQ(counter, kTasks * kRounds);
}

// Cancelled at any moment on the way to the engine's loop, there, and back.
TEST(DurableLoops, CancelledAnywhereItIsGivenBack) {
  int counter = 0;
  int served = 0;
  on_workers([&](IOContext& context, Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto section = [&](LockContext&) -> Task<void> {
      ++served;
      int before = counter;
      co_await yield();
      counter = before + 1;
    };
    auto one = [&](unsigned number) -> Task<void> {
      for (unsigned round = 0; round < 60; ++round) {
        auto patience = std::chrono::microseconds((number * 37 + round * 11) % 300);
        static_cast<void>(co_await timeout(patience, lock.on_acquire(section)));
      }
    };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (unsigned i = 0; i < 12; ++i) nursery.start_on(context.loop(i % kWorkers), one, i);
      co_return join;
    };
    co_await with_nursery(all);
    or_throw(co_await lock.on_acquire(section));
    EXPECT_EQ(engine.statistics().held, 0u);
    EXPECT_EQ(engine.statistics().waiting, 0u);
    EXPECT_EQ(engine.statistics().lost_for(LossReason::gone), 0u)
        << "who is cancelled lost nothing";
  });
  EXPECT_GE(served, counter);
  EXPECT_GT(counter, 0);
}

// Time is up, and the lock is free before its loop hears of it: then it is somebody else's, and the function has not run.
TEST(DurableLoops, WhoHasGivenUpDoesNotBeginThoughItHearsOfItLate) {
  on_workers([&](IOContext& context, Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    EventLoop& home = *EventLoop::current_or_null();
    EventLoop& other = context.loop(&context.loop(0) == &home ? 1 : 0);
    std::binary_semaphore is_over(0);
    Event held("held"), queued("queued"), blocked("blocked");
    bool began = false;
    auto holder = [&]() -> Task<void> {
      auto section = [&](LockContext&) -> Task<void> {
        held.set();
        while (engine.statistics().waiting == 0) co_await yield();
        queued.set();
        co_await blocked.wait();
        co_await sleep_for(21ms);  // the other's time is up first: both are timers of this loop
      };
      or_throw(co_await lock.on_acquire(section));
      is_over.release();
    };
    auto waiter = [&]() -> Task<void> {
      co_await held.wait();
      auto section = [&](LockContext&) -> Task<void> {
        began = true;
        co_return;
      };
      LockResult<> got = co_await lock.on_acquire_within(20ms, section);
      EXPECT_EQ(got.error(), LockError::timeout);
      EXPECT_FALSE(began);
    };
    auto blocker = [&]() -> Task<void> {
      co_await queued.wait();
      blocked.set();
      is_over.acquire();
    };
    co_await all_of(holder(), on(other, waiter()), on(other, blocker()));
    EXPECT_EQ(engine.statistics().timed_out, 1u);
    EXPECT_EQ(engine.statistics().acquired, 1u);
    EXPECT_EQ(engine.statistics().waiting, 0u);
  });
}

TEST(DurableLoops, WithoutALockTheFunctionWasNotCalled) {
  int begun = 0;  // plain: by who has the lock
  on_workers([&](IOContext& context, Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.fair_bound = 3;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    ::weft::detail::Atomic<int> refused{0};
    auto one = [&](unsigned number) -> Task<void> {
      for (unsigned round = 0; round < 60; ++round) {
        bool began = false;
        auto section = [&](LockContext&) -> Task<void> {
          began = true;
          ++begun;
          co_await sleep_for(std::chrono::microseconds((number * 13 + round * 7) % 50));
        };
        auto patience = std::chrono::microseconds(1 + (number * 37 + round * 11) % 300);
        LockResult<> got = std::unexpected(LockError(LockError::invalid, ""));
        if (round % 4 == 0) {
          got = co_await lock.try_acquire(section);
        } else {
          got = co_await lock.on_acquire_within(patience, section);
        }
        EXPECT_EQ(got.has_value(), began) << (got ? "" : got.error().what());
        if (!got) refused.fetch_add(1, ::weft::detail::relaxed);
      }
    };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (unsigned i = 0; i < 12; ++i) nursery.start_on(context.loop(i % kWorkers), one, i);
      co_return join;
    };
    co_await with_nursery(all);
    EXPECT_GT(refused.load(::weft::detail::relaxed), 0);
    EXPECT_EQ(engine.statistics().acquired, static_cast<std::uint64_t>(begun));
    EXPECT_EQ(engine.statistics().waiting, 0u);
  });
}

TEST(DurableLoops, ALossReachesTheHolderOnItsOwnLoop) {
  on_workers([&](IOContext& context, Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    Event held("held");
    auto holder = [&]() -> Task<void> {
      auto section = [&](LockContext& context_of_lock) -> Task<void> {
        held.set();
        auto goodbye = [&]() -> Task<void> {
          EXPECT_TRUE(context_of_lock.is_lost());
          co_return;
        };
        co_await until_cancelled_and(goodbye);
      };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
    };
    auto killer = [&]() -> Task<void> {
      co_await held.wait();
      EXPECT_EQ(or_throw(co_await lock.force_kill()), 1u);
    };
    co_await all_of(on(context.loop(1), holder()), on(context.loop(2), killer()));
  });
}

// Code that does not await runs elsewhere, and asks how long it may go on.
TEST(DurableLoops, AContextIsAskedOnAnyThread) {
  on_workers([&](IOContext&, Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto section = [&](LockContext& held) -> Task<void> {
      auto look = [&](StopToken) {
        EXPECT_GT(held.fencing_token(), 0u);
        EXPECT_FALSE(held.is_lost());
        EXPECT_FALSE(held.stop_token().stop_requested());
        return held.lease_left();
      };
      std::chrono::nanoseconds left = co_await blocking(look);
      EXPECT_GT(left, 1s);
    };
    or_throw(co_await lock.on_acquire(section));
  });
}

}  // namespace
