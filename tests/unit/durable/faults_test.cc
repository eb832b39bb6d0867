// SPDX-License-Identifier: MIT
// Locks whose store loses calls and answers, is slow, or is gone. On the virtual clock, over the engines that run there: in memory, and on a lock file
// of SQLite's.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/durable_fixture.h"
#include "support/faulty_store.h"
#include "support/virtual_sqlite.h"
#include "weft/durable/mutex.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::durable;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::durable::Mutex;  // not the one of sync/
using weft::durable::Semaphore;
using Fault = FaultyStore::Fault;

enum class Table { memory, sqlite };

class DurableFaults : public ::testing::TestWithParam<Table> {
 protected:
  DurableFaults() { fresh(); }
  // From now on another store, in which nobody was before.
  void fresh() {
    url_ = fresh_store_url();
    if (GetParam() == Table::sqlite) file_.emplace();
  }
  // Another session on the store.
  [[nodiscard]] std::unique_ptr<LockStore> session() const {
    return file_ ? file_->make() : or_throw(make_store(url_));
  }
  std::unique_ptr<FaultyStore> faulty(FaultyStore::Plan plan) {
    return std::make_unique<FaultyStore>(session(), std::move(plan));
  }
  // Runs body(engine) on a store that does as `fault` says at each moment.
  template <class Body>
  void with(Body body) {
    auto inside = [&]() -> Task<void> {
      auto plan = [&](const std::string& call) {
        return only.empty() || call == only ? fault : Fault::none;
      };
      LockResult<> ran = co_await with_engine(faulty(plan), body);
      EXPECT_TRUE(ran.has_value()) << (ran ? "" : ran.error().what());
    };
    run(loop, inside());
    EXPECT_EQ(loop.strand_count(), 0u);
  }

  weft::testing::VirtualLoop loop;
  Fault fault = Fault::none;
  std::string only;  // of calls of this name, if not empty

 private:
  std::string url_;
  std::optional<VirtualSqlite> file_;
};
INSTANTIATE_TEST_SUITE_P(On, DurableFaults, ::testing::Values(Table::memory, Table::sqlite),
                         [](const auto& info) {
                           return info.param == Table::memory ? "memory" : "sqlite";
                         });

// Its run() fails after a second.
class Failing final : public StoreBetween<Failing> {
 public:
  explicit Failing(std::unique_ptr<LockStore> inner) : StoreBetween(std::move(inner)) {}
  Task<void> run() override {
    co_await sleep_for(1s);
    throw std::runtime_error("the store's own");
  }

 private:
  friend StoreBetween;
  template <class R, class Call>
  Task<LockResult<R>> through(std::string, Call& call) {
    return call();
  }
};

Task<int> seven(LockContext&) { co_return 7; }

// A report that takes no time.
Task<LockResult<std::vector<ResourceReport>>> look(Engine& engine, FaultyStore& store) {
  std::chrono::nanoseconds back = std::exchange(store.back, 0s);
  LockResult<std::vector<ResourceReport>> report = co_await engine.report();
  store.back = back;
  co_return report;
}

TEST_P(DurableFaults, OpenSaysThatTheStoreIsNotThere) {
  fault = Fault::lose_call;
  with([&](Engine& engine) -> Task<void> {
    LockResult<Mutex> lock = co_await Mutex::open(engine, named("r"));
    EXPECT_EQ(lock.error(), LockError::unreachable);
  });
}

TEST_P(DurableFaults, UnreachableIsAnErrorAtTheDeadlineAndNotABusyLoop) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.acquire_timeout = 60s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    fault = Fault::lose_call;
    std::uint64_t before = loop.entries_run();
    LockResult<int> got = co_await lock.on_acquire(seven);
    EXPECT_EQ(got.error(), LockError::unreachable) << got.error().what();
    EXPECT_EQ(loop.elapsed(), 60s);
    EXPECT_LT(loop.entries_run() - before, 2000u) << "60 attempts or so";
    co_await sleep_for(120s);
    EXPECT_EQ(engine.workflows(), 0u) << "nobody wants it, and nothing is asked for any more";
    fault = Fault::none;
    got = co_await lock.on_acquire(seven);
    EXPECT_TRUE(got.has_value()) << "it comes back with its store";
  });
}

TEST_P(DurableFaults, AStoreThatNeverAnswersIsLeftAtTheDeadline) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.acquire_timeout = 5s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    fault = Fault::never;
    LockResult<int> got = co_await lock.on_acquire(seven);
    EXPECT_EQ(std::string(got.error().what()),
              "unreachable: 'r' was not acquired within 5 s: the store has not answered");
    EXPECT_EQ(got.error(), LockError::unreachable);
    EXPECT_EQ(loop.elapsed(), 5s);
    EXPECT_EQ(engine.statistics().timed_out, 0u);
    EXPECT_EQ(engine.statistics().failed, 1u);
  });
  EXPECT_EQ(loop.elapsed(), 5s + Engine::kDrainTimeout);
}

// But who stands in the queue, or waits for one who does, has been told so, whatever the store does now.
TEST_P(DurableFaults, WhoIsInTheQueueWhenTheStoreFallsSilentTimesOut) {
  auto inside = [&]() -> Task<void> {
    auto other = [&](Engine& engine) -> Task<void> {
      Mutex theirs = or_throw(co_await Mutex::open(engine, named("r")));
      auto around = [&](LockContext&) -> Task<void> {
        auto body = [&](Engine& here) -> Task<void> {
          Mutex lock = or_throw(co_await Mutex::open(here, named("r")));
          auto silence = [&]() -> Task<void> {
            co_await sleep_for(1s);
            fault = Fault::never;
          };
          auto [got, silent] = co_await all_of(lock.on_acquire_within(3s, seven), silence());
          EXPECT_EQ(got.error(), LockError::timeout) << got.error().what();
        };
        auto plan = [&](const std::string&) { return fault; };
        or_throw(co_await with_engine(faulty(plan), body));
      };
      or_throw(co_await theirs.on_acquire(around));
    };
    or_throw(co_await with_engine(session(), other));
  };
  run(loop, inside());
}

// Whether the call can be cancelled or not: a table's cannot.
TEST_P(DurableFaults, OpenTakesNoLongerThanAcquireTimeout) {
  for (Fault kind : {Fault::never, Fault::late_call, Fault::late_answer}) {
    SCOPED_TRACE(static_cast<int>(kind));
    fresh();
    fault = Fault::none;
    only = "join";
    with([&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.acquire_timeout = 300ms;
      SemaphoreOptions permits;
      permits.resource_id = "s";
      permits.acquire_timeout = 200ms;
      fault = kind;
      TimePoint begun = now();
      LockResult<Mutex> lock = co_await Mutex::open(engine, options);
      EXPECT_EQ(now() - begun, 300ms);
      EXPECT_EQ(lock.error(), LockError::unreachable);
      EXPECT_EQ(std::string(lock.error().what()), "unreachable: 'r' was not opened within 0.3 s: " +
                                                      session()->url() + " has not answered");
      LockResult<Semaphore> semaphore = co_await Semaphore::open(engine, permits);
      EXPECT_EQ(semaphore.error(), LockError::unreachable);
      EXPECT_EQ(now() - begun, 500ms);
      EXPECT_EQ(engine.workflows(), 0u);
      fault = Fault::none;
      lock = co_await Mutex::open(engine, options);
      EXPECT_FALSE(lock.has_value()) << "the same call is still under way";
      if (kind == Fault::never) co_return;
      co_await sleep_for(8s);
      lock = co_await Mutex::open(engine, options);
      EXPECT_TRUE(lock.has_value());
    });
  }
}

// A table's call cannot be cancelled: it is answered when the engine has given up, and most of it is gone.
TEST_P(DurableFaults, AnAnswerThatComesAfterTheDrainIsHarmless) {
  for (std::string call : {"enqueue", "renew", "release", "withdraw", "retire"}) {
    for (Fault late : {Fault::late_call, Fault::late_answer}) {
      SCOPED_TRACE(call + (late == Fault::late_call ? " late" : " answered late"));
      fresh();
      only = call;
      fault = Fault::none;
      auto use = [&](Engine& engine) -> Task<void> {
        MutexOptions options = named("r");
        options.lease = 1s;  // as long as a release is waited for
        options.acquire_timeout = 500ms;
        Mutex lock = or_throw(co_await Mutex::open(engine, options));
        fault = late;
        auto section = [&](LockContext&) -> Task<void> {
          if (call == "renew") co_await sleep_for(400ms);
        };
        static_cast<void>(co_await lock.on_acquire(section));
      };
      auto others = [&](Engine& other) -> Task<void> {
        Mutex lock = or_throw(co_await Mutex::open(other, named("r")));
        auto late_engine = [&]() -> Task<void> {
          auto plan = [&](const std::string& name) { return name == only ? fault : Fault::none; };
          or_throw(co_await with_engine(faulty(plan), use));
        };
        auto around = [&](LockContext&) -> Task<void> { return late_engine(); };
        auto nothing = [](LockContext&) -> Task<void> { co_return; };
        if (call == "withdraw") {
          or_throw(co_await lock.on_acquire(around));  // what is withdrawn has waited for somebody
        } else {
          co_await late_engine();
        }
        or_throw(co_await lock.on_acquire(nothing));
      };
      auto root = [&]() -> Task<void> { or_throw(co_await with_engine(session(), others)); };
      run(loop, root());
      EXPECT_EQ(loop.strand_count(), 0u);
    }
  }
}

// Who asks from outside of the engine's body, and is answered when the engine has ended.
TEST_P(DurableFaults, AnEngineEndsAfterTheCallsThatWereMadeOfIt) {
  for (std::string call : {"join", "report", "revoke"}) {
    for (Fault kind : {Fault::late_call, Fault::late_answer, Fault::never}) {
      SCOPED_TRACE(call + " " + std::to_string(static_cast<int>(kind)));
      fresh();
      only = call;
      fault = Fault::none;
      auto inside = [&]() -> Task<void> {
        Event asked;
        Engine* made = nullptr;
        auto serve = [&]() -> Task<void> {
          auto plan = [&](const std::string& name) { return name == only ? fault : Fault::none; };
          auto body = [&](Engine& engine) -> Task<void> {
            made = &engine;
            fault = kind;
            co_await asked.wait();
            co_await yield();
          };
          or_throw(co_await with_engine(faulty(plan), body));
        };
        auto use = [&]() -> Task<void> {
          while (!made) co_await yield();
          asked.set();
          if (call == "join") {
            LockResult<Mutex> opened = co_await Mutex::open(*made, named("r"));
            EXPECT_EQ(opened.error(), LockError::withdrawn) << opened.error().what();
          } else if (call == "report") {
            static_cast<void>(co_await made->report());
          } else {
            static_cast<void>(co_await made->revoke("r"));
          }
        };
        co_await all_of(serve(), use());
      };
      run(loop, inside());
      EXPECT_EQ(loop.strand_count(), 0u);
    }
  }
}

// A release that is not answered is waited for no longer than the engine is there.
TEST_P(DurableFaults, WhoGivesBackDoesNotWaitForAnEngineThatHasEnded) {
  auto inside = [&]() -> Task<void> {
    Event opened, held;
    std::optional<Mutex> lock;
    auto serve = [&]() -> Task<void> {
      auto plan = [&](const std::string&) { return fault; };
      auto body = [&](Engine& engine) -> Task<void> {
        lock = or_throw(co_await Mutex::open(engine, named("r")));
        opened.set();
        co_await held.wait();
      };
      or_throw(co_await with_engine(faulty(plan), body));
    };
    auto use = [&]() -> Task<void> {
      co_await opened.wait();
      auto section = [&](LockContext&) -> Task<void> {
        fault = Fault::never;
        held.set();
        co_await suspend_forever();
      };
      EXPECT_EQ((co_await lock->on_acquire(section)).error(), LockError::lost);
      EXPECT_EQ(loop.elapsed(), Engine::kDrainTimeout);
    };
    co_await all_of(serve(), use());
  };
  run(loop, inside());
}

// The engine's tasks end by an error: who holds or waits outside of its body is told, and what comes later is refused.
TEST_P(DurableFaults, WhenTheEnginesTasksFailEverybodyIsTold) {
  auto inside = [&]() -> Task<void> {
    Event opened;
    std::optional<Mutex> lock;
    auto serve = [&]() -> Task<void> {
      auto body = [&](Engine& engine) -> Task<void> {
        lock = or_throw(co_await Mutex::open(engine, named("r")));
        opened.set();
        co_await suspend_forever();
      };
      std::string caught;
      try {
        static_cast<void>(co_await with_engine(std::make_unique<Failing>(session()), body));
      } catch (const std::runtime_error& error) {
        caught = error.what();
      }
      EXPECT_EQ(caught, "the store's own");
      EXPECT_EQ(loop.elapsed(), 4s) << "after who held";
    };
    auto hold = [&]() -> Task<void> {
      co_await opened.wait();
      auto section = [&](LockContext&) -> Task<void> {
        auto goodbye = [&]() -> Task<void> {
          EXPECT_EQ(loop.elapsed(), 1s);
          co_await sleep_for(3s);
        };
        co_await until_cancelled_and(goodbye);
      };
      EXPECT_EQ((co_await lock->on_acquire(section)).error(), LockError::lost);
    };
    auto wait = [&](std::chrono::seconds late) -> Task<void> {
      co_await opened.wait();
      co_await sleep_for(late);
      LockResult<int> got = co_await lock->on_acquire(seven);
      EXPECT_EQ(got.error(), LockError::withdrawn) << got.error().what();
      EXPECT_EQ(loop.elapsed(), std::max(late, 1s));
    };
    co_await all_of(serve(), hold(), wait(0s), wait(2s), wait(5s));
  };
  run(loop, inside());
}

TEST_P(DurableFaults, WhatIsFinalIsToldAtOnce) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    fault = Fault::full;
    LockResult<int> got = co_await lock.on_acquire(seven);
    EXPECT_EQ(got.error(), LockError::storage);
    EXPECT_EQ(loop.elapsed(), 0s);
    EXPECT_EQ(engine.statistics().failed, 1u);
  });
}

// Every call's answer is lost once: nothing is done twice, and nothing is left undone.
TEST_P(DurableFaults, ALostAnswerIsAskedForAgain) {
  for (std::string call : {"enqueue", "release", "renew"}) {
    SCOPED_TRACE(call);
    loop.run_ready();
    fresh();
    only = call;
    fault = Fault::none;
    with([&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 3s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      fault = Fault::lose_answer;
      std::uint64_t token = 0;
      auto mend = [&]() -> Task<void> {
        co_await sleep_for(150ms);
        if (call == "enqueue") fault = Fault::none;
      };
      auto section = [&](LockContext& held) -> Task<void> {
        token = held.fencing_token();
        co_await sleep_for(1500ms);
        fault = call == "renew" ? Fault::none : fault;
        co_await sleep_for(1500ms);
      };
      auto [got, mended] = co_await all_of(lock.on_acquire(section), mend());
      EXPECT_TRUE(got.has_value()) << got.error().what();
      fault = Fault::none;
      auto next = [&](LockContext& held) -> Task<void> {
        EXPECT_GT(held.fencing_token(), token);
        co_return;
      };
      EXPECT_TRUE((co_await lock.on_acquire(next)).has_value());
      std::vector<ResourceReport> report = or_throw(co_await engine.report());
      EXPECT_TRUE(report.at(0).tickets.empty());
    });
  }
}

TEST_P(DurableFaults, AHolderThatCannotRenewIsCancelledBeforeItsLeaseEnds) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.lease = 8s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto section = [&](LockContext&) -> Task<void> {
      fault = Fault::lose_call;
      co_await suspend_forever();
    };
    LockResult<> got = co_await lock.on_acquire(section);
    EXPECT_EQ(got.error(), LockError::lost) << got.error().what();
    EXPECT_GE(loop.elapsed(), 7s) << "an eighth is left";
    EXPECT_LT(loop.elapsed(), 8s);
    EXPECT_EQ(engine.statistics().lost_for(LossReason::expired), 1u);
  });
}

// FIELD: the time of a lease counts from before the request was sent.
TEST_P(DurableFaults, ASlowAnswerDoesNotLengthenTheLease) {
  auto inside = [&]() -> Task<void> {
    auto plan = [&](const std::string& call) {
      return call == "renew" ? Fault::lose_call : Fault::none;
    };
    std::unique_ptr<FaultyStore> store = faulty(plan);
    store->back = 3s;
    store->patience = 1ms;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 8s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      TimePoint asked = now();
      TimePoint ended;
      auto section = [&](LockContext& held) -> Task<void> {
        EXPECT_EQ(now() - asked, 3s);
        EXPECT_EQ(held.lease_left(), 4s);
        auto goodbye = [&]() -> Task<void> {
          ended = now();
          co_return;
        };
        co_await until_cancelled_and(goodbye);
      };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
      EXPECT_EQ(ended - asked, 7s);
    };
    or_throw(co_await with_engine(std::move(store), body));
  };
  run(loop, inside());
}

TEST_P(DurableFaults, AnAnswerThatComesTooLateForTheLeaseIsRenewedFirst) {
  auto inside = [&]() -> Task<void> {
    auto plan = [](const std::string&) { return Fault::none; };
    std::unique_ptr<FaultyStore> store = faulty(plan);
    FaultyStore& slow = *store;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 8s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      slow.back = 7500ms;
      auto quick = [&]() -> Task<void> {
        co_await sleep_for(7s);
        slow.back = 0s;
      };
      auto section = [](LockContext& held) -> Task<void> {
        EXPECT_EQ(held.lease_left(), 7s) << "of the renewal";
        co_return;
      };
      auto [got, ended] = co_await all_of(lock.on_acquire(section), quick());
      EXPECT_TRUE(got.has_value()) << got.error().what();
    };
    or_throw(co_await with_engine(std::move(store), body));
  };
  run(loop, inside());
}

// And from the first attempt: it may be that one which was carried out.
TEST_P(DurableFaults, AnAnswerThatWasLostDoesNotLengthenTheLease) {
  auto inside = [&]() -> Task<void> {
    bool is_first = true;
    auto plan = [&](const std::string& call) {
      bool lost = call == "enqueue" && std::exchange(is_first, false);
      return lost ? Fault::lose_answer : Fault::none;
    };
    std::unique_ptr<FaultyStore> store = faulty(plan);
    store->patience = 5s;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 24s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      auto section = [&](LockContext& held) -> Task<void> {
        EXPECT_EQ(loop.elapsed(), 5020ms);
        EXPECT_EQ(held.lease_left(), 21s - 5020ms);
        co_return;
      };
      or_throw(co_await lock.on_acquire(section));
    };
    or_throw(co_await with_engine(std::move(store), body));
  };
  run(loop, inside());
}

// The same of a renewal: its answer says nothing about when it was carried out.
TEST_P(DurableFaults, ASlowRenewalDoesNotLengthenTheLease) {
  auto inside = [&]() -> Task<void> {
    std::unique_ptr<FaultyStore> store = faulty([&](const std::string&) { return fault; });
    FaultyStore& slow = *store;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 24s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      auto section = [&](LockContext& held) -> Task<void> {
        slow.back = 4s;
        co_await sleep_for(11s);
        EXPECT_EQ(held.lease_left(), 10s) << "sent after 8 s, and not answered yet";
        co_await sleep_for(2s);
        EXPECT_EQ(held.lease_left(), 16s) << "answered after 12 s, and good from 8 s on";
        fault = Fault::lose_call;
        co_await suspend_forever();
      };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
      EXPECT_EQ(loop.elapsed(), 29s + slow.there + slow.patience) << "8 s + lease - margin";
    };
    or_throw(co_await with_engine(std::move(store), body));
  };
  run(loop, inside());
}

TEST_P(DurableFaults, ARenewalThatIsAnsweredAfterTheLossRevivesNothing) {
  auto inside = [&]() -> Task<void> {
    std::unique_ptr<FaultyStore> store = faulty([](const std::string&) { return Fault::none; });
    FaultyStore& slow = *store;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 24s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      auto section = [&](LockContext& held) -> Task<void> {
        slow.back = 14s;  // the renewal's, from 8 s to 22 s
        auto goodbye = [&]() -> Task<void> {
          EXPECT_EQ(loop.elapsed(), 21s);
          slow.back = 0s;
          co_await sleep_for(2s);
          EXPECT_TRUE(held.is_lost());
          EXPECT_EQ(held.lease_left(), 0s);
        };
        co_await until_cancelled_and(goodbye);
      };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
      EXPECT_EQ(loop.elapsed(), 23s);
    };
    or_throw(co_await with_engine(std::move(store), body));
  };
  run(loop, inside());
}

TEST_P(DurableFaults, AReleaseThatFailsIsNotTheFunctionsFault) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto section = [&](LockContext&) -> Task<int> {
      only = "release";
      fault = Fault::lose_call;
      co_return 7;
    };
    LockResult<int> got = co_await lock.on_acquire(section);
    EXPECT_EQ(got.value(), 7);
    EXPECT_EQ(loop.elapsed(), 100ms) << "one attempt is waited for";
    co_await sleep_for(2s);
    fault = Fault::none;
    TimePoint begin = now();
    EXPECT_TRUE((co_await lock.on_acquire(seven)).has_value());
    EXPECT_LT(now() - begin, 1500ms) << "the workflow tried again by itself";
  });
}

TEST_P(DurableFaults, WhatTheFunctionThrowsWinsOverLossAndFailedRelease) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.lease = 1s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto section = [&](LockContext& held) -> Task<void> {
      fault = Fault::lose_call;
      auto cleanup = [&]() -> Task<void> {
        EXPECT_TRUE(held.is_lost());
        throw std::runtime_error("mine");
        co_return;
      };
      co_await until_cancelled_and(cleanup);
    };
    std::string caught;
    try {
      static_cast<void>(co_await lock.on_acquire(section));
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "mine");
    fault = Fault::none;
  });
}

TEST_P(DurableFaults, WhatReturnsAfterALossIsLost) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto section = [&](LockContext&) -> Task<int> {
      or_throw(co_await lock.force_kill());
      co_await noncancellable(sleep_for(1s));
      co_return 7;
    };
    LockResult<int> got = co_await lock.on_acquire(section);
    EXPECT_EQ(got.error(), LockError::lost);
  });
}

// FIELD: a cancelled waiter stays queued and is later granted to nobody.
TEST_P(DurableFaults, CancelledWhileTheGrantIsUnderWayItIsGivenBack) {
  for (auto when : {1ms, 50ms, 99ms, 100ms, 101ms, 150ms, 199ms, 200ms, 201ms}) {
    SCOPED_TRACE(when.count());
    auto inside = [&]() -> Task<void> {
      std::unique_ptr<FaultyStore> store = faulty([](const std::string&) { return Fault::none; });
      store->there = 100ms;
      store->back = 100ms;
      auto body = [&](Engine& engine) -> Task<void> {
        Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
        auto forever = [](LockContext&) -> Task<void> { co_await suspend_forever(); };
        auto got = co_await timeout(when, lock.on_acquire(forever));
        EXPECT_FALSE(got.has_value());
        co_await sleep_for(1s);
        std::vector<ResourceReport> report = or_throw(co_await engine.report());
        EXPECT_TRUE(report.at(0).tickets.empty());
        EXPECT_TRUE((co_await lock.try_acquire(seven)).has_value());
      };
      or_throw(co_await with_engine(std::move(store), body));
    };
    run(loop, inside());
  }
}

// Somebody else's call grants a ticket, and ends it, before the answer to its enqueue() is here.
TEST_P(DurableFaults, NewsMayComeBeforeTheAnswer) {
  for (bool revoke : {false, true}) {
    SCOPED_TRACE(revoke);
    weft::testing::VirtualLoop world;
    fresh();
    auto first = [&]() -> Task<void> {
      auto body = [&](Engine& engine) -> Task<void> {
        Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
        auto hold = [](LockContext&) -> Task<void> { co_await sleep_for(2s); };
        or_throw(co_await lock.on_acquire(hold));
        co_await sleep_for(200ms);
        if (revoke) {
          EXPECT_EQ(or_throw(co_await lock.force_kill()), 1u);
        }
        auto again = [&](LockContext&) -> Task<void> {
          EXPECT_EQ(world.elapsed(), revoke ? 2200ms : 2500ms);
          co_return;
        };
        or_throw(co_await lock.on_acquire(again));
      };
      or_throw(co_await with_engine(session(), body));
    };
    auto second = [&]() -> Task<void> {
      auto body = [&](Engine& engine) -> Task<void> {
        Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
        co_await sleep_for(500ms);
        EXPECT_EQ(world.elapsed(), 1500ms);
        auto section = [&](LockContext& held) -> Task<void> {
          EXPECT_EQ(world.elapsed(), 2s);
          EXPECT_GT(held.fencing_token(), 0u);
          if (revoke) co_await suspend_forever();
        };
        LockResult<> got = co_await lock.on_acquire(section);
        EXPECT_EQ(got.has_value(), !revoke);
        EXPECT_EQ(world.elapsed(), revoke ? 2200ms : 3500ms) << "a loss is told at once";
      };
      std::unique_ptr<FaultyStore> slow =
          std::make_unique<FaultyStore>(session(), [](const std::string&) { return Fault::none; });
      slow->back = 1s;
      or_throw(co_await with_engine(std::move(slow), body));
    };
    auto root = [&]() -> Task<void> { co_await all_of(first(), second()); };
    run(world, root());
  }
}

// News is only help: renewals find out by themselves.
TEST_P(DurableFaults, WithoutNewsALossIsSeenAtTheNextRenewal) {
  auto inside = [&]() -> Task<void> {
    std::unique_ptr<FaultyStore> store = faulty([](const std::string&) { return Fault::none; });
    FaultyStore& deaf = *store;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 9s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      deaf.drops_news = true;
      auto section = [&](LockContext&) -> Task<void> {
        or_throw(co_await lock.force_kill());
        co_await suspend_forever();
      };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
      EXPECT_EQ(loop.elapsed(), 3s);
    };
    or_throw(co_await with_engine(std::move(store), body));
  };
  run(loop, inside());
}

// A process whose calls do not get through any more is, to others, one that has died.
TEST_P(DurableFaults, ADeadHoldersLeaseIsWaitedForAndADeadWaiterIsSkipped) {
  auto process = [&](Fault& its, std::chrono::milliseconds late, auto section) -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      co_await sleep_for(late);
      MutexOptions options = named("r");
      options.lease = 8s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      static_cast<void>(co_await lock.on_acquire(section));
    };
    auto plan = [&](const std::string&) { return its; };
    or_throw(co_await with_engine(faulty(plan), body));
  };
  Fault first = Fault::none;
  Fault second = Fault::none;
  Fault third = Fault::none;
  std::chrono::nanoseconds third_began{};
  auto dies = [&](LockContext&) -> Task<void> {
    co_await sleep_for(1s);
    first = second = Fault::lose_call;  // the waiter, too
    co_await suspend_forever();
  };
  auto never = [](LockContext&) -> Task<void> {
    ADD_FAILURE() << "its lease has ended";
    co_return;
  };
  auto serves = [&](LockContext&) -> Task<void> {
    third_began = loop.elapsed();
    co_return;
  };
  auto root = [&]() -> Task<void> {
    co_await all_of(process(first, 0ms, dies), process(second, 100ms, never),
                    process(third, 200ms, serves));
  };
  run(loop, root());
  EXPECT_GE(third_began, 8s);
  EXPECT_LT(third_began, 11s) << "one lease for both of them";
}

// Its ticket was asked for by somebody who has left; the store's answer to that is still under way.
TEST_P(DurableFaults, ATicketThatIsHeldIsNotGivenBackForWhoLeftEarlier) {
  auto other = [&]() -> Task<void> {
    auto body = [&](Engine& engine) -> Task<void> {
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      auto hold = [](LockContext&) -> Task<void> { co_await sleep_for(2s); };
      or_throw(co_await lock.on_acquire(hold));
    };
    or_throw(co_await with_engine(session(), body));
  };
  auto ours = [&]() -> Task<void> {
    std::unique_ptr<FaultyStore> store = faulty([](const std::string&) { return Fault::none; });
    FaultyStore& slow = *store;
    auto body = [&](Engine& engine) -> Task<void> {
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      slow.back = 3s;
      co_await sleep_for(100ms);
      auto never = [](LockContext&) -> Task<void> {
        ADD_FAILURE();
        co_return;
      };
      static_cast<void>(co_await timeout(100ms, lock.on_acquire(never)));
      auto section = [&](LockContext& held) -> Task<void> {
        EXPECT_EQ(loop.elapsed(), 2s);
        for (int i = 0; i < 40; ++i) {
          co_await sleep_for(100ms);
          std::vector<ResourceReport> report = or_throw(co_await look(engine, slow));
          EXPECT_TRUE(report.at(0).tickets.at(0).granted);
          EXPECT_LE(report.at(0).tickets.at(0).token, held.fencing_token()) << "it is another's";
        }
      };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_TRUE(got.has_value()) << got.error().what();
    };
    or_throw(co_await with_engine(std::move(store), body));
  };
  auto root = [&]() -> Task<void> { co_await all_of(other(), ours()); };
  run(loop, root());
}

TEST_P(DurableFaults, AWorkflowDoesNotEndWhileSomebodyWhoHasLostItIsInside) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.idle_timeout = 1ms;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    auto section = [&](LockContext& held) -> Task<void> {
      or_throw(co_await lock.force_kill());
      auto goodbye = [&]() -> Task<void> {
        co_await sleep_for(1s);
        EXPECT_TRUE(held.is_lost());
        EXPECT_EQ(engine.workflows(), 1u);
      };
      co_await until_cancelled_and(goodbye);
    };
    LockResult<> got = co_await lock.on_acquire(section);
    EXPECT_EQ(got.error(), LockError::lost);
    co_await sleep_for(10ms);
    EXPECT_EQ(engine.workflows(), 0u);
  });
}

TEST_P(DurableFaults, ASectionThatEndsCancelledByItselfGivesBack) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto gives_up = [](LockContext&) -> Task<int> {
      Scope& scope = co_await current_scope();
      scope.cancel();
      co_await yield();
      co_return 1;
    };
    auto user = [&]() -> Task<void> {
      static_cast<void>(co_await lock.on_acquire(gives_up));
      ADD_FAILURE() << "it has no result to go on with";
    };
    auto users = [&](Nursery& nursery) -> Task<NurseryEnd> {
      nursery.start(user);
      co_return join;
    };
    co_await with_nursery(users);
    EXPECT_TRUE((co_await lock.try_acquire(seven)).has_value());
    EXPECT_EQ(loop.elapsed(), 0s);
  });
}

// Somebody gives up in the turn in which somebody else tries.
TEST_P(DurableFaults, WhoTriesIsNotMistakenForWhoHasJustLeft) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.acquire_timeout = 1s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    only = "enqueue";
    fault = Fault::lose_call;
    auto waits = [&]() -> Task<void> {
      LockResult<int> got = co_await lock.on_acquire(seven);
      EXPECT_EQ(got.error(), LockError::unreachable);
      fault = Fault::none;
      LockResult<int> tried = co_await lock.try_acquire(seven);
      EXPECT_TRUE(tried.has_value()) << tried.error().what();
    };
    co_await waits();
  });
}

TEST_P(DurableFaults, ALeaseInItsSecondHalfIsRenewedBeforeItIsPassedOn) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.lease = 8s;
    options.max_hold = 5s;  // not renewed after that
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    only = "renew";
    fault = Fault::lose_call;
    auto first = [&](LockContext&) -> Task<void> {
      auto mend = [&]() -> Task<void> {
        co_await sleep_for(1s);
        fault = Fault::none;
      };
      co_await until_cancelled_and(mend);
    };
    auto second = [&](LockContext& held) -> Task<void> {
      EXPECT_GE(held.lease_left(), 6s) << "it would be lost before anybody could renew it";
      co_return;
    };
    auto late = [&]() -> Task<void> {
      co_await sleep_for(1s);
      LockResult<> got = co_await lock.on_acquire(second);
      EXPECT_TRUE(got.has_value()) << got.error().what();
    };
    auto [lost, served] = co_await all_of(lock.on_acquire(first), late());
    EXPECT_EQ(lost.error(), LockError::lost);
  });
}

// A renewal that nobody needs any more, and fails, is not a reason never to renew again.
TEST_P(DurableFaults, RenewalsGoOnAfterOneThatWasOfNothing) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.lease = 3s;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    only = "renew";
    auto to_the_renewal = [&](LockContext&) -> Task<void> {
      fault = Fault::lose_call;
      co_await sleep_for(1s);  // it is due in the very turn in which the ticket is given back
    };
    EXPECT_TRUE((co_await lock.on_acquire(to_the_renewal)).has_value());
    fault = Fault::none;
    auto holds = [](LockContext&) -> Task<void> { co_await sleep_for(20s); };
    LockResult<> got = co_await lock.on_acquire(holds);
    EXPECT_TRUE(got.has_value()) << got.error().what();
  });
}

TEST_P(DurableFaults, ARenewalThatOverlapsAReleaseRevokesNobody) {
  auto inside = [&]() -> Task<void> {
    std::unique_ptr<FaultyStore> made = faulty([](const std::string&) { return Fault::none; });
    FaultyStore& store = *made;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.fair_bound = 1;  // not passed on: given back
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      auto section = [&](LockContext&) -> Task<void> {
        co_await sleep_for(4900ms);
        store.there = 300ms;  // the renewal, at 5 s, is under way until 5.3 s
        co_await sleep_for(200ms);
        store.there = 0s;
        store.back = 1s;  // the release, at 5.1 s, is carried out, and answered at 6.1 s
      };
      auto first = [&]() -> Task<void> {
        auto calm = [&]() -> Task<void> {
          co_await sleep_for(5200ms);
          store.back = 0s;
        };
        auto hold = [&]() -> Task<void> { or_throw(co_await lock.on_acquire(section)); };
        co_await all_of(hold(), calm());
      };
      auto second = [&]() -> Task<void> {
        co_await sleep_for(1s);
        LockResult<int> got = co_await lock.on_acquire(seven);
        EXPECT_TRUE(got.has_value()) << got.error().what();
      };
      co_await all_of(first(), second());
    };
    or_throw(co_await with_engine(std::move(made), body));
  };
  run(loop, inside());
}

TEST_P(DurableFaults, WhatIsFinalInARenewalIsToldToWhoWaits) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    auto hold = [&]() -> Task<void> {
      auto section = [](LockContext&) -> Task<void> { co_await sleep_for(1h); };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
    };
    auto wait = [&]() -> Task<void> {
      co_await sleep_for(1s);
      only = "renew";
      fault = Fault::full;
      LockResult<int> got = co_await lock.on_acquire(seven);
      EXPECT_EQ(got.error(), LockError::storage) << got.error().what();
      EXPECT_EQ(loop.elapsed(), 5s) << "at the first renewal";
    };
    co_await all_of(hold(), wait());
  });
}

// D3, wherever between the grant and the section's first line the pause is.
TEST_P(DurableFaults, WhoIsPausedBetweenTheGrantAndItsSectionDoesNotBegin) {
  int refused = 0;
  for (int turns = 0; turns < 12; ++turns) {
    SCOPED_TRACE(turns);
    auto inside = [&]() -> Task<void> {
      std::unique_ptr<FaultyStore> made = faulty([](const std::string&) { return Fault::none; });
      FaultyStore& store = *made;
      auto body = [&](Engine& engine) -> Task<void> {
        Mutex a = or_throw(co_await Mutex::open(engine, named("a")));
        auto first = [&]() -> Task<void> {
          auto section = [](LockContext&) -> Task<void> { co_await sleep_for(1s); };
          or_throw(co_await a.on_acquire(section));
          for (int i = 0; i < turns; ++i) co_await yield();
          store.ahead += 14s;  // the machine is suspended
        };
        auto second = [&]() -> Task<void> {
          auto section = [&](LockContext& held) -> Task<void> {
            EXPECT_GT(held.lease_left(), 0s);
            co_return;
          };
          LockResult<> got = co_await a.on_acquire(section);
          if (got) co_return;
          EXPECT_EQ(got.error(), LockError::lost);
          ++refused;
        };
        co_await all_of(first(), second());
        EXPECT_EQ(engine.statistics().held, 0u);
      };
      or_throw(co_await with_engine(std::move(made), body));
    };
    run(loop, inside());
  }
  EXPECT_GT(refused, 0) << "some of the pauses are in time";
}

// Of several, too: when the last one is there the others are looked at once more.
TEST_P(DurableFaults, WhoIsPausedWhileItWaitsForTheSecondOfTwoDoesNotBegin) {
  auto inside = [&]() -> Task<void> {
    std::unique_ptr<FaultyStore> made = faulty([](const std::string&) { return Fault::none; });
    FaultyStore& store = *made;
    auto body = [&](Engine& engine) -> Task<void> {
      Mutex a = or_throw(co_await Mutex::open(engine, named("a")));
      Mutex b = or_throw(co_await Mutex::open(engine, named("b")));
      auto in_the_way = [&]() -> Task<void> {
        auto section = [&](LockContext&) -> Task<void> {
          co_await sleep_for(500ms);  // nobody looks at that moment
          store.ahead += 14s;  // the machine is suspended; b is renewed before it is passed on
        };
        or_throw(co_await b.on_acquire(section));
      };
      auto both = [&]() -> Task<void> {
        std::vector<Mutex> locks{a, b};
        auto section = [](std::vector<LockContext>& held) -> Task<void> {
          ADD_FAILURE() << "the lease of " << held[0].resource_id() << " is over";
          co_return;
        };
        LockResult<> got = co_await on_acquire_all(locks, section);
        EXPECT_EQ(got.error(), LockError::lost) << got.error().what();
        EXPECT_EQ(loop.elapsed(), 500ms);
      };
      co_await all_of(in_the_way(), both());
      EXPECT_EQ(engine.statistics().acquired, 3u);
      EXPECT_EQ(engine.statistics().lost_for(LossReason::expired), 1u);
      EXPECT_EQ(engine.statistics().held, 0u);
    };
    or_throw(co_await with_engine(std::move(made), body));
  };
  run(loop, inside());
}

// Timers stand still while a machine is suspended. Nobody says that it is over, and the store has no news.
TEST_P(DurableFaults, AHolderLooksAtItsLeaseSoonAfterASuspend) {
  auto inside = [&]() -> Task<void> {
    std::unique_ptr<FaultyStore> made = faulty([](const std::string&) { return Fault::none; });
    FaultyStore& store = *made;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.lease = 60s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      store.drops_news = true;
      std::chrono::nanoseconds resumed{};
      auto section = [&](LockContext& held) -> Task<void> {
        co_await sleep_for(2500ms);
        store.ahead += 1h;
        resumed = loop.elapsed();
        EXPECT_EQ(held.lease_left(), 0s);
        co_await suspend_forever();
      };
      LockResult<> got = co_await lock.on_acquire(section);
      EXPECT_EQ(got.error(), LockError::lost);
      EXPECT_LE(loop.elapsed() - resumed, 1s);
    };
    or_throw(co_await with_engine(std::move(made), body));
  };
  run(loop, inside());
}

TEST_P(DurableFaults, AnEngineThatHoldsNothingSleeps) {
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.idle_timeout = 2h;
    Mutex lock = or_throw(co_await Mutex::open(engine, options));
    or_throw(co_await lock.on_acquire(seven));
    co_await sleep_for(1s);
    std::uint64_t before = loop.entries_run();
    co_await sleep_for(1h);
    EXPECT_LE(loop.entries_run() - before, 4u);
    EXPECT_EQ(engine.workflows(), 1u);
  });
}

// D6. Nobody wants it any more, but what was asked for is still under way: when it comes it is given back.
TEST_P(DurableFaults, AWorkflowDoesNotEndWhileATicketIsUnderWay) {
  auto inside = [&]() -> Task<void> {
    std::unique_ptr<FaultyStore> store = faulty([](const std::string&) { return Fault::none; });
    FaultyStore& slow = *store;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions options = named("r");
      options.idle_timeout = 1s;
      Mutex lock = or_throw(co_await Mutex::open(engine, options));
      slow.back = 5s;
      auto got = co_await timeout(100ms, lock.on_acquire(seven));
      EXPECT_FALSE(got.has_value());
      slow.back = 0s;
      co_await sleep_for(4s);
      EXPECT_EQ(engine.workflows(), 1u);
      std::vector<ResourceReport> report = or_throw(co_await engine.report());
      EXPECT_EQ(report.at(0).tickets.size(), 1u) << "granted, and nobody has heard of it";
      co_await sleep_for(3s);
      EXPECT_EQ(engine.workflows(), 0u);
      report = or_throw(co_await engine.report());
      EXPECT_TRUE(report.empty());
    };
    or_throw(co_await with_engine(std::move(store), body));
  };
  run(loop, inside());
}

// Under every order of what can run: also before the workflow's first step.
TEST_P(DurableFaults, WhoLeavesBeforeTheWorkflowHasBegunIsForgotten) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    weft::testing::VirtualLoop shuffled;
    shuffled.shuffle_by(seed);
    auto body = [&](Engine& engine) -> Task<void> {
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      auto section = [](LockContext&) -> Task<void> { co_return; };
      auto cut = [&]() -> Task<void> { co_await yield(); };
      auto enter = [&]() -> Task<void> { static_cast<void>(co_await lock.on_acquire(section)); };
      co_await any_of(enter, cut);
      EXPECT_EQ(engine.statistics().waiting, 0u) << "seed " << seed;
      or_throw(co_await lock.on_acquire(section));
    };
    fresh();
    auto root = [&]() -> Task<void> { or_throw(co_await with_engine(session(), body)); };
    run(shuffled, root());
  }
}

TEST_P(DurableFaults, AnOpenThatIsRefusedIsNotInTheWayOfTheNextOne) {
  auto other = [&](Engine& here, Engine& there) -> Task<void> {
    SemaphoreOptions three;
    three.resource_id = "s";
    three.permits = 3;
    SemaphoreOptions four = three;
    four.permits = 4;
    Semaphore right = or_throw(co_await Semaphore::open(there, three));
    LockResult<Semaphore> wrong = co_await Semaphore::open(here, four);
    EXPECT_EQ(wrong.error(), LockError::mismatch);
    EXPECT_EQ(here.workflows(), 0u);
    LockResult<Semaphore> again = co_await Semaphore::open(here, three);
    EXPECT_TRUE(again.has_value()) << again.error().what();
  };
  auto outer = [&]() -> Task<void> {
    auto first = [&](Engine& there) -> Task<void> {
      auto second = [&](Engine& here) -> Task<void> { return other(here, there); };
      or_throw(co_await with_engine(session(), second));
    };
    or_throw(co_await with_engine(session(), first));
  };
  run(loop, outer());
}

TEST_P(DurableFaults, NoTimeToWaitIsAnError) {
  with([&](Engine& engine) -> Task<void> {
    Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
    for (std::chrono::seconds none : {0s, -1s}) {
      LockResult<int> got = co_await lock.on_acquire_within(none, seven);
      EXPECT_EQ(got.error(), LockError::invalid) << got.error().what();
    }
  });
}

// Opened and never used: forgotten like any other.
TEST_P(DurableFaults, WhatIsOnlyOpenedIsForgottenToo) {
  with([&](Engine& engine) -> Task<void> {
    or_throw(co_await Mutex::open(engine, named("a")));
    or_throw(co_await Mutex::open(engine, named("b")));
    EXPECT_EQ(engine.workflows(), 2u) << "the seed's SignalWithStart";
    co_await sleep_for(61s);
    EXPECT_EQ(engine.workflows(), 0u);
    EXPECT_TRUE(or_throw(co_await engine.report()).empty());
  });
}

// Several processes, each with tasks that come, are cancelled and hold, over stores that lose a part of everything. Clocks are exact
// here and functions end when they are cancelled, so there are never two inside; and in the end everything is given back.
// The resource is in the store again when open() has returned: who is to take it away must be there too.
TEST_P(DurableFaults, WhoOpensWhileAnIdleWorkflowEndsFindsOneThatGoesOn) {
  only = "retire";
  with([&](Engine& engine) -> Task<void> {
    MutexOptions options = named("r");
    options.idle_timeout = 1s;
    static_cast<void>(or_throw(co_await Mutex::open(engine, options)));
    fault = Fault::late_answer;  // the store has forgotten it at once
    co_await sleep_for(2s);
    auto there = or_throw(co_await engine.report());
    EXPECT_TRUE(there.empty());
    fault = Fault::none;
    static_cast<void>(or_throw(co_await Mutex::open(engine, options)));
    co_await sleep_for(7100ms);  // the answer has come
    EXPECT_EQ(engine.workflows(), 1u);
    EXPECT_EQ(engine.statistics().workflows_ended, 0u);
    co_await sleep_for(2s);
    EXPECT_EQ(engine.workflows(), 0u);
    there = or_throw(co_await engine.report());
    EXPECT_TRUE(there.empty()) << "nothing is left in the store";
  });
}

TEST_P(DurableFaults, NoTwoHoldersWhateverIsLost) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    auto chance = [&](int of_thousand) { return static_cast<int>(random() % 1000) < of_thousand; };
    weft::testing::VirtualLoop world;
    world.shuffle_by(seed);
    fresh();
    int losses = seed % 3 == 0 ? 0 : 60;
    int inside = 0;
    int served = 0;
    std::uint64_t last_token = 0;
    bool calm = false;

    auto plan = [&](const std::string&) {
      if (calm || !chance(losses)) return Fault::none;
      return chance(500) ? Fault::lose_call : Fault::lose_answer;
    };
    auto section = [&](LockContext& held) -> Task<void> {
      EXPECT_EQ(inside, 0);
      EXPECT_GT(held.fencing_token(), last_token);
      last_token = held.fencing_token();
      ++inside;
      ++served;
      auto work = [&]() -> Task<void> {
        co_await sleep_for(std::chrono::milliseconds(random() % 3000));
      };
      auto out = [&]() -> Task<void> {
        --inside;
        co_return;
      };
      co_await try_(work).finally(out);
    };
    auto process = [&](int) -> Task<void> {
      auto body = [&](Engine& engine) -> Task<void> {
        MutexOptions options = named("r");
        options.lease = 2s;
        options.fair_bound = 3;
        options.acquire_timeout = 20s;
        options.idle_timeout = 1s;
        LockResult<Mutex> lock = co_await Mutex::open(engine, options);
        while (!lock) lock = co_await Mutex::open(engine, options);
        auto user = [&]() -> Task<void> {
          for (int round = 0; round < 6; ++round) {
            co_await sleep_for(std::chrono::milliseconds(random() % 2000));
            if (chance(300)) {
              static_cast<void>(co_await timeout(std::chrono::milliseconds(random() % 4000),
                                                 lock->on_acquire(section)));
            } else if (chance(100)) {
              static_cast<void>(co_await lock->try_acquire(section));
            } else {
              static_cast<void>(co_await lock->on_acquire(section));
            }
          }
        };
        auto users = [&](Nursery& nursery) -> Task<NurseryEnd> {
          for (int i = 0; i < 3; ++i) nursery.start(user);
          co_return join;
        };
        co_await with_nursery(users);
      };
      std::unique_ptr<FaultyStore> store = std::make_unique<FaultyStore>(session(), plan);
      store->there = std::chrono::milliseconds(random() % 30);
      store->back = std::chrono::milliseconds(random() % 30);
      or_throw(co_await with_engine(std::move(store), body));
    };
    auto look = [&](Engine& engine) -> Task<void> {
      auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
        for (int i = 0; i < 4; ++i) nursery.start(process, i);
        co_return join;
      };
      co_await with_nursery(all);
      calm = true;
      Mutex lock = or_throw(co_await Mutex::open(engine, named("r")));
      EXPECT_TRUE((co_await lock.on_acquire(seven)).has_value());
      std::vector<ResourceReport> report = or_throw(co_await engine.report());
      EXPECT_TRUE(report.at(0).tickets.empty());
    };
    auto root = [&]() -> Task<void> { or_throw(co_await with_engine(session(), look)); };
    run(world, root());
    EXPECT_GT(served, 20);
  }
}

}  // namespace
