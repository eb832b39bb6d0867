// SPDX-License-Identifier: MIT
#pragma once
// What tests of lock tables share: tables in files, what two tables differ in, and what holds in every one.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "durable/sqlite/connection.h"
#include "durable/sqlite/sqlite_table.h"
#include "weft/base/result.h"
#include "weft/durable/lock_table.h"

namespace weft::test {

using durable::LockError;
using durable::LockResult;
using durable::LockTable;
using durable::Placed;
using durable::ResourceReport;
using durable::SessionId;
using durable::Standing;
using durable::TicketNumber;
using durable::TicketReport;
using durable::TicketRequest;
using durable::TokenBlock;
using durable::detail::SqliteTable;

inline constexpr const char* kBoot = "this boot";

inline SqliteTable::Options table_options(std::string path, std::int64_t now = 0) {
  SqliteTable::Options options;
  options.path = std::move(path);
  options.now = now;
  options.boot_id = kBoot;
  return options;
}
inline std::unique_ptr<SqliteTable> open_table(std::string path, std::int64_t now = 0) {
  return or_throw(SqliteTable::open(table_options(std::move(path), now)));
}

inline TicketRequest request(std::string resource, TicketNumber number, std::int64_t lease = 1000) {
  TicketRequest made;
  made.resource = std::move(resource);
  made.number = number;
  made.lease = std::chrono::nanoseconds(lease);
  made.owner = "owner of " + std::to_string(number);
  return made;
}

inline std::string text_of(const TokenBlock& tokens) {
  return std::to_string(tokens.first) + "+" + std::to_string(tokens.count);
}
inline std::string text_of(const Placed& placed) {
  return std::to_string(static_cast<int>(placed.standing)) + " " + text_of(placed.tokens) + " " +
         std::to_string(placed.ahead);
}
inline std::string text_of(const std::vector<TicketNumber>& numbers) {
  std::string text;
  for (TicketNumber each : numbers) text += std::to_string(each) + " ";
  return text;
}
inline std::string text_of(bool value) { return value ? "yes" : "no"; }
inline std::string text_of(std::size_t value) { return std::to_string(value); }
inline std::string text_of(const std::vector<ResourceReport>& all) {
  std::ostringstream text;
  for (const ResourceReport& one : all) {
    text << one.resource << "(" << one.capacity << ")";
    for (const TicketReport& each : one.tickets) {
      text << " [" << each.owner << (each.granted ? " granted " : " waits ") << each.token << " w"
           << each.weight << " age " << each.age.count() << " left " << each.lease_left.count()
           << "]";
    }
    text << "\n";
  }
  return text.str();
}
inline std::string text_of(const LockTable::State& state) {
  std::ostringstream text;
  for (const LockTable::Mine& each : state.tickets) {
    text << each.number << (each.granted ? " granted " : " waits ") << text_of(each.tokens) << ", ";
  }
  if (state.expire_at) text << "expire at " << *state.expire_at;
  return text.str();
}
template <class T>
std::string text_of(const LockResult<T>& result) {
  if (!result) return result.error().what();
  if constexpr (std::is_void_v<T>) {
    return "done";
  } else {
    return text_of(*result);
  }
}

// A lock file as version 1 made it, with 1000 as its next token: session 1 holds "one", 2 waits for it, 3 shares "shared".
inline void make_version_1(const std::string& path) {
  durable::detail::Connection file(path);
  file.execute(R"(
    PRAGMA application_id = 2003127403;
    PRAGMA user_version = 1;
    CREATE TABLE meta (
      id INTEGER PRIMARY KEY CHECK (id = 1), next_token INTEGER NOT NULL, boot_id TEXT NOT NULL);
    INSERT INTO meta VALUES (1, 1000, 'this boot');
    CREATE TABLE resources (name TEXT PRIMARY KEY, capacity INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO resources VALUES ('one', 1), ('shared', 3);
    CREATE TABLE tickets (
      place INTEGER PRIMARY KEY, resource TEXT NOT NULL, session INTEGER NOT NULL,
      number INTEGER NOT NULL, weight INTEGER NOT NULL, tokens_wanted INTEGER NOT NULL,
      lease INTEGER NOT NULL, ends INTEGER NOT NULL, since INTEGER NOT NULL,
      first_token INTEGER NOT NULL, token_count INTEGER NOT NULL, owner TEXT NOT NULL);
    CREATE INDEX tickets_by_resource ON tickets (resource);
    CREATE UNIQUE INDEX tickets_by_number ON tickets (session, number);
    INSERT INTO tickets VALUES (4, 'one', 1, 1, 1, 10, 1000, 1000, 0, 990, 10, 'ann'),
                               (5, 'shared', 3, 1, 1, 5, 1000, 1000, 0, 980, 5, 'cid'),
                               (6, 'one', 2, 1, 1, 10, 1000, 1000, 0, 0, 0, 'bob');
  )");
  static_cast<void>(file.ask("PRAGMA journal_mode = WAL"));
}

// D1 and D2 (docs/design/durable_mutex.md), as far as one look can tell.
inline void expect_sound(LockTable& table, std::int64_t now) {
  std::vector<std::uint64_t> tokens;
  for (const ResourceReport& one : or_throw(table.report({}, now))) {
    std::uint64_t used = 0;
    bool someone_waits = false;
    for (const TicketReport& each : one.tickets) {
      if (each.granted) {
        used += each.weight;
        EXPECT_FALSE(someone_waits) << one.resource << ": " << each.owner << " has overtaken";
        EXPECT_GT(each.token, 0u);
        tokens.push_back(each.token);
      }
      someone_waits = someone_waits || !each.granted;
    }
    EXPECT_LE(used, one.capacity) << one.resource << " is held by too many";
  }
  std::ranges::sort(tokens);
  EXPECT_TRUE(std::ranges::adjacent_find(tokens) == tokens.end()) << "a token was given twice";
}

}  // namespace weft::test
