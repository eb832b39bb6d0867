// SPDX-License-Identifier: MIT
// The engine sqlite:// does what every store must: on a loop with I/O as it is shipped, and its table alone in virtual time.
#include "durable/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "durable/memory_store.h"
#include "durable/sqlite/connection.h"
#include "durable/sqlite/sqlite_writer.h"
#include "durable/sqlite/wake_pipes.h"
#include "support/lock_sessions.h"
#include "support/lock_tables.h"
#include "support/store_suite.h"
#include "support/temporary_directory.h"
#include "weft/base/log.h"
#include "weft/testing/virtual_loop.h"

namespace weft::test {

using durable::detail::make_sqlite_store;
using durable::detail::WakePipes;

constexpr std::int64_t kLong = 30'000'000'000;

struct InFile {
  EventLoop loop;
  TemporaryDirectory directory;
  [[nodiscard]] std::string path() const { return directory.file("locks.db"); }
  std::unique_ptr<durable::LockStore> make() {
    return or_throw(make_sqlite_store("sqlite://" + path()));
  }
};
struct SqliteFactory {
  using Loop = EventLoop;
  std::unique_ptr<durable::LockStore> make() {
    return or_throw(make_sqlite_store("sqlite://" + directory.file("locks.db")));
  }
  static std::chrono::nanoseconds lease() { return std::chrono::milliseconds(500); }
  TemporaryDirectory directory;
};
struct VirtualSqliteFactory {
  using Loop = weft::testing::VirtualLoop;
  std::unique_ptr<durable::LockStore> make() {
    return std::make_unique<durable::detail::InlineStore>("sqlite:test", table);
  }
  static std::chrono::nanoseconds lease() { return std::chrono::seconds(1); }
  TemporaryDirectory directory;
  std::shared_ptr<durable::detail::SharedTable> table =
      durable::detail::share_table(open_table(directory.file("locks.db")));
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, StoreSuite, SqliteFactory);
INSTANTIATE_TYPED_TEST_SUITE_P(SqliteInVirtualTime, StoreSuite, VirtualSqliteFactory);

namespace {

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(SqliteStore, UrlsNameAFile) {
  for (const char* good : {"sqlite:///tmp/locks.db", "sqlite:locks.db", "sqlite:a/b c?.db",
                           "sqlite:/tmp/locks.db", "sqlite::memory:"}) {
    EXPECT_TRUE(make_sqlite_store(good)) << good;
  }
  for (const char* bad : {"sqlite:", "sqlite://", "sqlite://tmp/locks.db", "sqlite:///tmp/",
                          "etcd://a", "sqlite", ""}) {
    LockResult<std::unique_ptr<durable::LockStore>> made = make_sqlite_store(bad);
    EXPECT_TRUE(!made && made.error() == LockError::invalid) << bad;
  }
  EXPECT_FALSE(make_sqlite_store(std::string_view("sqlite:a\0b", 10)));
  EXPECT_EQ((*make_sqlite_store("sqlite:locks.db"))->url(), "sqlite:locks.db");
}

TEST(SqliteStore, AFileThatCannotBeOpenedIsAnErrorOfOpen) {
  InFile backend;
  LockSession session(or_throw(make_sqlite_store("sqlite:///nowhere/at/all/locks.db")));
  auto test = [&]() -> Task<void> {
    LockResult<> opened = co_await session.store->open(session);
    EXPECT_TRUE(!opened && opened.error() == LockError::storage);
    LockResult<> joined = co_await session.store->join("resource", 1);
    EXPECT_TRUE(!joined && joined.error() == LockError::withdrawn);
    co_await session.store->close();
  };
  run(backend.loop, test());
}

TEST(SqliteStore, ClosingTakesThePipeAway) {
  InFile backend;
  LockSessions two;
  for (int i = 0; i < 2; ++i) two.push_back(std::make_unique<LockSession>(backend.make()));
  LockSessionsBody body = [&](LockSessions&) -> Task<void> {
    EXPECT_EQ(files_in(backend.path() + "-wake"), 2u);
    co_return;
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(two, body); };
  run(backend.loop, test());
  EXPECT_EQ(files_in(backend.path() + "-wake"), 0u);
  EXPECT_FALSE(std::filesystem::exists(backend.path() + "-wal")) << "the last one tidies up";
}

// Its process would have died: the pipe is closed, its tickets are there. Whose lease would keep the others waiting for half
// a minute.
TEST(SqliteStore, ADeadWaiterIsSkippedAtOnce) {
  InFile backend;
  LockSessions two;
  for (int i = 0; i < 2; ++i) two.push_back(std::make_unique<LockSession>(backend.make()));
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    durable::TicketRequest wanted = request("resource", 1, kLong);
    TokenBlock held = co_await all[0]->acquire(wanted);
    {
      auto dead = std::make_unique<LockSession>(backend.make());
      LockResult<> opened = co_await dead->store->open(*dead);
      or_throw(opened);
      durable::TicketRequest asked = request("resource", 1, kLong);
      LockResult<Placed> placed = co_await dead->store->enqueue(asked);
      EXPECT_EQ(or_throw(placed).standing, Standing::queued);
      co_await dead->store->close();
    }
    durable::TicketRequest asked = request("resource", 1, kLong);
    LockResult<Placed> placed = co_await all[1]->store->enqueue(asked);
    EXPECT_EQ(or_throw(placed).standing, Standing::queued);
    TimePoint begun = now();
    LockResult<> released = co_await all[0]->store->release(1, held);
    EXPECT_TRUE(released);
    co_await all[1]->until_granted(1);
    EXPECT_LT(now() - begun, std::chrono::seconds(10));
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(two, body); };
  run(backend.loop, test());
}

TEST(SqliteStore, ADeadHolderKeepsItsLease) {
  InFile backend;
  LockSessions one;
  one.push_back(std::make_unique<LockSession>(backend.make()));
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    TimePoint begun = now();
    {
      auto dead = std::make_unique<LockSession>(backend.make());
      LockResult<> opened = co_await dead->store->open(*dead);
      or_throw(opened);
      durable::TicketRequest wanted = request("resource", 1, 400'000'000);
      co_await dead->acquire(wanted);
      co_await dead->store->close();
    }
    durable::TicketRequest wanted = request("resource", 1, kLong);
    co_await all[0]->acquire(wanted);
    EXPECT_GE(now() - begun, std::chrono::milliseconds(400));
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(one, body); };
  run(backend.loop, test());
}

// Whoever released it died before it could wake the next: that one hears of it with its next renewal.
TEST(SqliteStore, ARenewalBringsTheNewsThatAreOverdue) {
  InFile backend;
  LockSessions one;
  one.push_back(std::make_unique<LockSession>(backend.make()));
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    auto table = open_table(backend.path());
    std::int64_t now = durable::detail::boot_clock();
    TokenBlock held = or_throw(table->enqueue(77, request("resource", 1, kLong), now)).tokens;
    durable::TicketRequest asked = request("resource", 1, kLong);
    LockResult<Placed> placed = co_await all[0]->store->enqueue(asked);
    EXPECT_EQ(or_throw(placed).standing, Standing::queued);
    or_throw(table->release(77, 1, held, now));
    co_await sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(all[0]->grants.empty());
    std::vector<TicketNumber> mine{1, 2};
    LockResult<std::vector<TicketNumber>> gone = co_await all[0]->store->renew(mine);
    EXPECT_EQ(or_throw(gone), std::vector<TicketNumber>{2});
    EXPECT_TRUE(all[0]->grants.contains(1));
    EXPECT_TRUE(all[0]->lost.empty());
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(one, body); };
  run(backend.loop, test());
}

// Two names of one file: each must find the other's pipe, or it would take it for dead.
TEST(SqliteStore, FindsTheOthersThroughLinks) {
  InFile backend;
  open_table(backend.path()).reset();
  std::string link = backend.directory.file("link.db");
  std::filesystem::create_symlink(backend.path(), link);
  LockSessions two;
  two.push_back(std::make_unique<LockSession>(backend.make()));
  two.push_back(std::make_unique<LockSession>(or_throw(make_sqlite_store("sqlite://" + link))));
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    durable::TicketRequest wanted = request("resource", 1, kLong);
    TokenBlock held = co_await all[0]->acquire(wanted);
    durable::TicketRequest asked = request("resource", 1, kLong);
    LockResult<Placed> placed = co_await all[1]->store->enqueue(asked);
    EXPECT_EQ(or_throw(placed).standing, Standing::queued);
    LockResult<> released = co_await all[0]->store->release(1, held);
    EXPECT_TRUE(released);
    auto told = co_await timeout(std::chrono::seconds(10), all[1]->until_granted(1));
    EXPECT_TRUE(told.has_value());
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(two, body); };
  run(backend.loop, test());
  EXPECT_FALSE(std::filesystem::exists(link + "-wake"));
}

// Somebody is stopped in the midst of a commit. The loop goes on, and what was asked is answered in time.
TEST(SqliteStore, AFileThatStaysLockedIsUnreachable) {
  using durable::detail::Connection;
  InFile backend;
  LockSessions one;
  one.push_back(std::make_unique<LockSession>(backend.make()));
  int ticks = 0;
  auto ticking = [&]() -> Task<void> {
    for (;; ++ticks) co_await sleep_for(std::chrono::milliseconds(10));
  };
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    auto other = open_table(backend.path(), durable::detail::boot_clock());
    or_throw(other->begin());
    durable::TicketRequest wanted = request("resource", 1, kLong);
    TimePoint begun = now();
    auto [placed, never] = co_await any_of(all[0]->store->enqueue(wanted), ticking());
    EXPECT_TRUE(placed && !*placed && placed->error() == LockError::unreachable);
    EXPECT_GE(now() - begun, Connection::kBusyMax);
    EXPECT_LT(now() - begun, Connection::kBusyMax * 2);
    EXPECT_GT(ticks, 50);
    other->rollback();
    co_await all[0]->acquire(wanted);
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(one, body); };
  run(backend.loop, test());
}

// A lease begins when it is written, however long the file was locked before.
TEST(SqliteStore, WaitingForTheFileTakesNothingFromALease) {
  InFile backend;
  LockSessions one;
  one.push_back(std::make_unique<LockSession>(backend.make()));
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    auto other = open_table(backend.path(), durable::detail::boot_clock());
    or_throw(other->begin());
    durable::TicketRequest wanted = request("resource", 1, kLong);
    auto unlock_later = [&]() -> Task<void> {
      co_await sleep_for(std::chrono::seconds(1));
      other->rollback();
    };
    co_await all_of(all[0]->acquire(wanted), unlock_later());
    LockResult<std::vector<ResourceReport>> report = co_await all[0]->store->report("resource");
    EXPECT_GT(or_throw(report)[0].tickets[0].lease_left.count(), kLong - 800'000'000);
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(one, body); };
  run(backend.loop, test());
}

TEST(SqliteStore, AFullDiskIsAnsweredAndTheStoreGoesOn) {
  weft::testing::VirtualLoop loop;
  TemporaryDirectory directory;
  SqliteTable::Options options = table_options(directory.file("locks.db"));
  options.pages_max = 24;
  auto table = durable::detail::share_table(or_throw(SqliteTable::open(std::move(options))));
  LockSessions one;
  one.push_back(std::make_unique<LockSession>(
      std::make_unique<durable::detail::InlineStore>("sqlite:test", table)));
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    LockResult<Placed> placed;
    for (TicketNumber number = 1; number < 2000; ++number) {
      durable::TicketRequest wanted = request("resource", number, kLong);
      placed = co_await all[0]->store->enqueue(wanted);
      if (!placed) break;
    }
    EXPECT_TRUE(!placed && placed.error() == LockError::storage);
    LockResult<std::size_t> ended = co_await all[0]->store->revoke("resource");
    EXPECT_GT(or_throw(ended), 10u);
    durable::TicketRequest wanted = request("resource", 5000, kLong);
    co_await all[0]->acquire(wanted);
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(one, body); };
  run(loop, test());
}

TEST(SqliteStore, IsDestroyedWithoutClose) {
  InFile backend;
  auto test = [&]() -> Task<void> {
    LockSession session(backend.make());
    LockResult<> opened = co_await session.store->open(session);
    EXPECT_TRUE(opened);
  };
  run(backend.loop, test());
  EXPECT_EQ(files_in(backend.path() + "-wake"), 0u);
}

TEST(WakePipes, KnowTheDeadFromTheLiving) {
  TemporaryDirectory directory;
  std::string path = directory.write("locks.db", "");
  ::chmod(path.c_str(), 0640);
  WakePipes pipes(path);
  UniqueFd living = or_throw(pipes.open(0xabc));
  EXPECT_TRUE(pipes.is_alive(0xabc));
  char bytes[8];
  EXPECT_EQ(::read(living.get(), bytes, sizeof bytes), -1) << "asking is not waking";
  EXPECT_TRUE(pipes.wake(0xabc));
  EXPECT_TRUE(pipes.wake(0xabc));
  EXPECT_EQ(::read(living.get(), bytes, sizeof bytes), 2);
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(pipes.wake(0xabc));  // full, and still alive
  EXPECT_FALSE(pipes.is_alive(0xdef));

  struct stat made{};
  ASSERT_EQ(::stat(pipes.folder().c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0750u);
  ASSERT_EQ(::stat((pipes.folder() + "/abc").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0640u);

  living.reset();
  EXPECT_FALSE(pipes.wake(0xabc));
  EXPECT_EQ(files_in(pipes.folder()), 0u) << "noticed, so removed";
}

TEST(WakePipes, WhereTheFolderIsGoneNobodyIsDeadByThat) {
  TemporaryDirectory directory;
  WakePipes pipes(directory.write("locks.db", ""));
  UniqueFd living = or_throw(pipes.open(1));
  EXPECT_FALSE(pipes.is_alive(2));
  std::filesystem::remove_all(pipes.folder());
  EXPECT_TRUE(pipes.is_alive(1));
  EXPECT_TRUE(pipes.wake(1)) << "not told, but not dead";
  EXPECT_TRUE(pipes.is_alive(2)) << "nobody knows";
}

// A live waiter would be removed from the queue, and told that it was revoked.
TEST(SqliteStore, WhoWaitsKeepsItsPlaceWhenTheFolderOfPipesIsRemoved) {
  InFile backend;
  LockSessions two;
  for (int i = 0; i < 2; ++i) two.push_back(std::make_unique<LockSession>(backend.make()));
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    durable::TicketRequest wanted = request("resource", 1, kLong);
    TokenBlock held = co_await all[0]->acquire(wanted);
    LockResult<Placed> placed = co_await all[1]->store->enqueue(wanted);
    EXPECT_EQ(or_throw(placed).standing, Standing::queued);
    std::filesystem::remove_all(backend.path() + "-wake");
    LockResult<> released = co_await all[0]->store->release(1, held);
    EXPECT_TRUE(released);
    std::vector<TicketNumber> mine{1};
    LockResult<std::vector<TicketNumber>> gone = co_await all[1]->store->renew(mine);
    EXPECT_TRUE(or_throw(gone).empty());
    EXPECT_TRUE(all[1]->grants.contains(1));
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(two, body); };
  run(backend.loop, test());
}

TEST(WakePipes, WhoHasTooManyFilesOpenSaysSoOnceAndTakesNobodyForDead) {
  static int complaints = 0;
  complaints = 0;
  TemporaryDirectory directory;
  WakePipes pipes(directory.write("locks.db", ""));
  UniqueFd living = or_throw(pipes.open(1));
  auto count = [](LogLevel, std::string_view message) noexcept {
    if (message.find("limit of open files") != std::string_view::npos) ++complaints;
  };
  LogSink before = set_log_sink(count);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  rlimit none = limit;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_TRUE(pipes.wake(1));
  EXPECT_TRUE(pipes.is_alive(2));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  set_log_sink(before);
  EXPECT_EQ(complaints, 1);
  EXPECT_FALSE(pipes.is_alive(2));
}

TEST(WakePipes, OpenRemovesThoseOfTheDead) {
  TemporaryDirectory directory;
  WakePipes pipes(directory.write("locks.db", ""));
  for (SessionId session = 1; session <= 3; ++session) or_throw(pipes.open(session)).reset();
  UniqueFd living = or_throw(pipes.open(4));
  directory.write("locks.db-wake/new-5", "");  // somebody else is just making one
  UniqueFd another = or_throw(pipes.open(6));
  EXPECT_EQ(files_in(pipes.folder()), 3u);
  EXPECT_TRUE(pipes.is_alive(4));
  pipes.close(6);
  EXPECT_FALSE(pipes.is_alive(6)) << "said goodbye, though its end is open";
}

}  // namespace
}  // namespace weft::test
