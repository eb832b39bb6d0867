// SPDX-License-Identifier: MIT
// What durable::Mutex promises on every engine: see support/mutex_suite.h. Which engines there are is said in memory_mutex_test.cc,
// sqlite_mutex_test.cc and etcd_mutex_test.cc.
#include "support/mutex_suite.h"

#include <utility>

namespace weft::test {

namespace {

Task<void> inside(const Stores& stores, Engines& engines, std::size_t left,
                  const std::function<Task<void>(Engines&)>& body) {
  if (left == 0) co_return co_await body(engines);
  auto next = [&](Engine& engine) -> Task<void> {
    engines.push_back(&engine);
    co_await inside(stores, engines, left - 1, body);
  };
  LockResult<> ran = co_await durable::with_engine(stores.make(), next);
  EXPECT_TRUE(ran.has_value()) << (ran ? "" : ran.error().what());
}

}  // namespace

void MutexSuite::with_engines(std::size_t count, const Body& body) {
  with_engines_on(loop_.loop(), *stores_, count, body);
}
void MutexSuite::with_engines_on(Loop& loop, const Stores& stores, std::size_t count,
                                 const Body& body) {
  Engines engines;
  auto root = [&]() -> Task<void> { co_await inside(stores, engines, count, body); };
  auto in_time = [&]() -> Task<bool> {
    auto ended = co_await timeout(
        std::chrono::hours(is_exact() ? 1000 : 0) + std::chrono::seconds(60), root());
    co_return ended.has_value();
  };
  EXPECT_TRUE(weft::run(loop, in_time())) << "it hangs";
  EXPECT_EQ(loop.strand_count(), 0u);
}

void MutexSuite::expect_took(Duration took, Duration expected) {
  if (is_exact()) {
    EXPECT_EQ(took, expected);
  } else {
    EXPECT_GE(took, expected);
    EXPECT_LT(took, expected + std::chrono::seconds(10));
  }
}

durable::MutexOptions MutexSuite::options(std::string resource) {
  durable::MutexOptions made = named(std::move(resource));
  made.lease = lease();
  made.idle_timeout = units(600);
  return made;
}
Task<DurableMutex> MutexSuite::open(Engine& engine, std::string resource) {
  durable::MutexOptions wanted = options(std::move(resource));
  co_return or_throw(co_await DurableMutex::open(engine, wanted));
}
Task<DurableMutex> MutexSuite::open_for_long(Engine& engine) {
  durable::MutexOptions wanted = options();
  wanted.lease *= 100;
  co_return or_throw(co_await DurableMutex::open(engine, wanted));
}
Task<std::size_t> MutexSuite::tickets(Engine& engine) {
  std::size_t count = 0;
  for (const durable::ResourceReport& each : or_throw(co_await engine.report()))
    count += each.tickets.size();
  co_return count;
}
Task<void> MutexSuite::until_tickets(Engine& engine, std::size_t count) {
  constexpr int kLooksMax = 500;
  std::size_t there = co_await tickets(engine);
  for (int looks = 0; there != count && looks < kLooksMax; ++looks) {
    co_await wait(1);
    there = co_await tickets(engine);
  }
  EXPECT_EQ(there, count);
}
Task<std::uint64_t> MutexSuite::token_of(DurableMutex& lock) {
  auto section = [](LockContext& held) -> Task<std::uint64_t> { co_return held.fencing_token(); };
  co_return or_throw(co_await lock.on_acquire(section));
}
Task<void> MutexSuite::never(LockContext&) {
  ADD_FAILURE() << "it was not acquired";
  co_return;
}

TEST_P(MutexSuite, AcquiresAndReleases) {
  with_engines(1, [&](Engines& at) -> Task<void> {
    DurableMutex lock = co_await open(*at[0]);
    auto section = [&](LockContext& held) -> Task<int> {
      EXPECT_GT(held.fencing_token(), 0u);
      EXPECT_GT(held.lease_left(), std::chrono::nanoseconds(0));
      EXPECT_FALSE(held.is_lost());
      std::size_t there = co_await tickets(*at[0]);
      EXPECT_EQ(there, 1u);
      co_return 7;
    };
    LockResult<int> got = co_await lock.on_acquire(section);
    EXPECT_EQ(or_throw(got), 7);
    std::size_t left = co_await tickets(*at[0]);
    EXPECT_EQ(left, 0u) << "given back before on_acquire() returned";
  });
}

TEST_P(MutexSuite, TasksAreServedInOrderOfArrivalWithRisingTokens) {
  constexpr int kTasks = 30;
  with_engines(1, [&](Engines& at) -> Task<void> {
    durable::MutexOptions options = MutexSuite::options();
    options.fair_bound = 4;
    DurableMutex lock = or_throw(co_await DurableMutex::open(*at[0], options));
    std::vector<int> order, expected;
    std::vector<std::uint64_t> tokens;
    int inside = 0;
    auto one = [&](int i) -> Task<void> {
      auto section = [&](LockContext& held) -> Task<void> {
        EXPECT_EQ(++inside, 1);
        order.push_back(i);
        tokens.push_back(held.fencing_token());
        co_await yield();
        --inside;
      };
      or_throw(co_await lock.on_acquire(section));
    };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < kTasks; ++i) nursery.start(one, i);
      co_return join;
    };
    co_await with_nursery(all);
    for (int i = 0; i < kTasks; ++i) expected.push_back(i);
    EXPECT_EQ(order, expected);
    EXPECT_EQ(std::ranges::adjacent_find(tokens, std::ranges::greater_equal()), tokens.end());
  });
}

TEST_P(MutexSuite, ProcessesAreServedInOrderOfArrivalWithRisingTokens) {
  constexpr int kProcesses = 3;
  with_engines(kProcesses, [&](Engines& at) -> Task<void> {
    std::vector<int> order;
    std::vector<std::uint64_t> tokens;
    int inside = 0;
    auto process = [&](int i) -> Task<void> {
      co_await until_tickets(*at[0], static_cast<std::size_t>(i));
      DurableMutex lock = co_await open(*at[static_cast<std::size_t>(i)]);
      auto section = [&](LockContext& held) -> Task<void> {
        EXPECT_EQ(++inside, 1);
        order.push_back(i);
        tokens.push_back(held.fencing_token());
        // Until all others are there: the one that was the last is behind them.
        if (order.size() <= kProcesses + 1) co_await until_tickets(*at[0], kProcesses);
        --inside;
      };
      for (int round = 0; round < 2; ++round) or_throw(co_await lock.on_acquire(section));
    };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < kProcesses; ++i) nursery.start(process, i);
      co_return join;
    };
    co_await with_nursery(all);
    EXPECT_EQ(order, (std::vector{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(std::ranges::adjacent_find(tokens, std::ranges::greater_equal()), tokens.end());
  });
}

TEST_P(MutexSuite, WhoWaitsForLongerThanItsLeaseKeepsItsPlace) {
  with_engines(3, [&](Engines& at) -> Task<void> {
    std::vector<int> order;
    auto process = [&](int i) -> Task<void> {
      co_await until_tickets(*at[0], static_cast<std::size_t>(i));
      // The last one comes when the lease of the one before has ended, if that was not renewed (etcd takes its time).
      if (i == 2) co_await sleep_for(lease() * 5 / 2);
      durable::MutexOptions options = MutexSuite::options();
      options.acquire_timeout = durable::MutexOptions::kNever;
      Engine& engine = *at[static_cast<std::size_t>(i)];
      DurableMutex lock = or_throw(co_await DurableMutex::open(engine, options));
      auto section = [&](LockContext&) -> Task<void> {
        order.push_back(i);
        if (i > 0) co_return;
        co_await until_tickets(*at[0], 3);
        auto report = or_throw(co_await at[0]->report());
        EXPECT_GT(report.at(0).tickets.at(1).age, lease() * 2) << "it came anew";
      };
      auto got = co_await lock.on_acquire(section);
      EXPECT_TRUE(got.has_value()) << (got ? "" : got.error().what());
    };
    co_await all_of(process(0), process(1), process(2));
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
  });
}

TEST_P(MutexSuite, TimesOutAndLeavesTheQueue) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    Event held_by_us, gave_up;
    auto holder = [&]() -> Task<void> {
      DurableMutex lock = co_await open(*at[0]);
      auto hold = [&](LockContext&) -> Task<void> {
        held_by_us.set();
        co_await gave_up.wait();
        co_await until_tickets(*at[0], 1);  // who gave up does not stand in the queue
      };
      or_throw(co_await lock.on_acquire(hold));
    };
    auto waiter = [&]() -> Task<void> {
      co_await held_by_us.wait();
      DurableMutex lock = co_await open_for_long(*at[1]);
      TimePoint begun = now();
      auto got = co_await lock.on_acquire_within(units(3), never);
      EXPECT_TRUE(!got && got.error() == LockError::timeout) << (got ? "" : got.error().what());
      expect_took(now() - begun, units(3));
      EXPECT_EQ(at[1]->statistics().timed_out, 1u);
      gave_up.set();
    };
    co_await all_of(holder(), waiter());
  });
}

TEST_P(MutexSuite, CancelledWhileItWaitsItLeavesTheQueue) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    Event held_by_us, queued;
    auto holder = [&]() -> Task<void> {
      DurableMutex lock = co_await open(*at[0]);
      auto hold = [&](LockContext&) -> Task<void> {
        held_by_us.set();
        co_await until_tickets(*at[0], 2);
        queued.set();
        co_await until_tickets(*at[0], 1);
      };
      or_throw(co_await lock.on_acquire(hold));
    };
    auto waiter = [&]() -> Task<void> {
      co_await held_by_us.wait();
      DurableMutex lock = co_await open_for_long(*at[1]);
      auto [got, cancelled] = co_await any_of(lock.on_acquire(never), queued.wait());
      EXPECT_FALSE(got.has_value());
      EXPECT_EQ(at[1]->statistics().cancelled, 1u);
      EXPECT_EQ(at[1]->statistics().waiting, 0u);
    };
    co_await all_of(holder(), waiter());
  });
}

// From before the store was asked until long after it has answered, so among others while the grant is under way.
TEST_P(MutexSuite, CancelledAtAnyMomentItLeavesNothingBehind) {
  constexpr int kMoments = 24;
  with_engines(2, [&](Engines& at) -> Task<void> {
    DurableMutex lock = co_await open_for_long(*at[0]);
    DurableMutex other = co_await open_for_long(*at[1]);
    std::uint64_t last = 0;
    int moment = 0, begun = 0;
    Event last_begun;
    auto section = [&](LockContext& held) -> Task<void> {
      ++begun;
      EXPECT_GT(held.fencing_token(), std::exchange(last, held.fencing_token()));
      if (moment == kMoments - 1) last_begun.set();
      co_await suspend_forever();
    };
    for (; moment < kMoments; ++moment) {
      auto cut = [&]() -> Task<void> {
        if (moment == kMoments - 1) {
          co_await last_begun.wait();
        } else if (is_exact()) {
          for (int i = 0; i < moment; ++i) co_await yield();
        } else {
          co_await sleep_for(units(moment) / 100);
        }
      };
      auto enter = [&]() -> Task<void> { static_cast<void>(co_await lock.on_acquire(section)); };
      co_await any_of(enter, cut);
      co_await until_tickets(*at[1], 0);
      std::uint64_t next = co_await token_of(other);
      EXPECT_GT(next, std::exchange(last, next)) << moment;
    }
    EXPECT_LT(begun, kMoments) << "some were cut before the grant";
    EXPECT_EQ(at[0]->statistics().waiting + at[0]->statistics().held, 0u);
  });
}

TEST_P(MutexSuite, CancelledWhileItHoldsItGivesBackAfterItsChildren) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    bool child_ended = false;
    auto holder = [&]() -> Task<void> {
      DurableMutex lock = co_await open(*at[0]);
      auto section = [&](LockContext&) -> Task<void> {
        auto child = [&]() -> Task<void> {
          auto goodbye = [&]() -> Task<void> {
            co_await wait(1);
            child_ended = true;
          };
          co_await until_cancelled_and(goodbye);
        };
        auto children = [&](Nursery& nursery) -> Task<NurseryEnd> {
          nursery.start(child);
          co_return join;
        };
        co_await with_nursery(children);
      };
      auto ended = co_await timeout(units(4), lock.on_acquire(section));
      EXPECT_FALSE(ended.has_value());
    };
    auto next = [&]() -> Task<void> {
      co_await wait(2);
      DurableMutex lock = co_await open(*at[1]);
      TimePoint begun = now();
      auto section = [&](LockContext&) -> Task<void> {
        EXPECT_TRUE(child_ended);
        co_return;
      };
      or_throw(co_await lock.on_acquire(section));
      EXPECT_LT(now() - begun, lease()) << "and not when its lease ended";
    };
    co_await all_of(holder(), next());
  });
}

TEST_P(MutexSuite, WhatIsThrownPassesThroughAfterTheRelease) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    DurableMutex lock = co_await open(*at[0]);
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
    DurableMutex other = co_await open(*at[1]);
    auto fine = [](LockContext&) -> Task<int> { co_return 1; };
    auto got = co_await other.try_acquire(fine);
    EXPECT_TRUE(got.has_value()) << "it was given back";
  });
}

TEST_P(MutexSuite, TryDoesNotWait) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    DurableMutex here = co_await open(*at[0]);
    DurableMutex there = co_await open(*at[1]);
    auto nothing = [](LockContext&) -> Task<int> { co_return 1; };
    auto section = [&](LockContext&) -> Task<void> {
      auto same = co_await here.try_acquire(nothing);
      EXPECT_TRUE(!same && same.error() == LockError::busy);
      auto other = co_await there.try_acquire(nothing);
      EXPECT_TRUE(!other && other.error() == LockError::busy);
    };
    or_throw(co_await here.on_acquire(section));
    auto got = co_await there.try_acquire(nothing);
    EXPECT_TRUE(got.has_value());
    std::size_t left = co_await tickets(*at[0]);
    EXPECT_EQ(left, 0u) << "who was refused left nothing";
  });
}

TEST_P(MutexSuite, ReadersTogetherWritersAlone) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    std::vector<DurableMutex> locks;
    for (Engine* each : at) locks.push_back(co_await open(*each));
    int readers = 0, most = 0, writers = 0;
    auto read = [&](LockContext&) -> Task<void> {
      EXPECT_EQ(writers, 0);
      most = std::max(most, ++readers);
      co_await wait(1);
      --readers;
    };
    auto write = [&](LockContext&) -> Task<void> {
      EXPECT_EQ(++writers, 1);
      EXPECT_EQ(readers, 0);
      co_await yield();
      --writers;
    };
    auto user = [&](DurableMutex& lock) -> Task<void> {
      for (int i = 0; i < 4; ++i) {
        or_throw(co_await lock.on_acquire_shared(read));
        or_throw(co_await lock.on_acquire(write));
      }
    };
    co_await all_of(user(locks[0]), user(locks[0]), user(locks[1]));
    EXPECT_GE(most, 2);
  });
}

TEST_P(MutexSuite, ASemaphoreLetsSoManyIn) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    durable::SemaphoreOptions options;
    options.resource_id = "pool";
    options.lease = lease();
    options.permits = 3;
    int inside = 0, most = 0;
    auto section = [&](LockContext&) -> Task<void> {
      most = std::max(most, ++inside);
      co_await wait(1);
      --inside;
    };
    auto process = [&](Engine& engine) -> Task<void> {
      durable::Semaphore pool = or_throw(co_await durable::Semaphore::open(engine, options));
      auto one = [&]() -> Task<void> { or_throw(co_await pool.on_acquire(section)); };
      auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
        for (int i = 0; i < 6; ++i) nursery.start(one);
        co_return join;
      };
      co_await with_nursery(all);
    };
    co_await all_of(process(*at[0]), process(*at[1]));
    EXPECT_EQ(most, 3);
    durable::SemaphoreOptions wider = options;
    wider.permits = 4;
    auto other = co_await durable::Semaphore::open(*at[1], wider);
    EXPECT_TRUE(!other && other.error() == LockError::mismatch);
  });
}

TEST_P(MutexSuite, SeveralAtOnceInOneOrder) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    int inside = 0;
    auto section = [&](std::vector<LockContext>& held) -> Task<void> {
      EXPECT_EQ(held.size(), 2u);
      EXPECT_EQ(held[0].resource_id(), "a");
      EXPECT_EQ(++inside, 1);
      co_await yield();
      --inside;
    };
    auto process = [&](Engine& engine, bool turned) -> Task<void> {
      std::vector<DurableMutex> both;
      both.push_back(co_await open(engine, "a"));
      both.push_back(co_await open(engine, "b"));
      if (turned) std::swap(both[0], both[1]);
      for (int i = 0; i < 5; ++i) or_throw(co_await on_acquire_all(both, section));
      std::vector<DurableMutex> twice{both[0], both[0]};
      auto refused = co_await on_acquire_all(twice, section);
      EXPECT_TRUE(!refused && refused.error() == LockError::invalid);
    };
    co_await all_of(process(*at[0], false), process(*at[1], true));
  });
}

TEST_P(MutexSuite, ForceKillEndsHoldersAndWaitersAndTokensGoOnRising) {
  with_engines(3, [&](Engines& at) -> Task<void> {
    std::uint64_t first = 0;
    TimePoint killed;
    // Where time stands still, it is not the next renewal that tells them.
    auto expect_told_at_once = [&]() {
      if (is_exact()) {
        EXPECT_EQ(now(), killed);
      }
    };
    auto holder = [&]() -> Task<void> {
      DurableMutex lock = co_await open(*at[0]);
      auto section = [&](LockContext& held) -> Task<void> {
        first = held.fencing_token();
        auto goodbye = [&]() -> Task<void> {
          expect_told_at_once();
          EXPECT_TRUE(held.is_lost());
          EXPECT_EQ(held.fencing_token(), first) << "late writes carry it";
          co_return;
        };
        co_await until_cancelled_and(goodbye);
      };
      auto got = co_await lock.on_acquire(section);
      EXPECT_TRUE(!got && got.error() == LockError::lost);
    };
    auto waiter = [&]() -> Task<void> {
      co_await until_tickets(*at[1], 1);
      DurableMutex lock = co_await open(*at[1]);
      auto got = co_await lock.on_acquire(never);
      EXPECT_TRUE(!got && got.error() == LockError::revoked) << (got ? "" : got.error().what());
      expect_told_at_once();
    };
    auto killer = [&]() -> Task<void> {
      co_await until_tickets(*at[2], 2);
      DurableMutex lock = co_await open(*at[2]);
      killed = now();
      std::size_t ended = or_throw(co_await lock.force_kill());
      EXPECT_EQ(ended, 2u);
    };
    co_await all_of(holder(), waiter(), killer());
    for (Engine* each : at) {
      DurableMutex lock = co_await open(*each);
      std::uint64_t next = co_await token_of(lock);
      EXPECT_GT(next, std::exchange(first, next));
    }
  });
}

// Each release is of its own ticket, though all are of one caller, and though it has had the resource before.
TEST_P(MutexSuite, LocksOfOneCallerAreNotConfused) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    DurableMutex a = co_await open(*at[0], "a");
    DurableMutex b = co_await open(*at[0], "b");
    DurableMutex a_elsewhere = co_await open(*at[1], "a");
    DurableMutex b_elsewhere = co_await open(*at[1], "b");
    auto nothing = [](LockContext&) -> Task<void> { co_return; };
    auto under_b = [&](LockContext& held_b) -> Task<void> {
      for (int i = 0; i < 2; ++i) {
        auto under_a = [&](LockContext& held_a) -> Task<void> {
          EXPECT_EQ(held_a.resource_id(), "a");
          auto tried = co_await a_elsewhere.try_acquire(nothing);
          EXPECT_TRUE(!tried && tried.error() == LockError::busy);
        };
        or_throw(co_await a.on_acquire(under_a));
        auto freed = co_await a_elsewhere.try_acquire(nothing);
        EXPECT_TRUE(freed.has_value()) << "a was given back";
        auto held = co_await b_elsewhere.try_acquire(nothing);
        EXPECT_TRUE(!held && held.error() == LockError::busy) << "b was not";
      }
      EXPECT_EQ(held_b.resource_id(), "b");
      EXPECT_FALSE(held_b.is_lost());
    };
    or_throw(co_await b.on_acquire(under_b));
    auto freed = co_await b_elsewhere.try_acquire(nothing);
    EXPECT_TRUE(freed.has_value());
  });
}

TEST_P(MutexSuite, IsLostAfterMaxHoldAndTheNextOneServed) {
  with_engines(2, [&](Engines& at) -> Task<void> {
    durable::MutexOptions options = MutexSuite::options();
    options.lease *= 100;  // so it is not the end of the lease that frees it
    options.max_hold = units(5);
    DurableMutex lock = or_throw(co_await DurableMutex::open(*at[0], options));
    DurableMutex other = co_await open(*at[1]);
    std::uint64_t token = 0;
    auto hold = [&]() -> Task<void> {
      TimePoint begun = now();
      auto section = [&](LockContext& held) -> Task<void> {
        token = held.fencing_token();
        co_await suspend_forever();
      };
      auto got = co_await lock.on_acquire(section);
      EXPECT_TRUE(!got && got.error() == LockError::lost);
      expect_took(now() - begun, options.max_hold);
      EXPECT_EQ(at[0]->statistics().lost_for(durable::LossReason::max_hold), 1u);
    };
    auto next = [&]() -> Task<void> {
      co_await until_tickets(*at[1], 1);
      std::uint64_t later = co_await token_of(other);
      EXPECT_GT(later, token);
    };
    co_await all_of(hold(), next());
  });
}

TEST_P(MutexSuite, IdleItEndsAndNoSooner) {
  with_engines(1, [&](Engines& at) -> Task<void> {
    Engine& engine = *at[0];
    durable::MutexOptions options = MutexSuite::options();
    options.idle_timeout = units(10);
    DurableMutex lock = or_throw(co_await DurableMutex::open(engine, options));
    auto section = [&](LockContext&) -> Task<void> { co_await wait(12); };
    or_throw(co_await lock.on_acquire(section));
    TimePoint begun = now();
    EXPECT_EQ(engine.workflows(), 1u) << "held for longer than idle_timeout is not idle";
    if (is_exact()) {
      co_await sleep_for(options.idle_timeout - std::chrono::nanoseconds(1));
      EXPECT_EQ(engine.workflows(), 1u);
      co_await sleep_for(std::chrono::nanoseconds(2));
      EXPECT_EQ(engine.workflows(), 0u);
    } else {
      while (engine.workflows() > 0) co_await sleep_for(std::chrono::milliseconds(1));
      EXPECT_GE(now() - begun, options.idle_timeout);
    }
    auto left = or_throw(co_await engine.report());
    EXPECT_TRUE(left.empty()) << "nothing is left in the store";
  });
}

TEST_P(MutexSuite, AnyAcquireRestartsTheIdleTime) {
  with_engines(1, [&](Engines& at) -> Task<void> {
    durable::MutexOptions options = MutexSuite::options();
    options.idle_timeout = units(20);
    DurableMutex lock = or_throw(co_await DurableMutex::open(*at[0], options));
    for (int i = 0; i < 4; ++i) {
      static_cast<void>(co_await token_of(lock));
      co_await wait(is_exact() ? 19 : 8);
    }
    EXPECT_EQ(at[0]->statistics().workflows_started, 1u);
  });
}

// Where time stands still it is the same instant, in every order of those who are ready; elsewhere one as near as it comes.
TEST_P(MutexSuite, AnAcquireInTheInstantOfTheIdleEndIsServedWithAGreaterToken) {
  auto body = [&](Engines& at) -> Task<void> {
    durable::MutexOptions options = MutexSuite::options();
    options.idle_timeout = units(2);
    DurableMutex lock = or_throw(co_await DurableMutex::open(*at[0], options));
    DurableMutex other = or_throw(co_await DurableMutex::open(*at[1], options));
    std::uint64_t last = 0;
    for (int i = 0; i < 6; ++i) {
      std::uint64_t next = co_await token_of(i % 3 == 2 ? other : lock);
      EXPECT_GT(next, std::exchange(last, next));
      co_await sleep_for(options.idle_timeout);
    }
    EXPECT_EQ(at[0]->statistics().acquired + at[1]->statistics().acquired, 6u);
  };
  if (is_exact()) {
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      weft::testing::VirtualLoop shuffled;
      shuffled.shuffle_by(seed);
      std::unique_ptr<Stores> fresh = GetParam()->fresh();
      with_engines_on(shuffled, *fresh, 2, body);
    }
  } else {
    with_engines(2, body);
  }
}

TEST_P(MutexSuite, TokensRiseAcrossIdleDeletionAndRestart) {
  std::uint64_t last = 0;
  auto kept = stores_->make();  // what is only in memory is not forgotten
  for (int run = 0; run < 3; ++run) {
    with_engines(1, [&](Engines& at) -> Task<void> {
      durable::MutexOptions options = MutexSuite::options();
      options.idle_timeout = units(2);
      DurableMutex lock = or_throw(co_await DurableMutex::open(*at[0], options));
      for (int i = 0; i < 2; ++i) {
        std::uint64_t next = co_await token_of(lock);
        EXPECT_GT(next, std::exchange(last, next));
        while (at[0]->workflows() > 0) co_await wait(1);
        auto left = or_throw(co_await at[0]->report());
        EXPECT_TRUE(left.empty());
      }
    });
  }
}

TEST_P(MutexSuite, IsRenewedForAsLongAsItIsHeld) {
  with_engines(1, [&](Engines& at) -> Task<void> {
    DurableMutex lock = co_await open(*at[0]);
    auto section = [&](LockContext& held) -> Task<void> {
      for (int i = 0; i < 15; ++i) {
        co_await sleep_for(lease() / 10);
        EXPECT_GT(held.lease_left(), std::chrono::nanoseconds(0));
      }
    };
    auto got = co_await lock.on_acquire(section);
    EXPECT_TRUE(got.has_value()) << (got ? "" : got.error().what());
  });
}

}  // namespace weft::test
