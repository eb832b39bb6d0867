// SPDX-License-Identifier: MIT
#pragma once
// A process that makes every call of a LockStore there is, in turn, and says meanwhile what it may rely on; and who comes after it, wherever it died.
//
//     Mortal mortal({url, folder + "/history", 240ms}, std::move(store), {"release", DyingStore::after, 1});
//     run(loop, mortal.run());                                 // in a process of its own
//     …
//     co_await come_after(life);                               // with nobody else at the store
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "support/durable_fixture.h"
#include "support/dying_store.h"
#include "support/lock_history.h"
#include "weft/durable/mutex.h"
#include "weft/weft.h"

namespace weft::test {

class Mortal {
 public:
  static constexpr int kLived = 5;  // exit status: it came to its end
  struct Life {
    std::string url;      // of the store
    std::string history;  // a file
    std::chrono::milliseconds lease;

    [[nodiscard]] durable::MutexOptions options() const {
      durable::MutexOptions made = named("r");
      made.lease = lease;
      made.idle_timeout = std::chrono::milliseconds(20);
      return made;
    }
  };

  Mortal(Life life, std::unique_ptr<durable::LockStore> store, DyingStore::Death death)
      : life_(std::move(life)), log_(life_.history) {
    auto seen = [this](const std::string& call, DyingStore::Point point) {
      if (call == "enqueue" && point == DyingStore::before) asked_ = boot_now();
      // The first is granted, the second waits.
      if (call == "enqueue" && point == DyingStore::after && store_->answered("enqueue") == 0)
        promised_ = asked_ + std::chrono::nanoseconds(life_.lease).count();
      say_promise();
    };
    made_ = std::make_unique<DyingStore>(std::move(store), std::move(death), seen);
    store_ = made_.get();
  }
  Mortal(const Mortal&) = delete;
  Mortal& operator=(const Mortal&) = delete;

  // Once. Ends the process.
  Task<void> run() {
    say_promise();
    auto body = [&](durable::Engine& engine) -> Task<void> { co_await use(engine); };
    or_throw(co_await durable::with_engine(std::move(made_), body));
    ::_exit(kLived);
  }

 private:
  Task<void> use(durable::Engine& engine) {
    durable::MutexOptions wanted = life_.options();
    durable::Mutex lock = or_throw(co_await durable::Mutex::open(engine, wanted));  // join
    auto hold = [&](durable::LockContext& held) -> Task<void> {
      token_ = held.fencing_token();
      log_.add({.what = LockEvent::hold,
                .who = "mortal",
                .token = token_,
                .begin = asked_,
                .end = boot_now()});
      // The second time it relies on what the first has given it.
      while (store_->answered("renew") < 2) {
        promised_ = boot_now() + held.lease_left().count();
        co_await sleep_for(std::chrono::milliseconds(1));
      }
      promised_ = 0;
    };
    or_throw(co_await lock.on_acquire(hold));  // enqueue, renew, release
    co_await until_answered("retire");
    auto aside = [&](durable::Engine& other) -> Task<void> {
      durable::Mutex theirs = or_throw(co_await durable::Mutex::open(other, wanted));
      auto wait = [&](durable::LockContext&) -> Task<void> {
        auto never = [](durable::LockContext&) -> Task<void> { co_return; };
        static_cast<void>(co_await timeout(std::chrono::milliseconds(10), lock.on_acquire(never)));
        co_await until_answered("withdraw");
      };
      or_throw(co_await theirs.on_acquire(wait));  // enqueue that waits, withdraw
    };
    or_throw(co_await durable::with_engine(life_.url, aside));
    static_cast<void>(or_throw(co_await engine.revoke("r")));
  }
  Task<void> until_answered(std::string call) {
    while (store_->answered(call) == 0) co_await sleep_for(std::chrono::milliseconds(1));
  }
  // Until when nobody else can have it.
  void say_promise() {
    log_.add({.what = LockEvent::sure,
              .who = "mortal",
              .token = token_,
              .begin = promised_,
              .end = promised_});
  }

  Life life_;
  std::unique_ptr<DyingStore> made_;
  DyingStore* store_ = nullptr;
  HistoryLog log_;
  std::int64_t asked_ = 0;
  std::int64_t promised_ = 0;
  std::uint64_t token_ = 0;
};

// The next one gets the lock, alone, with a greater token, and not before the time that the dead one could rely on is over.
inline Task<void> come_after(Mortal::Life life) {
  LockEvents history = read_history(life.history);
  std::uint64_t greatest = 0;
  for (const LockEvent& event : history) greatest = std::max(greatest, event.token);
  // What its last line promised holds though it is dead.
  EXPECT_FALSE(history.empty()) << life.history;
  const std::int64_t promised = history.empty() ? 0 : history.back().begin;
  auto body = [&](durable::Engine& engine) -> Task<void> {
    durable::MutexOptions wanted = life.options();
    durable::Mutex lock = or_throw(co_await durable::Mutex::open(engine, wanted));
    auto section = [&](durable::LockContext& held) -> Task<void> {
      EXPECT_GE(boot_now(), promised) << life.history << ": a lease was cut short";
      EXPECT_GT(held.fencing_token(), greatest) << life.history;
      auto report = or_throw(co_await engine.report());
      EXPECT_EQ(report.at(0).tickets.size(), 1u) << life.history << ": it alone is there";
    };
    TimePoint begun = now();
    auto got = co_await lock.on_acquire(section);
    EXPECT_TRUE(got.has_value()) << life.history << ": " << (got ? "" : got.error().what());
    EXPECT_LT(now() - begun, std::chrono::seconds(10)) << life.history << ": a grant was lost";
  };
  or_throw(co_await durable::with_engine(life.url, body));
}

}  // namespace weft::test
