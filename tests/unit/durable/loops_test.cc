// SPDX-License-Identifier: MIT
// A Mutex that tasks of several loops use: the engine lives on one of them. For the thread sanitizer.
#include <gtest/gtest.h>

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
  });
  EXPECT_GE(served, counter);
  EXPECT_GT(counter, 0);
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

}  // namespace
