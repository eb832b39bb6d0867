// SPDX-License-Identifier: MIT
// A million acquisitions of one resource leave no more behind in its lock file than ten. WEFT_ACQUISITIONS says how many (script/test torture: 10^7).
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "support/durable_fixture.h"
#include "support/loop_fixture.h"
#include "support/temporary_directory.h"
#include "weft/durable/mutex.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using durable::LockContext;

std::size_t acquisitions() {
  if (const char* given = std::getenv("WEFT_ACQUISITIONS")) return std::strtoul(given, nullptr, 10);
  return kSanitized ? 50'000 : 1'000'000;
}

// What is in a file: the rows of each table, and its size; and what is beside it.
struct Left {
  std::map<std::string, std::string> rows;
  std::uintmax_t bytes = 0;
  bool has_log = false;
  std::size_t pipes = 0;
};

std::map<std::string, std::string> ask(sqlite3* file, const std::string& sql) {
  std::map<std::string, std::string> rows;
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(::sqlite3_prepare_v2(file, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
  auto text = [&](int column) {
    return std::string(reinterpret_cast<const char*>(::sqlite3_column_text(statement, column)));
  };
  while (::sqlite3_step(statement) == SQLITE_ROW) rows[text(0)] = text(1);
  ::sqlite3_finalize(statement);
  return rows;
}
Left left_in(const std::string& path) {
  Left left;
  left.has_log = std::filesystem::exists(path + "-wal");
  sqlite3* file = nullptr;
  EXPECT_EQ(::sqlite3_open_v2(path.c_str(), &file, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  for (const auto& [name, type] :
       ask(file, "SELECT name, type FROM sqlite_master WHERE type = 'table'"))
    left.rows[name] = ask(file, "SELECT 'rows', count(*) FROM \"" + name + "\"")["rows"];
  ::sqlite3_close(file);
  left.bytes = std::filesystem::file_size(path);
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(path + "-wake"))
    ++left.pipes;
  return left;
}

// By eight tasks, which hand it over before it is given back, and ask for it anew: four thousand grants of a million acquisitions, which
// write more than is in the log at any time.
void acquire(const std::string& path, std::size_t count) {
  constexpr std::size_t kTasks = 8;
  constexpr std::uintmax_t kLogMax = 6u << 20;  // written back each 4 MB
  std::size_t done = 0;
  EventLoop loop;
  auto body = [&](durable::Engine& engine) -> Task<void> {
    durable::MutexOptions options = named("r");
    options.idle_timeout = std::chrono::milliseconds(20);
    options.fair_bound = 250;
    durable::Mutex lock = or_throw(co_await durable::Mutex::open(engine, options));
    auto section = [&](LockContext&) -> Task<void> {
      ++done;
      co_return;
    };
    auto one = [&]() -> Task<void> {
      while (done + kTasks <= count) or_throw(co_await lock.on_acquire(section));
    };
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (std::size_t i = 0; i < kTasks; ++i) nursery.start(one);
      co_return join;
    };
    co_await with_nursery(all);
    while (done < count) or_throw(co_await lock.on_acquire(section));
    EXPECT_EQ(done, count);
    EXPECT_EQ(engine.statistics().acquired, count);
    EXPECT_LE(std::filesystem::file_size(path + "-wal"), kLogMax);
    while (engine.workflows() > 0) co_await sleep_for(std::chrono::milliseconds(5));
  };
  auto root = [&]() -> Task<void> {
    or_throw(co_await durable::with_engine("sqlite://" + path, body));
  };
  run(loop, root());
}

TEST(SqliteBounds, AMillionAcquisitionsLeaveNoMoreBehindThanTen) {
  TemporaryDirectory directory(TemporaryDirectory::where_syncs_are_cheap());
  acquire(directory.file("ten.db"), 10);
  Left ten = left_in(directory.file("ten.db"));
  acquire(directory.file("many.db"), acquisitions());
  Left many = left_in(directory.file("many.db"));
  EXPECT_FALSE(ten.rows.empty());
  EXPECT_EQ(many.rows, ten.rows);
  EXPECT_EQ(many.bytes, ten.bytes);
  EXPECT_EQ(many.pipes, 0u);
  EXPECT_FALSE(many.has_log) << "it is written back at the end";
  std::printf("[   LEFT   ] %ju bytes after 10 acquisitions, %ju after %zu\n", ten.bytes,
              many.bytes, acquisitions());
  for (const auto& [table, rows] : many.rows)
    std::printf("[   LEFT   ] table %s: %s rows\n", table.c_str(), rows.c_str());
}

}  // namespace
