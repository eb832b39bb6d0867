// SPDX-License-Identifier: MIT
// A power cut after every answer of every operation on a lock file: what was told to anybody holds. Only a commit that grants is synced, so
// this shows what those in between may lose: a release, a renewal, a place in a queue; no token, and no lease that somebody relies on.
#include <filesystem>

#include "durable/sqlite/connection.h"
#include "durable/sqlite/sqlite_store.h"
#include "support/lock_tables.h"
#include "support/power_cut.h"
#include "support/store_session.h"
#include "support/temporary_directory.h"

namespace {

using namespace weft;
using namespace weft::test;
using durable::detail::Connection;

constexpr std::int64_t kLease = 1'000;
constexpr std::int64_t kAfterBoot = 7;
constexpr SessionId kSessions = 4;

struct Held {
  SessionId session;
  TicketNumber number;
  TokenBlock tokens;
};

class SqlitePowerCut : public ::testing::Test {
 protected:
  // Whatever the disk has kept of it: what was told must be there after the boot.
  void expect_kept(const std::string& what) {
    for (PowerCut::Outcome outcome : PowerCut::kOutcomes) {
      SCOPED_TRACE(what + ", file " + std::to_string(static_cast<int>(outcome.file)) + ", log " +
                   std::to_string(static_cast<int>(outcome.log)));
      disk_.leave(path_, copy_, outcome);
      expect_tokens_are_taken();
      expect_holders_are_there();
    }
  }
  // Before a boot adds to them.
  void expect_tokens_are_taken() {
    Connection copy(copy_);
    std::uint64_t next = std::stoull(copy.ask("SELECT next_token FROM meta"));
    EXPECT_GE(next, next_token_) << "a token would be given again";
  }
  void expect_holders_are_there() {
    SqliteTable::Options options = table_options(copy_, kAfterBoot);
    options.boot_id = "another boot";
    LockResult<std::unique_ptr<SqliteTable>> opened = SqliteTable::open(std::move(options));
    ASSERT_TRUE(opened) << opened.error().what();
    SqliteTable& table = **opened;
    for (const Held& each : held_) {
      std::vector<LockTable::Mine> tickets = or_throw(table.state(each.session)).tickets;
      auto found = std::ranges::find(tickets, each.number, &LockTable::Mine::number);
      ASSERT_NE(found, tickets.end()) << "ticket " << each.number << " was granted, and is gone";
      EXPECT_TRUE(found->granted) << each.number;
      EXPECT_EQ(found->tokens, each.tokens) << each.number;
    }
    for (const ResourceReport& one : or_throw(table.report({}, kAfterBoot))) {
      for (const TicketReport& each : one.tickets) {
        EXPECT_EQ(each.lease_left.count(), kLease) << each.owner;
      }
    }
    expect_sound(table, kAfterBoot);
    TokenBlock tokens =
        or_throw(table.enqueue(99, request("nobody's", 99, kLease), kAfterBoot)).tokens;
    EXPECT_GE(tokens.first, next_token_);
  }

  // Everybody looks, and so is told.
  void tell_all(LockTable& table) {
    held_.clear();
    for (SessionId session = 1; session <= kSessions; ++session) {
      for (const LockTable::Mine& each : or_throw(table.state(session)).tickets) {
        if (!each.granted) continue;
        held_.push_back({session, each.number, each.tokens});
        next_token_ = std::max(next_token_, each.tokens.first + each.tokens.count);
      }
    }
  }
  void after(const std::string& what, LockTable& table) {
    tell_all(table);
    expect_kept(what);
  }
  TokenBlock tokens_of(SessionId session, TicketNumber number) const {
    for (const Held& each : held_) {
      if (each.session == session && each.number == number) return each.tokens;
    }
    ADD_FAILURE() << number << " is not held";
    return {};
  }

  TemporaryDirectory directory_{TemporaryDirectory::where_syncs_are_cheap()};
  // Another folder: an upgrade has the file's own one locked, and the copy is opened in its midst.
  TemporaryDirectory elsewhere_{TemporaryDirectory::where_syncs_are_cheap()};
  std::string path_ = directory_.file("locks.db"), copy_ = elsewhere_.file("copy.db");
  PowerCut disk_;
  std::vector<Held> held_;
  std::uint64_t next_token_ = 1;
};

TicketRequest ticket(std::string resource, TicketNumber number, std::uint32_t weight = 1,
                     std::uint32_t capacity = 1) {
  TicketRequest made = request(std::move(resource), number, kLease);
  made.weight = weight;
  made.capacity = capacity;
  made.tokens = 3;
  return made;
}

// Two processes, several rounds: a log that is written back and begun anew is swept, too.
TEST_F(SqlitePowerCut, AfterEveryAnswerWhatWasToldHolds) {
  auto one = open_table(path_), two = open_table(path_);
  after("open", *one);
  std::int64_t now = 0;
  TicketNumber number = 0;
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    now += 10 * kLease;
    number += 10;
    ASSERT_TRUE(one->join("a", 1, now));
    after("join", *one);
    ASSERT_TRUE(one->enqueue(1, ticket("a", number), now));
    after("enqueue, granted", *two);
    ASSERT_TRUE(two->enqueue(2, ticket("a", number), now));
    after("enqueue, queued", *two);
    ASSERT_TRUE(one->enqueue(3, ticket("a", number), now));
    after("enqueue, queued as the third", *two);
    ASSERT_TRUE(two->enqueue(1, ticket("shared", number + 1, 1, 4), now));
    ASSERT_TRUE(one->enqueue(2, ticket("shared", number + 1, 2, 4), now));
    after("enqueue, shared", *one);
    ASSERT_TRUE(two->enqueue(3, ticket("shared", number + 1, 4, 4), now));
    TicketRequest only_if_free = ticket("a", number + 2);
    only_if_free.only_if_free = true;
    ASSERT_EQ(or_throw(two->enqueue(4, only_if_free, now)).standing, Standing::refused);
    after("enqueue, refused", *one);
    ASSERT_TRUE(or_throw(one->renew(1, {number, number + 1}, now + 1)).empty());
    after("renew", *two);
    ASSERT_TRUE(two->withdraw(1, number + 1, now + 1));
    after("withdraw of who shares", *one);
    ASSERT_TRUE(one->withdraw(2, number + 1, now + 1));
    after("withdraw that grants", *two);
    ASSERT_TRUE(one->release(1, number, tokens_of(1, number), now + 2));
    after("release that grants", *two);
    ASSERT_TRUE(or_throw(two->renew(3, {number, number + 1}, now + kLease - 1)).empty());
    after("renew of who waits", *two);
    ASSERT_TRUE(two->expire(3, now + kLease));
    after("expire that grants", *one);
    ASSERT_TRUE(one->report({}, now + kLease));
    ASSERT_TRUE(one->begin());
    ASSERT_TRUE(one->enqueue(4, ticket("b", number + 3), now + kLease));
    ASSERT_TRUE(one->release(3, number, tokens_of(3, number), now + kLease));
    ASSERT_TRUE(one->commit(one->has_granted()));
    after("several in one commit", *two);
    ASSERT_TRUE(two->enqueue(2, ticket("b", number + 3), now + kLease));
    ASSERT_EQ(or_throw(one->revoke("b", now + kLease)), 2u);
    after("revoke", *one);
    ASSERT_TRUE(or_throw(one->retire("a", now + kLease)));
    after("retire", *two);
    if (round == 0) {
      Connection file(path_);
      file.execute("PRAGMA wal_checkpoint(RESTART)");
      after("checkpoint", *one);
    } else {
      one.reset();
      two.reset();
      expect_kept("close");
      one = open_table(path_, now + kLease);
      two = open_table(path_, now + kLease);
      after("open again", *one);
    }
  }
}

// As it is shipped: answers come from a writer thread, and news by a pipe.
TEST_F(SqlitePowerCut, WhatTheStoreAnswersHolds) {
  struct Factory {
    std::string path;
    std::unique_ptr<durable::LockStore> make() {
      return or_throw(durable::detail::make_sqlite_store("sqlite://" + path));
    }
    static std::chrono::nanoseconds lease() { return std::chrono::seconds(30); }
  } factory{path_};
  EventLoop loop;
  auto expect_taken = [&](TokenBlock tokens) {
    EXPECT_GT(tokens.count, 0u);
    next_token_ = std::max(next_token_, tokens.first + tokens.count);
    disk_.leave(path_, copy_, {});
    expect_tokens_are_taken();
  };
  with_sessions(loop, factory, 2, [&](Sessions& s) -> Task<void> {
    for (TicketNumber number = 1; number <= 5; ++number) {
      Placed first = or_throw(co_await s[0].enqueue("a", number));
      expect_taken(first.tokens);
      static_cast<void>(or_throw(co_await s[1].enqueue("a", number)));
      or_throw(co_await s[0]->release(number, first.tokens));
      TokenBlock next = co_await s[1].until_granted(number);
      expect_taken(next);
      or_throw(co_await s[1]->release(number, next));
    }
  });
}

// Who sees that this boot has begun takes tokens on from there, and somebody may read them before they are synced. If a cut then
// took the boot's mark with them, the next boot would add as much to the same number.
TEST_F(SqlitePowerCut, ABootThatOthersCanSeeHasBegunForGood) {
  {
    auto table = open_table(path_);
    ASSERT_TRUE(table->enqueue(1, ticket("a", 1), 0));
  }
  int seen = 0;
  SqliteTable::Options options = table_options(path_, kAfterBoot);
  options.boot_id = "another boot";
  auto boot_in = [](const std::string& path) {
    Connection file(path);
    file.checkpoint_at_close(false);
    return file.ask("SELECT boot_id FROM meta");
  };
  bool looking = false;
  options.step = [&] {
    if (std::exchange(looking, true)) return;
    if (boot_in(path_) == "another boot") {
      ++seen;
      disk_.leave(path_, copy_, {});
      EXPECT_EQ(boot_in(copy_), "another boot");
    }
    looking = false;
  };
  auto table = or_throw(SqliteTable::open(options));
  EXPECT_GT(seen, 0);
}

// A file of version 1 is made into one of this in one commit, wherever the power goes.
TEST_F(SqlitePowerCut, AnUpgradeHappensWhollyOrNotAtAll) {
  make_version_1(path_);
  int versions[3] = {};
  bool looking = false;
  SqliteTable::Options options = table_options(path_);
  options.step = [&] {
    if (std::exchange(looking, true)) return;
    for (PowerCut::Outcome outcome : PowerCut::kOutcomes) {
      disk_.leave(path_, copy_, outcome);
      {
        Connection copy(copy_);
        int version = std::stoi(copy.ask("PRAGMA user_version"));
        ASSERT_TRUE(version == 1 || version == 2);
        ++versions[version];
      }
      auto table = open_table(copy_);
      EXPECT_EQ(text_of(table->state(1)), "1 granted 990+10, ");
      EXPECT_EQ(text_of(table->state(2)), "1 waits 0+0, expire at 1000");
      EXPECT_EQ(or_throw(table->enqueue(4, request("new", 1), 10)).tokens.first, 1000u);
    }
    looking = false;
  };
  auto table = or_throw(SqliteTable::open(options));
  EXPECT_GT(versions[1], 0);
  EXPECT_GT(versions[2], 0);
}

}  // namespace
