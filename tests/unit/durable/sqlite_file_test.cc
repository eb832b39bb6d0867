// SPDX-License-Identifier: MIT
// The lock file: versions do not mix, what is damaged is left as it is, a disk may be full, and tokens rise for ever.
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "durable/sqlite/lock_file.h"
#include "support/lock_tables.h"
#include "support/temporary_directory.h"

namespace {

using namespace weft;
using namespace weft::test;
using durable::detail::Connection;
using durable::detail::kLockFileVersion;

constexpr std::size_t kPage = 1024;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Refused so, in words that hold `word`; and not a byte is another.
void expect_refused(const std::string& path, LockError::Kind kind, const std::string& word) {
  std::string before = bytes_of(path);
  LockResult<std::unique_ptr<SqliteTable>> opened = SqliteTable::open(table_options(path));
  ASSERT_FALSE(opened) << path;
  EXPECT_EQ(opened.error().kind(), kind) << opened.error().what();
  EXPECT_NE(std::string(opened.error().what()).find(word), std::string::npos)
      << opened.error().what();
  EXPECT_TRUE(bytes_of(path) == before) << "it was written to";
}

struct SqliteFile : ::testing::Test {
  TemporaryDirectory directory;
  std::string path = directory.file("locks.db");

  // A file with something in it, closed.
  void fill(int tickets = 200) {
    auto table = open_table(path);
    ASSERT_TRUE(table->begin());
    for (int i = 1; i <= tickets; ++i) {
      std::string resource = "resource " + std::to_string(i % 50);
      ASSERT_TRUE(table->enqueue(1, request(resource, static_cast<unsigned>(i)), 0));
    }
    ASSERT_TRUE(table->commit(true));
  }
};

TEST_F(SqliteFile, AnotherVersionIsRefused) {
  fill();
  for (std::uint32_t version : {0u, kLockFileVersion + 1}) {
    std::string theirs = std::to_string(version), ours = std::to_string(kLockFileVersion);
    {
      Connection file(path);
      file.execute(("PRAGMA user_version = " + theirs).c_str());
    }
    expect_refused(path, LockError::mismatch,
                   "version " + theirs + ", and this library's is " + ours);
    expect_refused(path, LockError::mismatch, "Another file would begin its tokens at 1");
  }
}

TEST_F(SqliteFile, OneOfVersion1GoesOnWithItsTokensAndTickets) {
  make_version_1(path);
  {
    auto table = open_table(path, 10);
    EXPECT_EQ(text_of(table->state(1)), "1 granted 990+10, ");
    EXPECT_EQ(text_of(table->state(2)), "1 waits 0+0, expire at 1000");
    EXPECT_EQ(text_of(table->state(3)), "1 granted 980+5, ");
    EXPECT_EQ(or_throw(table->enqueue(4, request("new", 1), 10)).tokens.first, 1000u);
    ASSERT_TRUE(table->release(1, 1, {990, 10}, 20));
    EXPECT_EQ(or_throw(table->state(2)).tickets[0].tokens.first, 1001u);
    LockResult<Placed> other = table->enqueue(5, request("shared", 2), 20);
    EXPECT_TRUE(!other && other.error() == LockError::mismatch) << "its capacity is 3";
    expect_sound(*table, 20);
  }
  Connection file(path);
  EXPECT_EQ(file.ask("PRAGMA user_version"), std::to_string(kLockFileVersion));
  EXPECT_EQ(file.ask("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%former%'"), "0");
}

TEST_F(SqliteFile, OneOfVersion1ThatIsInUseIsLeftToItsUsers) {
  make_version_1(path);
  Connection theirs(path);
  ASSERT_EQ(theirs.ask("SELECT next_token FROM meta"), "1000");
  expect_refused(path, LockError::mismatch, "in use by a program of before");
  EXPECT_EQ(theirs.ask("PRAGMA user_version"), "1");
  EXPECT_EQ(theirs.ask("SELECT count(*) FROM tickets"), "3");
}

TEST_F(SqliteFile, SeveralAtOnceMakeItOneOfThisVersion) {
  make_version_1(path);
  std::vector<std::thread> threads;
  std::vector<LockResult<Placed>> placed(4);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    threads.emplace_back([&, i] {
      LockResult<std::unique_ptr<SqliteTable>> table = SqliteTable::open(table_options(path));
      if (!table) {
        placed[i] = std::unexpected(table.error());
        return;
      }
      placed[i] = (*table)->enqueue(i + 10, request("new " + std::to_string(i), 1), 0);
    });
  }
  for (std::thread& each : threads) each.join();
  for (const LockResult<Placed>& each : placed) {
    ASSERT_TRUE(each) << each.error().what();
    EXPECT_GE(each->tokens.first, 1000u);
  }
}

TEST_F(SqliteFile, AnotherProgramsFileIsRefused) {
  {
    Connection file(path);
    file.execute("CREATE TABLE theirs (a)");
  }
  expect_refused(path, LockError::mismatch, "another program's file");
  {
    Connection file(path);
    static_cast<void>(file.ask("PRAGMA journal_mode = WAL"));
    file.execute("INSERT INTO theirs VALUES (1)");
    file.checkpoint_at_close(false);
  }
  std::string log = bytes_of(path + "-wal");
  EXPECT_FALSE(log.empty());
  expect_refused(path, LockError::mismatch, "another program's file");
  EXPECT_TRUE(bytes_of(path + "-wal") == log);
}

TEST_F(SqliteFile, WhatIsNoDatabaseIsRefused) {
  std::string text = "Dear diary,\n";
  expect_refused(directory.write("short", text), LockError::storage, "no lock file");
  while (text.size() < 10'000) text += text;
  expect_refused(directory.write("long", text), LockError::storage, "no lock file");
  EXPECT_FALSE(std::filesystem::exists(directory.file("long-wal")));
}

TEST_F(SqliteFile, ADamagedFileIsRefused) {
  fill();
  std::string whole = bytes_of(path);
  ASSERT_GT(whole.size(), 20'000u);
  for (std::size_t kept : {std::size_t{50}, kPage, whole.size() / 2, whole.size() - kPage}) {
    expect_refused(directory.write("cut" + std::to_string(kept), whole.substr(0, kept)),
                   LockError::storage, "damaged");
  }
  for (std::size_t at = kPage; at + kPage <= whole.size(); at += kPage) {
    std::string garbage = whole;
    garbage.replace(at, 512, std::string(512, '\x5a'));
    expect_refused(directory.write("garbage" + std::to_string(at), garbage), LockError::storage,
                   "damaged");
  }
}

TEST_F(SqliteFile, ADamagedLogLosesWhatCameAfterAndNoMore) {
  auto table = open_table(path);
  ASSERT_TRUE(table->enqueue(1, request("resource", 1), 0));
  std::string name = directory.file("copy.db");
  std::filesystem::copy_file(path, name);
  std::string log = bytes_of(path + "-wal");
  log.resize(log.size() - 100);
  directory.write("copy.db-wal", log);
  auto copy = open_table(name);
  EXPECT_TRUE(or_throw(copy->report({}, 0)).empty());
  expect_sound(*copy, 0);
}

TEST_F(SqliteFile, AFullDiskIsAnErrorAndNothingHappens) {
  fill(1);
  SqliteTable::Options options = table_options(path);
  options.pages_max = 24;
  auto table = or_throw(SqliteTable::open(std::move(options)));
  std::string before;
  LockResult<Placed> placed;
  for (TicketNumber number = 2; number < 2000; ++number) {
    before = text_of(table->report({}, 0));
    placed = table->enqueue(1, request("resource", number), 0);
    if (!placed) break;
  }
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error(), LockError::storage);
  EXPECT_NE(std::string(placed.error().what()).find("full"), std::string::npos);
  EXPECT_NE(std::string(placed.error().what()).find("make room"), std::string::npos);
  EXPECT_EQ(text_of(table->report({}, 0)), before);
  expect_sound(*table, 0);
  // What makes room goes on.
  EXPECT_EQ(or_throw(table->revoke("resource", 0)) > 10, true);
  EXPECT_TRUE(table->enqueue(1, request("resource", 5000), 0));
}

// One call of a commit fails: none of them has happened, and every one says so.
TEST_F(SqliteFile, AFullDiskFailsTheWholeCommit) {
  fill(1);
  SqliteTable::Options options = table_options(path);
  options.pages_max = 24;
  auto table = or_throw(SqliteTable::open(std::move(options)));
  std::string before = text_of(table->report({}, 0));
  ASSERT_TRUE(table->begin());
  ASSERT_TRUE(table->enqueue(1, request("first", 2), 0));
  LockResult<Placed> placed;
  for (TicketNumber number = 3; number < 2000; ++number) {
    placed = table->enqueue(1, request("resource", number), 0);
    if (!placed) break;
  }
  ASSERT_FALSE(placed);
  LockResult<bool> later = table->retire("nothing", 0);
  EXPECT_TRUE(!later && later.error() == LockError::storage)
      << "the rest of the commit is lost too";
  LockResult<> committed = table->commit(true);
  EXPECT_TRUE(!committed && committed.error() == LockError::storage);
  table->rollback();
  EXPECT_EQ(text_of(table->report({}, 0)), before);
}

// A write that the system refuses in the midst, as a disk does that is full.
TEST_F(SqliteFile, AWriteThatFailsIsAnErrorAndNothingHappens) {
  fill();
  auto table = open_table(path);
  std::string before = text_of(table->report({}, 0));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  rlimit small = limit;
  small.rlim_cur = std::filesystem::file_size(path + "-wal") + 2000;
  ::setrlimit(RLIMIT_FSIZE, &small);
  LockResult<Placed> placed = table->enqueue(2, request("resource", 7), 0);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_DFL);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error(), LockError::storage) << placed.error().what();
  EXPECT_EQ(text_of(table->report({}, 0)), before);
  EXPECT_TRUE(table->enqueue(2, request("resource", 7), 0)) << "there is room again";
}

// A disk that takes writes and fails to keep them. The commit is there, but nobody may rely on it: and by then the kernel
// has forgotten which pages it could not write, so a later sync says nothing.
namespace failing_sync {

bool fails = false;
int (*sync)(sqlite3_file*, int) = nullptr;

int sync_or_fail(sqlite3_file* file, int flags) {
  return fails ? SQLITE_IOERR_FSYNC : sync(file, flags);
}
int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
  static sqlite3_io_methods methods;
  sqlite3_vfs* below = sqlite3_vfs_find("unix");
  int code = below->xOpen(below, name, file, flags, out);
  if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL)) {
    methods = *file->pMethods;
    sync = methods.xSync;
    methods.xSync = &sync_or_fail;
    file->pMethods = &methods;
  }
  return code;
}

}  // namespace failing_sync

TEST_F(SqliteFile, ASyncThatFailsIsTheEndOfTheTable) {
  sqlite3_vfs vfs = *sqlite3_vfs_find("unix");
  vfs.zName = "failing-sync";
  vfs.xOpen = &failing_sync::open;
  sqlite3_vfs_register(&vfs, 1);
  auto table = open_table(path);
  ASSERT_TRUE(table->enqueue(1, request("resource", 1), 0));
  failing_sync::fails = true;
  EXPECT_TRUE(table->enqueue(2, request("resource", 1), 0)) << "it waits: no sync is needed";
  TokenBlock held = or_throw(table->state(1)).tickets[0].tokens;
  LockResult<> released = table->release(1, 1, held, 0);  // grants the next
  EXPECT_TRUE(!released && released.error() == LockError::storage);
  EXPECT_TRUE(table->take_told().empty());
  failing_sync::fails = false;
  LockResult<Placed> later = table->enqueue(3, request("another", 1), 0);
  EXPECT_TRUE(!later && later.error() == LockError::storage);
  // To others this process might as well be dead.
  auto other = open_table(path);
  EXPECT_TRUE(or_throw(other->state(2)).tickets[0].granted);
  expect_sound(*other, 0);
  table.reset();
  other.reset();
  sqlite3_vfs_unregister(&vfs);
}

// Everything may be written by root.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() == 0) was_root_ = ::seteuid(65534) == 0;
  }
  ~AsNobody() {
    if (was_root_) static_cast<void>(::seteuid(0) == 0);
  }

 private:
  bool was_root_ = false;
};

TEST_F(SqliteFile, WhatMayNotBeWrittenIsRefused) {
  fill();
  ::chmod(directory.path().c_str(), 0555);
  ::chmod(path.c_str(), 0444);
  {
    AsNobody nobody;
    expect_refused(path, LockError::storage, "must be writable");
    expect_refused(directory.file("new.db"), LockError::storage, "must be there");
  }
  ::chmod(directory.path().c_str(), 0755);
  EXPECT_FALSE(std::filesystem::exists(directory.file("new.db")));
  expect_refused(directory.file("no/such/folder.db"), LockError::storage, "must be there");
}

// Whoever comes then uses another file, and is not kept out by what is held in this one.
TEST_F(SqliteFile, AFileThatIsRemovedOrReplacedUnderItsUsersIsTheEndOfTheTable) {
  auto remove_all = [&] {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  };
  std::function<void()> remove = [&] { remove_all(); };
  std::function<void()> replace = [&] {
    remove_all();
    static_cast<void>(open_table(path));
  };
  std::function<void()> rename = [&] { std::filesystem::rename(path, directory.file("moved.db")); };
  for (const auto& happens : {remove, replace, rename}) {
    remove_all();
    auto table = open_table(path);
    ASSERT_TRUE(table->enqueue(1, request("resource", 1), 0));
    ASSERT_TRUE(or_throw(table->renew(1, {1}, 1)).empty());
    happens();
    LockResult<std::vector<TicketNumber>> renewed = table->renew(1, {1}, 2);
    ASSERT_FALSE(renewed);
    EXPECT_EQ(renewed.error(), LockError::storage);
    EXPECT_NE(std::string(renewed.error().what()).find("removed or replaced"), std::string::npos)
        << renewed.error().what();
    LockResult<Placed> placed = table->enqueue(2, request("another", 2), 3);
    EXPECT_TRUE(!placed && placed.error() == LockError::storage) << "and so for good";
  }
}

// Whoever has the old one leaves what belongs to the new one alone.
TEST_F(SqliteFile, WhoHasTheOldFileDoesNotHarmTheNewOne) {
  auto table = open_table(path);
  ASSERT_TRUE(table->enqueue(1, request("resource", 1), 0));
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  auto other = open_table(path);
  ASSERT_TRUE(other->enqueue(2, request("resource", 1), 0));
  EXPECT_FALSE(table->renew(1, {1}, 1));
  table.reset();
  EXPECT_TRUE(std::filesystem::exists(path + "-wal"));
  auto third = open_table(path);
  EXPECT_TRUE(or_throw(third->state(2)).tickets[0].granted);
  expect_sound(*third, 0);
}

TEST_F(SqliteFile, AfterABootLeasesBeginAnewInFull) {
  {
    auto table = open_table(path, 1'000'000);
    ASSERT_TRUE(table->enqueue(1, request("resource", 1, 500), 1'000'000));
    ASSERT_TRUE(table->enqueue(2, request("resource", 1, 700), 1'000'100));
  }
  {
    auto same_boot = open_table(path, 1'000'300);
    std::vector<ResourceReport> report = or_throw(same_boot->report({}, 1'000'300));
    EXPECT_EQ(report[0].tickets[0].lease_left.count(), 200);
  }
  SqliteTable::Options options = table_options(path, 20);
  options.boot_id = "another boot";
  auto table = or_throw(SqliteTable::open(options));
  std::vector<ResourceReport> report = or_throw(table->report({}, 20));
  ASSERT_EQ(report[0].tickets.size(), 2u);
  EXPECT_TRUE(report[0].tickets[0].granted);
  EXPECT_EQ(report[0].tickets[0].lease_left.count(), 500);
  EXPECT_EQ(report[0].tickets[1].lease_left.count(), 700);
  EXPECT_EQ(report[0].tickets[1].age.count(), 0);
  TokenBlock tokens = or_throw(table->enqueue(3, request("another", 1), 20)).tokens;
  EXPECT_EQ(tokens.first, 2 + SqliteTable::kTokensSkippedByBoot);
  // Once per boot.
  options.now = 120;
  auto again = or_throw(SqliteTable::open(options));
  EXPECT_EQ(or_throw(again->report("resource", 120))[0].tickets[0].lease_left.count(), 400);
  tokens = or_throw(again->enqueue(3, request("a third", 2), 120)).tokens;
  EXPECT_EQ(tokens.first, 3 + SqliteTable::kTokensSkippedByBoot);
}

TEST_F(SqliteFile, TokensRiseAcrossRetirementAndReopening) {
  std::uint64_t next = 1;
  for (int round = 1; round <= 20; ++round) {
    auto table = open_table(path);
    TicketRequest asked = request("resource", static_cast<unsigned>(round));
    asked.tokens = 5;
    Placed placed = or_throw(table->enqueue(1, asked, 0));
    EXPECT_GE(placed.tokens.first, next);
    next = placed.tokens.first + placed.tokens.count;
    ASSERT_TRUE(table->release(1, asked.number, placed.tokens, 0));
    EXPECT_TRUE(or_throw(table->retire("resource", 0)));
  }
}

// A SIGKILL would leave the log as it is: so does this.
TEST_F(SqliteFile, TokensRiseAcrossACrash) {
  auto table = open_table(path);
  Placed placed = or_throw(table->enqueue(1, request("resource", 1), 0));
  for (const char* end : {"", "-wal"}) {
    std::filesystem::copy_file(path + end, directory.file("copy.db") + end);
  }
  auto copy = open_table(directory.file("copy.db"));
  EXPECT_EQ(text_of(copy->report({}, 0)), text_of(table->report({}, 0)));
  Placed next = or_throw(copy->enqueue(2, request("another", 1), 0));
  EXPECT_GT(next.tokens.first, placed.tokens.first);
}

// What kill -9 leaves of a semaphore is not in the way of one with other permits for ever.
TEST_F(SqliteFile, WhatNobodyUsesIsForgottenWhenTheFileIsOpened) {
  {
    auto table = open_table(path);
    ASSERT_TRUE(table->join("unused", 3, 0));
    TicketRequest asked = request("held", 1);
    asked.lease = std::chrono::nanoseconds(100);
    ASSERT_TRUE(table->enqueue(1, asked, 0));
  }
  SqliteTable::Options options = table_options(path);
  options.now = 99;
  {
    auto table = or_throw(SqliteTable::open(options));
    std::vector<ResourceReport> left = or_throw(table->report({}, 99));
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].resource, "held");
    EXPECT_TRUE(table->join("unused", 4, 99));
    EXPECT_FALSE(table->join("held", 4, 99)) << "its lease has not ended";
  }
  options.now = 100;
  auto table = or_throw(SqliteTable::open(options));
  EXPECT_TRUE(or_throw(table->report({}, 100)).empty());
  EXPECT_TRUE(table->join("held", 4, 100));
}

TEST_F(SqliteFile, RevokeForgetsTheResource) {
  auto table = open_table(path);
  ASSERT_TRUE(table->join("resource", 3, 0));
  EXPECT_EQ(or_throw(table->revoke("resource", 0)), 0u);
  EXPECT_TRUE(table->join("resource", 4, 0));
}

TEST_F(SqliteFile, ManyAcquisitionsLeaveNoMoreThanTen) {
  auto table = open_table(path);
  auto acquire = [&](TicketNumber first, TicketNumber last) {
    for (TicketNumber number = first; number <= last;) {
      ASSERT_TRUE(table->begin());
      for (int i = 0; i < 50; ++i, ++number) {
        Placed placed = or_throw(table->enqueue(number, request("resource", number), 0));
        ASSERT_EQ(placed.standing, Standing::granted);
        ASSERT_TRUE(table->release(number, number, placed.tokens, 0));
      }
      ASSERT_TRUE(table->commit(false));
    }
  };
  acquire(1, 50);
  static_cast<void>(or_throw(table->retire("resource", 0)));
  auto size = std::filesystem::file_size(path);
  acquire(51, 10'000);
  static_cast<void>(or_throw(table->retire("resource", 0)));
  EXPECT_LE(std::filesystem::file_size(path + "-wal"), 9u << 20);
  table.reset();
  EXPECT_LE(std::filesystem::file_size(path), size + 8 * kPage);
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
}

TEST_F(SqliteFile, TheDeadAreSkippedAtTheirTurnAndHoldersAreNot) {
  std::vector<SessionId> dead{2, 3, 5};
  SqliteTable::Options options = table_options(path);
  options.is_alive = [&](SessionId session) {
    return std::ranges::find(dead, session) == dead.end();
  };
  auto table = or_throw(SqliteTable::open(options));
  std::vector<SessionId> all{1, 2, 3, 4, 5};
  for (SessionId session : all) ASSERT_TRUE(table->enqueue(session, request("resource", 1), 0));
  dead.push_back(1);
  ASSERT_TRUE(table->expire(4, 999));
  EXPECT_FALSE(or_throw(table->state(4)).tickets[0].granted) << "a holder has its lease";
  ASSERT_TRUE(table->expire(4, 1000));
  EXPECT_TRUE(or_throw(table->state(4)).tickets.empty()) << "its own had ended, too";

  dead = {2, 3};
  for (SessionId session : all) {
    ASSERT_TRUE(table->enqueue(session, request("another", 2, 5000), 2000));
  }
  TokenBlock held = or_throw(table->state(1)).tickets[0].tokens;
  ASSERT_TRUE(table->release(1, 2, held, 2001));
  EXPECT_TRUE(or_throw(table->state(4)).tickets[0].granted);
  EXPECT_TRUE(or_throw(table->state(2)).tickets.empty());
  EXPECT_TRUE(or_throw(table->state(3)).tickets.empty());
  EXPECT_FALSE(or_throw(table->state(5)).tickets[0].granted);
}

// Several at once make one file.
TEST_F(SqliteFile, IsMadeOnce) {
  std::vector<std::thread> threads;
  std::vector<LockResult<Placed>> placed(4);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    threads.emplace_back([&, i] {
      LockResult<std::unique_ptr<SqliteTable>> table = SqliteTable::open(table_options(path));
      if (!table) {
        placed[i] = std::unexpected(table.error());
        return;
      }
      placed[i] = (*table)->enqueue(i + 1, request("resource", 1), 0);
    });
  }
  for (std::thread& each : threads) each.join();
  std::size_t granted = 0;
  for (const LockResult<Placed>& each : placed) {
    ASSERT_TRUE(each) << each.error().what();
    granted += each->standing == Standing::granted;
  }
  EXPECT_EQ(granted, 1u);
}

// Whoever made it was killed in the midst of the commit: the first page says what it is to be, the journal takes that back.
TEST_F(SqliteFile, WhatWasMadeByHalfIsMadeAnew) {
  {
    std::string source = directory.file("other.db");
    Connection file(source);
    file.execute("BEGIN EXCLUSIVE");
    file.execute("CREATE TABLE meta (id INTEGER)");
    file.execute(
        ("PRAGMA application_id = " + std::to_string(durable::detail::kLockFileId)).c_str());
    file.execute(("PRAGMA user_version = " + std::to_string(kLockFileVersion)).c_str());
    ASSERT_EQ(sqlite3_db_cacheflush(file.raw()), SQLITE_OK);
    std::filesystem::copy_file(source, path);
    std::filesystem::copy_file(source + "-journal", path + "-journal");
    file.execute("ROLLBACK");
  }
  ASSERT_GT(std::filesystem::file_size(path), 0u);
  LockResult<std::unique_ptr<SqliteTable>> table = SqliteTable::open(table_options(path));
  ASSERT_TRUE(table) << table.error().what();
  EXPECT_TRUE((*table)->enqueue(1, request("resource", 1), 0));
}

}  // namespace
