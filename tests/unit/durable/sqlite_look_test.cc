// SPDX-License-Identifier: MIT
// durable::look(): who holds and who waits, by who only looks: nothing is made, nothing is locked, nobody is waited for.
#include <filesystem>
#include <fstream>
#include <set>

#include "durable/sqlite/sqlite_writer.h"
#include "support/lock_tables.h"
#include "support/temporary_directory.h"
#include "weft/durable/engine.h"
#include "weft/durable/look.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using durable::StoreView;

struct SqliteLook : ::testing::Test {
  LockResult<StoreView> look(std::optional<std::string> resource = {}) {
    EventLoop loop;
    return run(loop, durable::look("sqlite://" + path, std::move(resource)));
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& each : std::filesystem::directory_iterator(directory.path())) {
      all.insert(each.path().filename().string());
    }
    return all;
  }
  // Of this boot, as the engine opens it.
  std::unique_ptr<SqliteTable> open() const {
    SqliteTable::Options options = table_options(path, now);
    options.boot_id = or_throw(durable::detail::boot_id());
    return or_throw(SqliteTable::open(std::move(options)));
  }

  TemporaryDirectory directory;
  std::string path = directory.file("a?b#c%20.db");
  std::int64_t now = durable::detail::boot_clock();
  std::int64_t lease = 60'000'000'000;
};

TEST_F(SqliteLook, WhereThereIsNoFileNoneIsMade) {
  StoreView seen = or_throw(look());
  EXPECT_FALSE(seen.exists);
  EXPECT_TRUE(seen.resources.empty());
  EXPECT_TRUE(names().empty());
  path = directory.file("no/such/folder.db");
  EXPECT_FALSE(or_throw(look()).exists);
  path = directory.write("empty.db", "");
  EXPECT_TRUE(or_throw(look()).exists) << "somebody is about to make it";
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

TEST_F(SqliteLook, AFileThatNobodyUsesStaysAlone) {
  ASSERT_TRUE(open()->enqueue(1, request("a", 1, lease), now));
  std::set<std::string> before = names();
  StoreView seen = or_throw(look());
  ASSERT_EQ(seen.resources.size(), 1u);
  EXPECT_EQ(seen.resources[0].tickets[0].owner, "owner of 1");
  EXPECT_EQ(names(), before);
  EXPECT_EQ(before.size(), 1u);
}

TEST_F(SqliteLook, WhatIsInTheLogIsSeenWhileSomebodyKeepsTheFileLocked) {
  auto table = open();
  ASSERT_TRUE(table->enqueue(1, request("a", 1, lease), now));
  ASSERT_TRUE(table->enqueue(2, request("a", 2, lease), now));
  ASSERT_TRUE(table->enqueue(2, request("b", 3, lease), now));
  ASSERT_TRUE(table->begin());
  ASSERT_TRUE(table->enqueue(3, request("a", 4, lease), now));
  StoreView seen = or_throw(look());
  ASSERT_EQ(seen.resources.size(), 2u);
  EXPECT_EQ(seen.resources[0].tickets.size(), 2u) << "what is not committed is not there";
  EXPECT_TRUE(seen.resources[0].tickets[0].granted);
  EXPECT_FALSE(seen.resources[0].tickets[1].granted);
  EXPECT_GT(seen.resources[0].tickets[0].lease_left.count(), lease / 2);
  ASSERT_TRUE(table->commit(true));
  StoreView one = or_throw(look("b"));
  ASSERT_EQ(one.resources.size(), 1u);
  EXPECT_EQ(one.resources[0].resource, "b");
  EXPECT_EQ(or_throw(look("a")).resources[0].tickets.size(), 3u);
}

TEST_F(SqliteLook, AfterABootLeasesAreShownAsTheyWillBegin) {
  {
    auto table = open_table(path, now * 2);  // of a clock that is gone
    ASSERT_TRUE(table->enqueue(1, request("a", 1, lease), now * 2));
  }
  StoreView seen = or_throw(look());
  EXPECT_EQ(seen.resources[0].tickets[0].lease_left.count(), lease);
  EXPECT_EQ(seen.resources[0].tickets[0].age.count(), 0);
}

TEST_F(SqliteLook, AFileOfVersion1IsReadAndStaysOne) {
  make_version_1(path);
  StoreView seen = or_throw(look());
  ASSERT_EQ(seen.resources.size(), 2u);
  EXPECT_EQ(seen.resources[0].tickets[0].owner, "ann");
  EXPECT_EQ(seen.resources[0].tickets[1].owner, "bob");
  durable::detail::Connection file(path);
  EXPECT_EQ(file.ask("PRAGMA user_version"), "1");
}

TEST_F(SqliteLook, WhatIsNoLockFileIsAnError) {
  directory.write("a?b#c%20.db", std::string(10'000, 'x'));
  LockResult<StoreView> seen = look();
  EXPECT_TRUE(!seen && seen.error() == LockError::storage);
  EventLoop loop;
  seen = run(loop, durable::look("sqlite:///tmp/"));
  EXPECT_TRUE(!seen && seen.error() == LockError::invalid);
}

TEST(Look, OtherStoresAreAskedByAnEngine) {
  weft::testing::VirtualLoop loop;
  auto root = [&]() -> Task<void> {
    LockResult<StoreView> seen = co_await durable::look("memory://look");
    EXPECT_TRUE(seen && seen->exists && seen->resources.empty());
    seen = co_await durable::look("redis://look");
    EXPECT_TRUE(!seen && seen.error() == LockError::invalid);
  };
  run(loop, root());
}

}  // namespace
