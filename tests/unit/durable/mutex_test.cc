// SPDX-License-Identifier: MIT
// durable::Mutex over the engine in memory, on the virtual clock.
#include "weft/durable/mutex.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/durable_fixture.h"
#include "weft/durable/engine.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::durable;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::durable::Mutex;  // not the one of sync/
using weft::durable::Semaphore;

class DurableMutex : public ::testing::Test {
 protected:
  // Runs body(engine) on a fresh store.
  template <class Body>
  void with(Body body) {
    auto inside = [&]() -> Task<void> {
      LockResult<> ran = co_await with_engine(fresh_store_url(), body);
      EXPECT_TRUE(ran.has_value()) << (ran ? "" : ran.error().what());
    };
    run(loop, inside());
    EXPECT_EQ(loop.strand_count(), 0u);
  }
  weft::testing::VirtualLoop loop;
  Scope* root = nullptr;
};

TEST_F(DurableMutex, RunsTheFunctionAndReturnsItsResult) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("orders/42")));
    auto section = [](LockContext& held) -> Task<int> {
      EXPECT_GT(held.fencing_token(), 0u);
      EXPECT_GT(held.lease_left(), 10s);
      EXPECT_FALSE(held.is_lost());
      EXPECT_EQ(held.resource_id(), "orders/42");
      co_return 7;
    };
    LockResult<int> got = co_await lock.on_acquire(section);
    EXPECT_EQ(or_throw(got), 7);
    EXPECT_EQ(engine.statistics().acquired, 1u);
    EXPECT_EQ(engine.statistics().held, 0u);
    std::vector<ResourceReport> report = or_throw(co_await engine.report());
    EXPECT_EQ(report.size(), 1u);
    EXPECT_TRUE(report[0].tickets.empty()) << "given back before on_acquire() returned";
  });
}

TEST_F(DurableMutex, OneAtATimeInOrderOfArrival) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    std::vector<int> order;
    std::vector<std::uint64_t> tokens;
    int inside = 0;
    auto one = [&](int i) -> Task<void> {
      auto section = [&](LockContext& held) -> Task<void> {
        EXPECT_EQ(++inside, 1);
        order.push_back(i);
        tokens.push_back(held.fencing_token());
        co_await sleep_for(10ms);
        --inside;
      };
      or_throw(co_await lock.on_acquire(section));
    };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < 200; ++i) nursery.start(one, i);
      co_return join;
    };
    co_await with_nursery(all);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_TRUE(std::ranges::is_sorted(tokens, std::ranges::less_equal())) << "tokens rise";
    LockStatistics statistics = engine.statistics();
    EXPECT_EQ(statistics.acquired, 200u);
    EXPECT_EQ(statistics.handed_over, 200u - 4u) << "by fair_bound, 64 tasks share a ticket";
    EXPECT_EQ(statistics.was_held.count(), 200u);
  });
}

TEST_F(DurableMutex, BetweenProcessesInOrderOfArrival) {
  std::string url = fresh_store_url();
  std::vector<int> order;
  int inside = 0;
  auto process = [&](int i) -> Task<void> {
    auto body = [&, i](Engine& engine) -> Task<void> {
      co_await sleep_for(i * 1ms);
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      auto section = [&](LockContext&) -> Task<void> {
        EXPECT_EQ(++inside, 1);
        order.push_back(i);
        co_await sleep_for(1s);
        --inside;
      };
      for (int round = 0; round < 3; ++round) or_throw(co_await lock.on_acquire(section));
    };
    or_throw(co_await with_engine(url, body));
  };
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (int i = 0; i < 4; ++i) nursery.start(process, i);
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(all); };
  run(loop, root());
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST_F(DurableMutex, AfterTheFairBoundOthersHaveTheirTurn) {
  std::string url = fresh_store_url();
  std::string order;
  auto process = [&](char name, std::chrono::milliseconds late) -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      co_await sleep_for(late);
      MutexOptions options = named("r");
      options.fair_bound = 3;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      auto one = [&]() -> Task<void> {
        auto section = [&](LockContext&) -> Task<void> {
          order.push_back(name);
          co_await sleep_for(10ms);
        };
        or_throw(co_await lock.on_acquire(section));
      };
      auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
        for (int i = 0; i < 7; ++i) nursery.start(one);
        co_return join;
      };
      co_await with_nursery(all);
    };
    or_throw(co_await with_engine(url, body));
  };
  auto root = [&]() -> Task<void> { co_await all_of(process('a', 0ms), process('b', 1ms)); };
  run(loop, root());
  EXPECT_EQ(order, "aaabbbaaabbbab");
}

TEST_F(DurableMutex, TimesOutAndWithdraws) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.acquire_timeout = 2s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto hold = [](LockContext&) -> Task<void> { co_await sleep_for(10s); };
    auto never = [](LockContext&) -> Task<void> {
      ADD_FAILURE() << "it was not acquired";
      co_return;
    };
    auto late = [&]() -> Task<void> {
      co_await sleep_for(1s);
      TimePoint begin = now();
      LockResult<> got = co_await lock.on_acquire(never);
      EXPECT_EQ(got.error(), LockError::timeout) << got.error().what();
      EXPECT_EQ(std::string(got.error().what()), "timeout: 'r' was not acquired within 2 s");
      EXPECT_EQ(now() - begin, 2s);
      TimePoint second = now();
      LockResult<> again = co_await lock.on_acquire_within(500ms, never);
      EXPECT_EQ(again.error(), LockError::timeout);
      EXPECT_EQ(now() - second, 500ms);
    };
    co_await all_of(lock.on_acquire(hold), late());
    EXPECT_EQ(engine.statistics().timed_out, 2u);
  });
}

TEST_F(DurableMutex, TryAcquireDoesNotWait) {
  std::string url = fresh_store_url();
  auto holder = [&]() -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      auto hold = [](LockContext&) -> Task<void> { co_await sleep_for(10s); };
      or_throw(co_await lock.on_acquire(hold));
    };
    or_throw(co_await with_engine(url, body));
  };
  auto other = [&]() -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      co_await sleep_for(1s);
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      auto nothing = [](LockContext&) -> Task<int> { co_return 1; };
      TimePoint begin = now();
      LockResult<int> got = co_await lock.try_acquire(nothing);
      EXPECT_EQ(got.error(), LockError::busy);
      EXPECT_EQ(now(), begin);
      co_await sleep_for(10s);
      got = co_await lock.try_acquire(nothing);
      EXPECT_TRUE(got.has_value());
      auto nested = [&](LockContext&) -> Task<int> {
        LockResult<int> twice = co_await lock.try_acquire(nothing);
        EXPECT_EQ(twice.error(), LockError::busy);
        co_return 2;
      };
      EXPECT_EQ(or_throw(co_await lock.on_acquire(nested)), 2);
    };
    or_throw(co_await with_engine(url, body));
  };
  auto root = [&]() -> Task<void> { co_await all_of(holder(), other()); };
  run(loop, root());
}

TEST_F(DurableMutex, WhatTheFunctionThrowsPassesThroughAfterTheRelease) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto throws = [](LockContext&) -> Task<int> {
      co_await yield();
      throw std::runtime_error("mine");
    };
    std::string caught;
    try {
      static_cast<void>(co_await lock.on_acquire(throws));
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "mine");
    auto fine = [](LockContext&) -> Task<int> { co_return 1; };
    EXPECT_TRUE((co_await lock.try_acquire(fine)).has_value());
  });
}

TEST_F(DurableMutex, CancelledWhileItWaitsItIsWithdrawn) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto hold = [](LockContext&) -> Task<void> { co_await sleep_for(10s); };
    auto never = [](LockContext&) -> Task<void> {
      ADD_FAILURE();
      co_return;
    };
    auto impatient = [&]() -> Task<void> {
      co_await yield();
      auto result = co_await timeout(1s, lock.on_acquire(never));
      EXPECT_FALSE(result.has_value());
      EXPECT_EQ(engine.statistics().cancelled, 1u);
      EXPECT_EQ(engine.statistics().waiting, 0u);
    };
    co_await all_of(lock.on_acquire(hold), impatient());
    EXPECT_EQ(engine.statistics().acquired, 1u);
  });
}

// A program that is stopped: what it holds is given back and what it waits for is withdrawn, and not when leases end.
TEST_F(DurableMutex, AnEngineThatIsCancelledLeavesNothingBehind) {
  std::string url = fresh_store_url();
  auto with_lock = [&](std::chrono::seconds hold) -> Task<void> {
    auto body = [&, hold](Engine& engine) -> Task<void> {
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      auto section = [&](LockContext&) -> Task<void> { co_await sleep_for(hold); };
      or_throw(co_await lock.on_acquire(section));
    };
    or_throw(co_await with_engine(url, body));
  };
  auto stopped = [&](std::chrono::seconds late, std::chrono::seconds after) -> Task<void> {
    co_await sleep_for(late);
    TimePoint begun = now();
    auto in_time = co_await timeout(after, with_lock(100s));
    EXPECT_FALSE(in_time.has_value());
    EXPECT_EQ(now() - begun, after) << "it did not wait for an answer that does not come";
  };
  auto last = [&]() -> Task<void> {
    co_await sleep_for(2s);
    TimePoint begun = now();
    co_await with_lock(1s);
    EXPECT_EQ(now() - begun, 6s) << "the holder was stopped after 7 s, the waiter before";
  };
  auto root = [&]() -> Task<void> { co_await all_of(stopped(0s, 7s), stopped(1s, 3s), last()); };
  run(loop, root());
  EXPECT_EQ(loop.strand_count(), 0u);
}

// FIELD: a cancelled waiter stays queued and is later granted to nobody.
TEST_F(DurableMutex, ACancelledWaiterLeavesTheQueueBetweenProcessesAtOnce) {
  std::string url = fresh_store_url();
  auto holder = [&]() -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      auto hold = [&](LockContext&) -> Task<void> {
        co_await sleep_for(2s);
        std::vector<ResourceReport> report = or_throw(co_await engine.report());
        EXPECT_EQ(report.at(0).tickets.size(), 2u);
        co_await sleep_for(2s);
        report = or_throw(co_await engine.report());
        EXPECT_EQ(report.at(0).tickets.size(), 1u);
      };
      or_throw(co_await lock.on_acquire(hold));
    };
    or_throw(co_await with_engine(url, body));
  };
  auto waiter = [&]() -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      co_await sleep_for(1s);
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      auto never = [](LockContext&) -> Task<void> {
        ADD_FAILURE();
        co_return;
      };
      auto result = co_await timeout(2s, lock.on_acquire(never));
      EXPECT_FALSE(result.has_value());
      co_await sleep_for(5s);
    };
    or_throw(co_await with_engine(url, body));
  };
  auto root = [&]() -> Task<void> { co_await all_of(holder(), waiter()); };
  run(loop, root());
}

TEST_F(DurableMutex, CancelledWhileItHoldsItGivesBackAfterItsChildren) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    TimePoint child_ended;
    TimePoint next_began;
    auto section = [&](LockContext&) -> Task<void> {
      auto child = [&]() -> Task<void> {
        auto goodbye = [&]() -> Task<void> {
          co_await sleep_for(1s);
          child_ended = now();
        };
        co_await until_cancelled_and(goodbye);
      };
      auto children = [&](Nursery& nursery) -> Task<NurseryEnd> {
        nursery.start(child);
        co_return join;
      };
      co_await with_nursery(children);
    };
    auto next = [&]() -> Task<void> {
      co_await sleep_for(1s);
      auto section = [&](LockContext&) -> Task<void> {
        next_began = now();
        co_return;
      };
      or_throw(co_await lock.on_acquire(section));
    };
    co_await all_of(timeout(5s, lock.on_acquire(section)), next());
    EXPECT_EQ(next_began, child_ended);
    EXPECT_EQ(loop.elapsed(), 6s);
  });
}

TEST_F(DurableMutex, IsRenewedForAsLongAsItIsHeld) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.lease = 3s;
    options.max_hold = MutexOptions::kNever;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto section = [&](LockContext& held) -> Task<void> {
      for (int i = 0; i < 3600; ++i) {
        co_await sleep_for(1s);
        EXPECT_GE(held.lease_left(), 1s);
      }
    };
    EXPECT_TRUE((co_await lock.on_acquire(section)).has_value());
  });
}

TEST_F(DurableMutex, IsLostAfterMaxHold) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.max_hold = 20s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto section = [&](LockContext&) -> Task<void> { co_await suspend_forever(); };
    LockResult<> got = co_await lock.on_acquire(section);
    EXPECT_EQ(got.error(), LockError::lost) << got.error().what();
    EXPECT_EQ(loop.elapsed(), 20s);
    EXPECT_EQ(engine.statistics().lost_for(LossReason::max_hold), 1u);
  });
}

// One that does not end when it is told to: others have it when the lease has ended, and that is not renewed any more.
TEST_F(DurableMutex, WhoHoldsItForTooLongIsNotRenewed) {
  std::string url = fresh_store_url();
  MutexOptions options = named("r");
  options.lease = 8s;
  options.max_hold = 20s;
  options.acquire_timeout = 1h;
  auto stubborn = [&]() -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      auto section = [](LockContext&) -> Task<void> { co_await noncancellable(sleep_for(100s)); };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
    };
    or_throw(co_await with_engine(url, body));
  };
  auto next = [&]() -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      co_await sleep_for(1s);
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      auto section = [](LockContext&) -> Task<void> { co_return; };
      or_throw(co_await lock.on_acquire(section));
      EXPECT_GT(loop.elapsed(), 20s);
      EXPECT_LE(loop.elapsed(), 28s) << "a lease after the last renewal";
    };
    or_throw(co_await with_engine(url, body));
  };
  auto root = [&]() -> Task<void> { co_await all_of(stubborn(), next()); };
  run(loop, root());
}

// D3: one who has lost it, and is not out yet, keeps those of its own process out.
TEST_F(DurableMutex, WhoHasLostItIsWaitedForByItsOwnProcess) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.lease = 60s;
    options.max_hold = 20s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    bool inside = false;
    auto slow_to_leave = [&]() -> Task<void> {
      auto section = [&](LockContext&) -> Task<void> {
        inside = true;
        auto goodbye = [&]() -> Task<void> {
          EXPECT_EQ(loop.elapsed(), 20s);
          co_await sleep_for(3s);
          inside = false;
        };
        co_await until_cancelled_and(goodbye);
      };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
    };
    auto next = [&]() -> Task<void> {
      co_await sleep_for(1s);
      auto section = [&](LockContext&) -> Task<void> {
        EXPECT_FALSE(inside);
        EXPECT_EQ(loop.elapsed(), 23s);
        co_return;
      };
      or_throw(co_await lock.on_acquire(section));
    };
    co_await all_of(slow_to_leave(), next());
  });
}

TEST_F(DurableMutex, RevokedTheHolderIsCancelledAndWaitersHaveAnError) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    std::uint64_t first = 0;
    auto section = [&](LockContext& held) -> Task<void> {
      first = held.fencing_token();
      auto goodbye = [&]() -> Task<void> {
        EXPECT_TRUE(held.is_lost());
        EXPECT_EQ(held.lease_left(), 0s);
        EXPECT_EQ(held.fencing_token(), first) << "late writes carry it";
        co_return;
      };
      co_await until_cancelled_and(goodbye);
    };
    auto holder = [&]() -> Task<void> {
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost) << got.error().what();
      EXPECT_EQ(loop.elapsed(), 2s);
    };
    auto never = [](LockContext&) -> Task<void> {
      ADD_FAILURE();
      co_return;
    };
    auto waiter = [&]() -> Task<void> {
      co_await sleep_for(1s);
      LockResult<> got = co_await lock.on_acquire(never);
      EXPECT_EQ(got.error(), LockError::revoked) << got.error().what();
      EXPECT_EQ(loop.elapsed(), 2s);
    };
    auto killer = [&]() -> Task<void> {
      co_await sleep_for(2s);
      EXPECT_EQ(or_throw(co_await lock.force_kill()), 1u);
    };
    co_await all_of(holder(), waiter(), killer());
    auto next = [&](LockContext& held) -> Task<void> {
      EXPECT_GT(held.fencing_token(), first);
      co_return;
    };
    EXPECT_TRUE((co_await lock.on_acquire(next)).has_value());
    EXPECT_EQ(engine.statistics().lost_for(LossReason::revoked), 1u);
  });
}

TEST_F(DurableMutex, ReadersTogetherWritersAlone) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    int readers = 0;
    int most = 0;
    bool writing = false;
    auto read = [&](LockContext&) -> Task<void> {
      EXPECT_FALSE(writing);
      most = std::max(most, ++readers);
      co_await sleep_for(10ms);
      --readers;
    };
    auto write = [&](LockContext&) -> Task<void> {
      EXPECT_FALSE(std::exchange(writing, true));
      EXPECT_EQ(readers, 0);
      co_await sleep_for(10ms);
      writing = false;
    };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < 40; ++i) {
        auto reader = [&]() -> Task<void> { or_throw(co_await lock.on_acquire_shared(read)); };
        auto writer = [&]() -> Task<void> { or_throw(co_await lock.on_acquire(write)); };
        nursery.start(reader);
        nursery.start(reader);
        nursery.start(writer);
        co_await sleep_for(1ms);
      }
      co_return join;
    };
    co_await with_nursery(all);
    EXPECT_GE(most, 2);
    EXPECT_EQ(engine.statistics().acquired, 120u);
  });
}

TEST_F(DurableMutex, ASemaphoreLetsSoManyIn) {
  with([&](Engine& engine) -> Task<void> {
    SemaphoreOptions options;
    options.resource_id = "pool";
    options.permits = 3;
    Semaphore pool = or_throw(co_await Semaphore::open(engine, options));
    int inside = 0;
    int most = 0;
    auto section = [&](LockContext&) -> Task<void> {
      most = std::max(most, ++inside);
      co_await sleep_for(10ms);
      --inside;
    };
    auto one = [&]() -> Task<void> { or_throw(co_await pool.on_acquire(section)); };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < 30; ++i) nursery.start(one);
      co_return join;
    };
    co_await with_nursery(all);
    EXPECT_EQ(most, 3);
    EXPECT_EQ(loop.elapsed(), 100ms);
    options.permits = 4;
    LockResult<Semaphore> other = co_await Semaphore::open(engine, options);
    EXPECT_EQ(other.error(), LockError::mismatch) << other.error().what();
  });
}

// The store has forgotten it, and this process has not.
TEST_F(DurableMutex, AnotherNumberOfPermitsIsRefusedWhileThisProcessUsesOne) {
  with([&](Engine& engine) -> Task<void> {
    SemaphoreOptions options;
    options.resource_id = "pool";
    options.permits = 3;
    Semaphore pool = or_throw(co_await Semaphore::open(engine, options));
    or_throw(co_await pool.force_kill());
    EXPECT_TRUE(or_throw(co_await engine.report()).empty());
    SemaphoreOptions wider = options;
    wider.permits = 4;
    LockResult<Semaphore> other = co_await Semaphore::open(engine, wider);
    EXPECT_TRUE(!other && other.error() == LockError::mismatch);
  });
}

TEST_F(DurableMutex, SeveralAtOnceInOneOrder) {
  with([&](Engine& engine) -> Task<void> {
    Mutex a = or_throw(co_await Mutex::open(engine, named("a")));
    Mutex b = or_throw(co_await Mutex::open(engine, named("b")));
    int inside = 0;
    auto section = [&](std::vector<LockContext>& held) -> Task<void> {
      EXPECT_EQ(held.size(), 2u);
      EXPECT_EQ(held[0].resource_id(), "a");
      EXPECT_EQ(++inside, 1);
      co_await sleep_for(10ms);
      --inside;
    };
    std::vector<Mutex> one_way{a, b};
    std::vector<Mutex> the_other{b, a};
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < 20; ++i) {
        auto task = [&, i]() -> Task<void> {
          or_throw(co_await on_acquire_all(i % 2 == 0 ? one_way : the_other, section));
        };
        nursery.start(task);
      }
      co_return join;
    };
    co_await with_nursery(all);
    std::vector<Mutex> twice{a, a};
    LockResult<> got = co_await on_acquire_all(twice, section);
    EXPECT_EQ(got.error(), LockError::invalid);
    EXPECT_EQ(loop.elapsed(), 200ms);
  });
}

TEST_F(DurableMutex, SeveralOfOneNameInDifferentStores) {
  with([&](Engine& here) -> Task<void> {
    auto body = [&](Engine& there) -> Task<void> {
      Mutex a = or_throw(co_await Mutex::open(here, named("a")));
      Mutex other = or_throw(co_await Mutex::open(there, named("a")));
      std::vector<Mutex> both{a, other};
      auto section = [](std::vector<LockContext>& held) -> Task<std::size_t> {
        co_return held.size();
      };
      LockResult<std::size_t> got = co_await on_acquire_all(both, section);
      EXPECT_EQ(got, 2u);
    };
    or_throw(co_await with_engine(fresh_store_url(), body));
  });
}

TEST_F(DurableMutex, DeadlinesAndTriesOfEveryKind) {
  with([&](Engine& engine) -> Task<void> {
    Mutex a = or_throw(co_await Mutex::open(engine, named("a")));
    Mutex b = or_throw(co_await Mutex::open(engine, named("b")));
    SemaphoreOptions one;
    one.resource_id = "s";
    Semaphore permit = or_throw(co_await Semaphore::open(engine, one));
    std::vector<Mutex> both{a, b};
    auto inner = [](LockContext&) -> Task<void> { co_return; };
    auto inner_all = [](std::vector<LockContext>&) -> Task<void> { co_return; };
    auto taken = [&](LockContext&) -> Task<void> {
      auto begun = loop.elapsed();
      EXPECT_EQ((co_await a.on_acquire_shared_within(10ms, inner)).error(), LockError::timeout);
      EXPECT_EQ(loop.elapsed() - begun, 10ms);
      EXPECT_EQ((co_await permit.on_acquire_within(10ms, inner)).error(), LockError::timeout);
      EXPECT_EQ(loop.elapsed() - begun, 20ms);
      EXPECT_EQ((co_await permit.try_acquire(inner)).error(), LockError::busy);
      EXPECT_EQ((co_await try_acquire_all(both, inner_all)).error(), LockError::busy);
      EXPECT_EQ(loop.elapsed() - begun, 20ms);
      EXPECT_EQ((co_await on_acquire_all_within(10ms, both, inner_all)).error(),
                LockError::timeout);
      EXPECT_EQ(loop.elapsed() - begun, 30ms);
    };
    auto hold_permit = [&](LockContext&) -> Task<void> { or_throw(co_await a.on_acquire(taken)); };
    or_throw(co_await permit.on_acquire(hold_permit));
    or_throw(co_await try_acquire_all(both, inner_all));
    or_throw(co_await on_acquire_all_within(10ms, both, inner_all));
    or_throw(co_await on_acquire_all_within(MutexOptions::kNever, both, inner_all));
    EXPECT_EQ(engine.statistics().held, 0u);
  });
}

// The one timeout is for all of them: what the first one takes the second does not have.
TEST_F(DurableMutex, SeveralHaveOneDeadline) {
  with([&](Engine& engine) -> Task<void> {
    Mutex a = or_throw(co_await Mutex::open(engine, named("a")));
    Mutex b = or_throw(co_await Mutex::open(engine, named("b")));
    std::vector<Mutex> both{a, b};
    auto hold = [](const Mutex& lock, std::chrono::nanoseconds time) -> Task<void> {
      auto section = [time](LockContext&) -> Task<void> { co_await sleep_for(time); };
      or_throw(co_await lock.on_acquire(section));
    };
    auto want = [&]() -> Task<void> {
      auto section = [](std::vector<LockContext>&) -> Task<void> { co_return; };
      co_await sleep_for(1ms);
      auto begun = loop.elapsed();
      EXPECT_EQ((co_await on_acquire_all_within(1s, both, section)).error(), LockError::timeout);
      EXPECT_EQ(loop.elapsed() - begun, 1s);
    };
    co_await all_of(hold(a, 700ms), hold(b, 3s), want());
  });
}

TEST_F(DurableMutex, ASemaphoreIsTakenFromAllWhoHaveAPermit) {
  with([&](Engine& engine) -> Task<void> {
    SemaphoreOptions two;
    two.resource_id = "s";
    two.permits = 2;
    Semaphore permits = or_throw(co_await Semaphore::open(engine, two));
    auto hold = [&]() -> Task<void> {
      bool was_told = false;
      auto section = [&](LockContext& held) -> Task<void> {
        StopToken token = held.stop_token();
        EXPECT_FALSE(token.stop_requested());
        struct AtEnd {
          StopToken token;
          bool& told;
          ~AtEnd() { told = token.stop_requested(); }
        } at_end{token, was_told};
        co_await suspend_forever();
      };
      EXPECT_EQ((co_await permits.on_acquire(section)).error(), LockError::lost);
      EXPECT_TRUE(was_told);
    };
    auto kill = [&]() -> Task<void> {
      co_await sleep_for(1s);
      EXPECT_EQ(or_throw(co_await permits.force_kill()), 2u);
    };
    co_await all_of(hold(), hold(), kill());
    EXPECT_EQ(engine.statistics().lost_for(LossReason::revoked), 2u);
  });
}

TEST_F(DurableMutex, TheTaskTreeAndTheStatisticsSayWhoHoldsAndHowItWent) {
  auto body = [&](Engine& engine) -> Task<void> {
    MutexOptions options = named("orders/42");
    options.owner = "the first";
    options.fair_bound = 8;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto hold = [&]() -> Task<void> {
      auto section = [](LockContext&) -> Task<void> { co_await sleep_for(100ms); };
      or_throw(co_await lock.on_acquire(section));
    };
    auto look = [&]() -> Task<void> {
      co_await sleep_for(50ms);
      std::string tree = task_tree(*root);
      EXPECT_TRUE(tree.contains("orders/42: held with token ")) << tree;
      EXPECT_TRUE(tree.contains(" by the first, 2 wait, 0 lost")) << tree;
      co_await sleep_for(300ms);
      tree = task_tree(*root);
      EXPECT_TRUE(
          tree.contains("orders/42: held by nobody here, 0 wait, 0 lost, "
                        "waited p99 262 ms, held p99 131 ms"))
          << tree;
    };
    co_await all_of(hold(), hold(), hold(), look());
    LockStatistics statistics = engine.statistics();
    EXPECT_EQ(statistics.waited.count(), 3u);
    EXPECT_EQ(statistics.waited.sum(), 300ms);
    EXPECT_EQ(statistics.waited.quantile(0.0), 1us);  // at once
    EXPECT_EQ(statistics.waited.quantile(0.5), std::chrono::microseconds(1 << 17));
    EXPECT_EQ(statistics.waited.quantile(1.0), std::chrono::microseconds(1 << 18));
    EXPECT_EQ(statistics.was_held.count(), 3u);
    EXPECT_EQ(statistics.was_held.sum(), 300ms);
    options.max_hold = 20s;
    Mutex short_hold = or_throw(co_await Mutex::open(engine, options));
    auto kill = [&](LockContext&) -> Task<void> {
      or_throw(co_await lock.force_kill());
      co_await suspend_forever();
    };
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE((co_await lock.on_acquire(kill)).has_value());
    }
    std::string before = task_tree(*root);
    EXPECT_TRUE(before.contains("0 wait, 2 lost (2 revoked), waited p99 ")) << before;
    auto forever = [](LockContext&) -> Task<void> { co_await suspend_forever(); };
    EXPECT_FALSE((co_await short_hold.on_acquire(forever)).has_value());
    std::string after = task_tree(*root);
    EXPECT_TRUE(
        after.contains("0 wait, 3 lost (2 revoked, 1 max_hold), waited p99 262 ms, "
                       "held p99 33 s"))
        << after;
  };
  auto inside = [&]() -> Task<void> {
    root = &co_await current_scope();
    or_throw(co_await with_engine(fresh_store_url(), body));
  };
  run(loop, inside());
}

TEST_F(DurableMutex, WhoHoldsItWhenTheEngineEndsHasLostIt) {
  auto inside = [&]() -> Task<void> {
    Event opened, held, over;
    std::optional<Mutex> lock;
    Engine* engine = nullptr;
    auto serve = [&]() -> Task<void> {
      auto body = [&](Engine& made) -> Task<void> {
        engine = &made;
        lock = or_throw(co_await Mutex::open(made, named("r")));
        opened.set();
        co_await held.wait();
      };
      or_throw(co_await with_engine(fresh_store_url(), body));
      EXPECT_TRUE(over.is_set()) << "it is waited for";
    };
    auto use = [&]() -> Task<void> {
      co_await opened.wait();
      auto section = [&](LockContext&) -> Task<void> {
        held.set();
        co_await suspend_forever();
      };
      EXPECT_EQ((co_await lock->on_acquire(section)).error(), LockError::lost);
      EXPECT_EQ(engine->statistics().lost_for(LossReason::gone), 1u);
      over.set();
    };
    co_await all_of(serve(), use());
  };
  run(loop, inside());
}

// L7: it is told that it has lost the lock, and waited for, however long it takes to end.
TEST_F(DurableMutex, AnEngineEndsAfterWhoHoldsItsLocks) {
  weft::testing::VirtualLoop beside(loop);
  for (Executor* where : {static_cast<Executor*>(&loop), static_cast<Executor*>(&beside)}) {
    SCOPED_TRACE(where == &loop ? "at home" : "on another loop");
    std::string url = fresh_store_url();
    std::chrono::nanoseconds begun = loop.elapsed();
    bool has_ended = false;
    std::optional<LockContext> kept;
    auto inside = [&]() -> Task<void> {
      Event opened, held;
      std::optional<Mutex> lock;
      auto serve = [&]() -> Task<void> {
        auto body = [&](Engine& engine) -> Task<void> {
          lock = or_throw(co_await Mutex::open(engine, named("r")));
          opened.set();
          co_await held.wait();
        };
        or_throw(co_await with_engine(url, body));
        EXPECT_TRUE(has_ended);
        EXPECT_EQ(loop.elapsed() - begun, 20s);
      };
      auto use = [&]() -> Task<void> {
        co_await opened.wait();
        auto section = [&](LockContext& context) -> Task<void> {
          kept = context;
          held.set();
          co_await noncancellable(sleep_for(20s));
          EXPECT_TRUE(context.is_lost());
          EXPECT_EQ(context.lease_left(), 0s);
          has_ended = true;
        };
        EXPECT_EQ((co_await lock->on_acquire(section)).error(), LockError::lost);
      };
      auto other = [&](Engine& engine) -> Task<void> {
        Mutex same = or_throw(co_await Mutex::open(engine, named("r")));
        co_await all_of(serve(), on(*where, use()));
        auto nothing = [](LockContext&) -> Task<void> { co_return; };
        EXPECT_TRUE((co_await same.try_acquire(nothing)).has_value()) << "it was given back";
      };
      or_throw(co_await with_engine(url, other));
    };
    run(loop, inside());
    EXPECT_THROW(static_cast<void>(kept->lease_left()), UsageError);
  }
  EXPECT_EQ(loop.strand_count() + beside.strand_count(), 0u);
}

// Begun in time, on another loop, and there when the engine has ended, or is about to.
TEST_F(DurableMutex, WhoArrivesWhenTheEngineHasEndedHearsOfIt) {
  weft::testing::VirtualLoop beside(loop);
  int late = 0;
  for (int turns = 0; turns < 24; ++turns) {
    SCOPED_TRACE(turns);
    auto inside = [&]() -> Task<void> {
      Event opened, left;
      std::optional<Mutex> lock;
      auto serve = [&]() -> Task<void> {
        auto body = [&](Engine& engine) -> Task<void> {
          lock = or_throw(co_await Mutex::open(engine, named("r")));
          opened.set();
          co_await left.wait();
        };
        or_throw(co_await with_engine(fresh_store_url(), body));
      };
      auto use = [&]() -> Task<void> {
        co_await opened.wait();
        left.set();
        for (int i = 0; i < turns; ++i) co_await yield();
        auto section = [](LockContext&) -> Task<void> { co_return; };
        LockResult<> got = co_await lock->on_acquire(section);
        if (!got) {
          EXPECT_TRUE(got.error() == LockError::withdrawn || got.error() == LockError::lost)
              << got.error().what();
          ++late;
        }
      };
      co_await all_of(serve(), on(beside, use()));
    };
    run(loop, inside());
  }
  EXPECT_GT(late, 10);
}

TEST_F(DurableMutex, WhoWaitsWhenTheEngineEndsHearsOfIt) {
  std::string url = fresh_store_url();
  auto inside = [&]() -> Task<void> {
    Event opened, over;
    std::optional<Mutex> lock;
    auto holder = [&]() -> Task<void> {
      auto body = [&](Engine& engine) -> Task<void> {
        Mutex mine = or_throw(co_await Mutex::open(engine, named("r")));
        auto section = [&](LockContext&) -> Task<void> { co_await over.wait(); };
        or_throw(co_await mine.on_acquire(section));
      };
      or_throw(co_await with_engine(url, body));
    };
    auto serve = [&]() -> Task<void> {
      auto body = [&](Engine& engine) -> Task<void> {
        co_await sleep_for(1s);
        lock = or_throw(co_await Mutex::open(engine, named("r")));
        opened.set();
        co_await sleep_for(1s);
      };
      or_throw(co_await with_engine(url, body));
      EXPECT_EQ(loop.elapsed(), 2s) << "at once";
    };
    auto wait = [&]() -> Task<void> {
      co_await opened.wait();
      auto never = [](LockContext&) -> Task<void> {
        ADD_FAILURE();
        co_return;
      };
      LockResult<> got = co_await lock->on_acquire(never);
      EXPECT_EQ(got.error(), LockError::withdrawn) << got.error().what();
      EXPECT_EQ(loop.elapsed(), 2s);
      over.set();
    };
    co_await all_of(holder(), serve(), wait());
  };
  run(loop, inside());
}

TEST_F(DurableMutex, IfOneOfSeveralIsLostAllIsCancelled) {
  with([&](Engine& engine) -> Task<void> {
    Mutex a = or_throw(co_await Mutex::open(engine, named("a")));
    Mutex b = or_throw(co_await Mutex::open(engine, named("b")));
    auto section = [](std::vector<LockContext>&) -> Task<void> { co_await suspend_forever(); };
    std::vector<Mutex> both{a, b};
    auto holder = [&]() -> Task<void> {
      LockResult<> got = co_await on_acquire_all(both, section);
      EXPECT_EQ(got.error(), LockError::lost);
    };
    auto killer = [&]() -> Task<void> {
      co_await sleep_for(1s);
      or_throw(co_await b.force_kill());
    };
    co_await all_of(holder(), killer());
    EXPECT_EQ(engine.statistics().held, 0u);
  });
}

TEST_F(DurableMutex, AContextIsRefusedAfterItsLock) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    std::optional<LockContext> kept;
    auto section = [&](LockContext& held) -> Task<void> {
      kept = held;
      EXPECT_EQ(kept->fencing_token(), held.fencing_token());
      co_return;
    };
    or_throw(co_await lock.on_acquire(section));
    EXPECT_THROW(static_cast<void>(kept->fencing_token()), UsageError);
    EXPECT_THROW(static_cast<void>(kept->lease_left()), UsageError);
    EXPECT_THROW(static_cast<void>(kept->is_lost()), UsageError);
    EXPECT_THROW(static_cast<void>(kept->scope()), UsageError);
  });
}

// --- The scope --------------------------------------------------------------------------------------

TEST_F(DurableMutex, WhatIsStartedInTheScopeIsCancelledByTheLossAndJoinedBeforeTheRelease) {
  for (bool returns : {false, true}) {
    SCOPED_TRACE(returns ? "the function has returned" : "the function waits");
    std::chrono::nanoseconds begun = loop.elapsed();
    with([&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 60s;
      options.max_hold = 20s;
      options.acquire_timeout = 1h;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      bool inside = false;
      auto child = [&]() -> Task<void> {
        inside = true;
        auto goodbye = [&]() -> Task<void> {
          EXPECT_EQ(loop.elapsed() - begun, 20s);
          co_await sleep_for(3s);
          inside = false;
        };
        co_await until_cancelled_and(goodbye);
      };
      auto holder = [&]() -> Task<void> {
        auto section = [&](LockContext& held) -> Task<int> {
          auto started = child().start(held.scope());
          started.detach();
          if (!returns) co_await suspend_forever();
          co_return 7;
        };
        EXPECT_EQ((co_await lock.on_acquire(section)).error(), LockError::lost);
        EXPECT_FALSE(inside);
        EXPECT_EQ(loop.elapsed() - begun, 23s);
      };
      auto next = [&]() -> Task<void> {
        co_await sleep_for(1s);
        auto section = [&](LockContext&) -> Task<void> {
          EXPECT_FALSE(inside) << "it was given back before the child had ended";
          EXPECT_EQ(loop.elapsed() - begun, 23s);
          co_return;
        };
        or_throw(co_await lock.on_acquire(section));
      };
      co_await all_of(holder(), next());
    });
  }
}

TEST_F(DurableMutex, WhatIsStartedInTheScopeIsJoinedAndNotCancelledByTheFunctionsReturn) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    bool ended = false;
    std::optional<LockContext> kept;
    auto grandchild = [&]() -> Task<void> {
      co_await sleep_for(5s);
      EXPECT_EQ(engine.statistics().held, 1u);
      ended = true;
    };
    auto child = [&]() -> Task<void> {
      co_await sleep_for(5s);
      auto started =
          grandchild().start(kept->scope());  // the function has returned, the scope is there
      started.detach();
    };
    auto section = [&](LockContext& held) -> Task<int> {
      kept = held;
      auto started = child().start(held.scope());
      started.detach();
      co_return 7;
    };
    EXPECT_EQ(or_throw(co_await lock.on_acquire(section)), 7);
    EXPECT_TRUE(ended);
    EXPECT_EQ(loop.elapsed(), 10s);
    EXPECT_THROW(static_cast<void>(kept->scope()), UsageError);
  });
}

TEST_F(DurableMutex, AChildOfTheScopeThatFailsIsTheFunctionsError) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto child = []() -> Task<void> {
      co_await sleep_for(1s);
      throw std::runtime_error("the child's");
    };
    auto section = [&](LockContext& held) -> Task<int> {
      auto started = child().start(held.scope());
      started.detach();
      co_return 7;
    };
    std::string caught;
    try {
      static_cast<void>(co_await lock.on_acquire(section));
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "the child's");
    EXPECT_EQ(engine.statistics().held, 0u);
  });
}

// Whichever of them is lost: there is one scope for all.
TEST_F(DurableMutex, TheScopeOfSeveralLocksEndsWithAnyOfThem) {
  for (std::size_t lost : {0u, 1u}) {
    for (std::size_t asked : {0u, 1u}) {
      SCOPED_TRACE(std::to_string(lost) + " is lost, " + std::to_string(asked) + " is asked");
      with([&](Engine& engine) -> Task<void> {
        Mutex a = or_throw(co_await Mutex::open(engine, named("a")));
        Mutex b = or_throw(co_await Mutex::open(engine, named("b")));
        std::vector<Mutex> both{a, b};
        bool was_cancelled = false;
        auto child = [&]() -> Task<void> {
          auto goodbye = [&]() -> Task<void> {
            EXPECT_EQ(engine.statistics().held, 2u) << "neither is given back";
            was_cancelled = true;
            co_return;
          };
          co_await until_cancelled_and(goodbye);
        };
        std::optional<LockContext> kept;
        auto section = [&](std::vector<LockContext>& held) -> Task<void> {
          kept = held[asked];
          auto started = child().start(held[asked].scope());
          started.detach();
          or_throw(co_await both[lost].force_kill());
          co_await suspend_forever();
        };
        LockResult<> got = co_await on_acquire_all(both, section);
        EXPECT_EQ(got.error(), LockError::lost);
        EXPECT_TRUE(was_cancelled);
        EXPECT_THROW(static_cast<void>(kept->scope()), UsageError);
      });
    }
  }
}

TEST_F(DurableMutex, TheScopeIsOfTheFunctionsLoop) {
  weft::testing::VirtualLoop beside(loop);
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto child = []() -> Task<int> { co_return 1; };
    auto use = [&]() -> Task<void> {
      auto section = [&](LockContext& held) -> Task<void> {
        auto started = child().start(held.scope());
        EXPECT_EQ(co_await std::move(started), 1);
        auto elsewhere = [&]() -> Task<void> {
          EXPECT_THROW(static_cast<void>(child().start(held.scope())), UsageError);
          co_return;
        };
        co_await on(loop, elsewhere());
      };
      or_throw(co_await lock.on_acquire(section));
    };
    co_await on(beside, use());
  });
}

// --- Idle shutdown ----------------------------------------------------------------------------------

TEST_F(DurableMutex, AnUnusedWorkflowEndsAfterItsIdleTimeoutAndNoSooner) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.idle_timeout = 60s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto section = [](LockContext&) -> Task<void> { co_await sleep_for(100s); };
    or_throw(co_await lock.on_acquire(section));
    EXPECT_EQ(engine.workflows(), 1u) << "held for longer than idle_timeout is not idle";
    co_await sleep_for(59s);
    EXPECT_EQ(engine.workflows(), 1u);
    co_await sleep_for(999ms);
    EXPECT_EQ(engine.workflows(), 1u);
    co_await sleep_for(2ms);
    EXPECT_EQ(engine.workflows(), 0u);
    EXPECT_TRUE(or_throw(co_await engine.report()).empty()) << "nothing is left in the store";
    auto again = [](LockContext&) -> Task<void> { co_return; };
    or_throw(co_await lock.on_acquire(again));  // an old handle starts another
    EXPECT_EQ(engine.workflows(), 1u);
    EXPECT_EQ(engine.statistics().workflows_started, 2u);
    EXPECT_EQ(engine.statistics().workflows_ended, 1u);
  });
}

TEST_F(DurableMutex, AnyAcquireRestartsTheIdleTime) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.idle_timeout = 60s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto section = [](LockContext&) -> Task<void> { co_return; };
    for (int i = 0; i < 10; ++i) {
      or_throw(co_await lock.on_acquire(section));
      co_await sleep_for(59s);
    }
    EXPECT_EQ(engine.statistics().workflows_started, 1u);
  });
}

TEST_F(DurableMutex, AnAcquireInTheInstantOfTheIdleEndIsServed) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    weft::testing::VirtualLoop shuffled;
    shuffled.shuffle_by(seed);
    auto root = [&]() -> Task<void> {
      auto body = [&](Engine& engine) -> Task<void> {
        MutexOptions options = named("r");
        options.idle_timeout = 60s;
        Mutex lock = or_throw(co_await Mutex::open(engine, options));
        auto section = [](LockContext&) -> Task<int> { co_return 1; };
        for (int i = 0; i < 5; ++i) {
          EXPECT_EQ(or_throw(co_await lock.on_acquire(section)), 1);
          co_await sleep_for(60s);
        }
        EXPECT_EQ(engine.statistics().acquired, 5u);
      };
      or_throw(co_await with_engine(fresh_store_url(), body));
    };
    run(shuffled, root());
  }
}

// --- Options ----------------------------------------------------------------------------------------

TEST_F(DurableMutex, BadOptionsAreRefusedWithWhatToDo) {
  with([&](Engine& engine) -> Task<void> {
    auto refused = [&](MutexOptions options, std::string why) -> Task<void> {
      LockResult<Mutex> opened = co_await Mutex::open(engine, options);
      EXPECT_FALSE(opened.has_value()) << why;
      if (!opened) {
        EXPECT_EQ(opened.error(), LockError::invalid);
        EXPECT_NE(std::string(opened.error().what()).find(why), std::string::npos)
            << opened.error().what();
      }
    };
    MutexOptions nameless;
    co_await refused(nameless, "resource_id is empty");
    co_await refused(named(std::string(513, 'x')), "513 bytes");
    co_await refused(named(std::string("a\0b", 3)), "NUL");
    MutexOptions options = named("r");
    options.acquire_timeout = 0s;
    co_await refused(options, "acquire_timeout is not positive");
    options = named("r");
    options.lease = -1s;
    co_await refused(options, "lease is not positive");
    options = named("r");
    options.idle_timeout = 0s;
    co_await refused(options, "idle_timeout is not positive");
    options = named("r");
    options.max_hold = 0s;
    co_await refused(options, "max_hold is not positive");
    options = named("r");
    options.lease = 1ms;
    co_await refused(options, "lease is 10 ms at least");
    options.lease = 24h + 1ns;
    co_await refused(options, "24 h at most");
    options = named("r");
    options.fair_bound = 0;
    co_await refused(options, "fair_bound");
    options.fair_bound = MutexOptions::kFairBoundMax + 1;
    co_await refused(options, "65536 at most");
    options = named("r");
    options.owner = std::string(50 << 20, 'x');
    co_await refused(options, "52428800 bytes; 256 are the most");
    for (const char* owner : {"a\nb", "\x1b[31m", "a\x7f"}) {
      options.owner = owner;
      co_await refused(options, "control character");
    }
    options.owner = std::string("a\0b", 3);
    co_await refused(options, "control character");
    for (std::uint32_t permits : {0u, 1u << 30}) {
      SemaphoreOptions wrong;
      wrong.resource_id = "s";
      wrong.permits = permits;
      LockResult<Semaphore> opened = co_await Semaphore::open(engine, wrong);
      EXPECT_TRUE(!opened && opened.error() == LockError::invalid) << permits;
    }
    auto none = [](std::vector<LockContext>&) -> Task<int> { co_return 1; };
    std::vector<Mutex> nothing;
    LockResult<int> all_of_none = co_await on_acquire_all(nothing, none);
    EXPECT_TRUE(!all_of_none && all_of_none.error() == LockError::invalid) << "it ran, unprotected";
    all_of_none = co_await on_acquire_all_within(1s, nothing, none);
    EXPECT_TRUE(!all_of_none && all_of_none.error() == LockError::invalid);
    all_of_none = co_await try_acquire_all(nothing, none);
    EXPECT_TRUE(!all_of_none && all_of_none.error() == LockError::invalid);
    EXPECT_TRUE(or_throw(co_await engine.report()).empty()) << "nothing was asked of the store";
  });
}

TEST_F(DurableMutex, AnyTextCanBeMadeAnOwner) {
  EXPECT_EQ(as_owner("loom app[1]: gr\xc3\xbc\xc3\x9f"), "loom app[1]: gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(as_owner("a\tb\n"), "a?b?");
  EXPECT_EQ(as_owner(std::string(300, 'x')), std::string(256, 'x'));
  EXPECT_EQ(as_owner(std::string(255, 'x') + "\xc3\xbc"), std::string(255, 'x'));
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.owner = as_owner(std::string("\0\x1b", 2) + std::string(300, 'x'));
    EXPECT_TRUE((co_await Mutex::open(engine, options)).has_value());
  });
}

TEST_F(DurableMutex, UrlsThatNameNoEngineAreRefused) {
  for (const char* url : {"", "memory", "memory:", "memory://", "redis://x", "sqlit:///x"}) {
    LockResult<std::unique_ptr<LockStore>> store = make_store(url);
    ASSERT_FALSE(store.has_value()) << url;
    EXPECT_EQ(store.error(), LockError::invalid);
  }
}

}  // namespace
