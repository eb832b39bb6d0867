// SPDX-License-Identifier: MIT
#include "durable/sqlite/lock_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "weft/base/unique_fd.h"

namespace weft::inline v0::durable::detail {

namespace {

// Version 2.
//   meta       the next token, of all resources; the boot on whose clock the times are (nanoseconds of CLOCK_BOOTTIME).
//   resources  those in use: a row goes when its workflows have ended.
//   tickets    a resource's in the order of arrival, which is that of place: a new one has a greater place than any that is there.
//              token_count 0: it waits. since: enqueued, or granted.
//
// Every tree that a commit changes is a page or more to write. So a ticket is in two only: the table, in the order of its key, and by number.
constexpr const char* kSchema = R"(
  CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1), next_token INTEGER NOT NULL, boot_id TEXT NOT NULL);
  INSERT INTO meta VALUES (1, 1, '');
  CREATE TABLE resources (name TEXT PRIMARY KEY, capacity INTEGER NOT NULL) WITHOUT ROWID;
)";
constexpr const char* kTickets = R"(
  CREATE TABLE tickets (
    resource TEXT NOT NULL, place INTEGER NOT NULL, session INTEGER NOT NULL,
    number INTEGER NOT NULL, weight INTEGER NOT NULL, tokens_wanted INTEGER NOT NULL,
    lease INTEGER NOT NULL, ends INTEGER NOT NULL, since INTEGER NOT NULL,
    first_token INTEGER NOT NULL, token_count INTEGER NOT NULL, owner TEXT NOT NULL,
    PRIMARY KEY (resource, place)) WITHOUT ROWID;
  CREATE UNIQUE INDEX tickets_by_number ON tickets (session, number);
)";

// Version 1 had tickets by place alone, of all resources in one order, and two indices: the rest is the same.
constexpr std::uint32_t kFormerVersion = 1;
constexpr const char* kSetAside = R"(
  DROP INDEX tickets_by_resource;
  DROP INDEX tickets_by_number;
  ALTER TABLE tickets RENAME TO former_tickets;
)";
constexpr const char* kCarryOver = R"(
  INSERT INTO tickets (resource, place, session, number, weight, tokens_wanted, lease, ends, since,
                       first_token, token_count, owner)
    SELECT resource, place, session, number, weight, tokens_wanted, lease, ends, since,
           first_token, token_count, owner FROM former_tickets;
  DROP TABLE former_tickets;
)";
// How long a program of before, which has it open, is waited for.
constexpr std::chrono::milliseconds kUpgradeMax{500};

constexpr std::size_t kHeaderBytes = 100;  // https://www.sqlite.org/fileformat2.html, 1.3
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr std::size_t kVersionAt = 60;
constexpr std::size_t kIdAt = 68;

std::uint32_t big_endian(const unsigned char* at) noexcept {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         at[3];
}

[[noreturn]] void refuse(const Connection& file, const std::string& why) {
  throw LockError(LockError::mismatch, file.path() + ": " + why);
}

void check_version(const Connection& file, std::uint32_t id, std::uint32_t version) {
  if (id != kLockFileId) refuse(file, "another program's file; locks need one of their own");
  if (version == kLockFileVersion || version == kFormerVersion) return;
  refuse(file, "a lock file of version " + std::to_string(version) + ", and this library's is " +
                   std::to_string(kLockFileVersion) +
                   ": let all who use it be of one version. Another file would begin its tokens at "
                   "1, and every gate that has seen greater ones would refuse everybody: let those "
                   "begin anew with it");
}

std::uint32_t number_in(Connection& file, const char* sql) {
  return static_cast<std::uint32_t>(std::stoll(file.ask(sql)));
}

void set_version(Connection& file) {
  file.execute(("PRAGMA user_version = " + std::to_string(kLockFileVersion)).c_str());
}

// The first bytes, by the descriptor that SQLite has. (By another one its locks were lost when that is closed: those of a process
// on a file go with any of its descriptors.) No transaction begins, so a foreign file stays as it is.
struct Header {
  bool is_empty = false;
  bool is_whole = false;  // a database's
  std::uint32_t id = 0, version = 0;
};

Header header_of(const Connection& file) {
  sqlite3_file& raw = file.file();
  sqlite3_int64 size = 0;
  file.check(raw.pMethods->xFileSize(&raw, &size));
  if (size == 0) return {.is_empty = true};
  std::array<unsigned char, kHeaderBytes> bytes{};
  int code = raw.pMethods->xRead(&raw, bytes.data(), kHeaderBytes, 0);
  if (code == SQLITE_IOERR_SHORT_READ) return {};
  file.check(code);
  return {.is_whole = std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0,
          .id = big_endian(&bytes[kIdAt]),
          .version = big_endian(&bytes[kVersionAt])};
}

// Returns: whether the file is empty.
bool is_new(const Connection& file) {
  Header header = header_of(file);
  if (header.is_empty) return true;
  if (!header.is_whole) throw file.error(SQLITE_NOTADB);
  check_version(file, header.id, header.version);
  return false;
}

// In the journal mode that a file begins in, so that its first page says what it is before there is a log: is_new() does
// not read that.
void make(Connection& file) {
  file.execute("BEGIN EXCLUSIVE");
  std::uint32_t id = number_in(file, "PRAGMA application_id");
  if (id != 0) {  // somebody was faster
    file.execute("ROLLBACK");
    check_version(file, id, number_in(file, "PRAGMA user_version"));
    return;
  }
  file.execute(kSchema);
  file.execute(kTickets);
  file.execute(("PRAGMA application_id = " + std::to_string(kLockFileId)).c_str());
  set_version(file);
  file.execute("COMMIT");
}

// SQLite asks no busy handler here: it needs the file for itself, once.
void use_log(Connection& file) {
  auto end = std::chrono::steady_clock::now() + Connection::kBusyMax;
  while (true) {
    try {
      std::string mode = file.ask("PRAGMA journal_mode = WAL");
      if (mode == "wal") return;
      throw LockError(LockError::storage, file.path() +
                                              ": SQLite can keep no write-ahead log here, only '" +
                                              mode + "': the file must be on a local file system");
    } catch (const LockError& error) {
      if (error != LockError::unreachable || std::chrono::steady_clock::now() >= end) throw;
    }
    std::this_thread::sleep_for(Connection::kBusyPauseMax);
  }
}

void check_whole(Connection& file) {
  std::string found = file.ask("PRAGMA quick_check(1)");
  if (found == "ok") return;
  throw LockError(LockError::storage,
                  std::string(file.error(SQLITE_CORRUPT).what()) + " (" + found + ")");
}

// A file leaves its log only for who has it alone. So nobody of before is in the midst of it, who would take the tickets for
// others; and the first page says at once what the file is now.
// Returns: false if somebody else has made it what it is to be.
bool have_it_alone(Connection& file) {
  auto end = std::chrono::steady_clock::now() + kUpgradeMax;
  while (number_in(file, "PRAGMA user_version") == kFormerVersion) {
    try {
      if (file.ask("PRAGMA journal_mode = DELETE") == "delete") return true;
    } catch (const LockError& error) {
      if (error != LockError::unreachable) throw;
    }
    if (std::chrono::steady_clock::now() >= end) {
      refuse(
          file,
          "a lock file of version 1 that is in use by a program of before: end those, and the next "
          "to come makes it one of version " +
              std::to_string(kLockFileVersion) + ", with its tokens and tickets");
    }
    std::this_thread::sleep_for(Connection::kBusyPauseMax);
  }
  return false;
}

// Those who come to upgrade a file do so one after the other. A connection that has read anything of a file with a log keeps all
// others from having it alone, for as long as it is open: so two who had come that far would wait for each other. It is a
// lock of the folder, which leaves nothing behind.
class Turn {
 public:
  explicit Turn(const Connection& file) {
    std::filesystem::path folder = std::filesystem::path(file.path()).parent_path();
    if (folder.empty()) folder = ".";
    folder_.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto end = std::chrono::steady_clock::now() + Connection::kBusyMax;
    while (!folder_ || ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) {
      int code = errno;
      if (code != EWOULDBLOCK && code != EINTR) {
        throw LockError(LockError::storage,
                        folder.string() + ": cannot be locked to make " + file.path() +
                            " a file of this version: " + std::generic_category().message(code));
      }
      if (std::chrono::steady_clock::now() >= end) throw file.error(SQLITE_BUSY);
      std::this_thread::sleep_for(Connection::kBusyPauseMax);
    }
  }

 private:
  UniqueFd folder_;
};

// Tokens go on, whoever waits or holds has its place and its lease.
void upgrade(Connection& file) {
  while (true) {
    if (!have_it_alone(file)) return;
    file.execute("BEGIN EXCLUSIVE");
    // One of before may have opened it in between, and begun its log anew, in which nobody is excluded.
    if (file.ask("PRAGMA journal_mode") == "delete") break;
    file.execute("ROLLBACK");
  }
  if (number_in(file, "PRAGMA user_version") == kFormerVersion) {
    check_whole(file);
    file.execute(kSetAside);
    file.execute(kTickets);
    file.execute(kCarryOver);
    set_version(file);
  }
  file.execute("COMMIT");
}

}  // namespace

std::unique_ptr<Connection> open_lock_file(const std::string& path, std::function<void()> step) {
  auto file = std::make_unique<Connection>(path, std::move(step));
  file->checkpoint_at_close(false);  // a file that is refused below is not written to
  // Before anything else: most of what SQLite is asked, settings too, begins with the file's schema.
  std::optional<Turn> turn;
  if (Header header = header_of(*file);
      header.id == kLockFileId && header.version == kFormerVersion) {
    turn.emplace(*file);
  }
  file->execute("PRAGMA synchronous = FULL");
  // A commit writes whole pages, a few of them, to the log: small ones cost a quarter.
  file->execute("PRAGMA page_size = 1024");
  // Who died while he made it has left a first page, and a journal that takes it back as soon as anything is asked.
  if (is_new(*file) || file->ask("PRAGMA application_id") == "0") make(*file);
  upgrade(*file);
  turn.reset();
  use_log(*file);
  check_whole(*file);
  file->checkpoint_at_close(true);
  // Each 4 MB of log are written back; after a burst it is cut off at twice as much.
  file->execute("PRAGMA wal_autocheckpoint = 4000");
  file->execute("PRAGMA journal_size_limit = 8388608");
  return file;
}

std::unique_ptr<Connection> open_to_look(const std::string& path, Connection::ReadOnly how) {
  auto file = std::make_unique<Connection>(path, how);
  if (is_new(*file) || file->ask("PRAGMA application_id") == "0") return nullptr;
  check_whole(*file);
  return file;
}

}  // namespace weft::inline v0::durable::detail
