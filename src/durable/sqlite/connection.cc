// SPDX-License-Identifier: MIT
#include "durable/sqlite/connection.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0::durable::detail {

static_assert(SQLITE_VERSION_NUMBER >= 3037000, "weft: the lock engine needs SQLite 3.37 or later");

namespace {

const char* advice(int code) noexcept {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "make room on the disk, or raise the limit; the file is as it was";
    case SQLITE_CANTOPEN:
      return "its folder must be there, and both be writable for this user";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "the file and its folder must be writable for this user";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "the file is damaged or no lock file, and was left as it is. Move it away, with its "
             "-wal, and the next to come "
             "makes another; its tokens begin at 1, so let every gate begin anew too";
    default:
      return "see the disk, and the system's log";
  }
}

// Characters that mean something in a file: URL (https://www.sqlite.org/uri.html).
std::string escaped(const std::string& path) {
  std::string text;
  for (char each : path) {
    if (each == '%') {
      text += "%25";
    } else if (each == '?') {
      text += "%3f";
    } else if (each == '#') {
      text += "%23";
    } else {
      text += each;
    }
  }
  return text;
}

}  // namespace

void Connection::Close::operator()(sqlite3* raw) const noexcept { sqlite3_close_v2(raw); }
void Statement::Finalize::operator()(sqlite3_stmt* raw) const noexcept { sqlite3_finalize(raw); }

Connection::Connection(std::string path, std::function<void()> step)
    : path_(std::move(path)), step_(std::move(step)) {
  open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Connection::Connection(std::string path, ReadOnly how) : path_(std::move(path)) {
  if (how == read_only) {
    open(path_, SQLITE_OPEN_READONLY);
  } else {
    open("file:" + escaped(path_) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  }
}

void Connection::open(const std::string& name, int flags) {
  sqlite3* raw = nullptr;
  flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  int code = sqlite3_open_v2(name.c_str(), &raw, flags, nullptr);
  raw_.reset(raw);
  check(code);
  sqlite3_busy_handler(raw, &busy, this);
  // SQLite keeps its descriptor to itself, but says whether the path is still that of the file that it has.
  struct stat named{};
  int moved = 1;
  if (::stat(path_.c_str(), &named) == 0) {
    check(sqlite3_file_control(raw, "main", SQLITE_FCNTL_HAS_MOVED, &moved));
  }
  if (moved != 0) throw removed();
  device_ = named.st_dev;
  inode_ = named.st_ino;
}

bool Connection::is_in_place() const noexcept {
  struct stat named{};
  return ::stat(path_.c_str(), &named) == 0 && named.st_dev == device_ && named.st_ino == inode_;
}

LockError Connection::removed() const {
  return LockError(
      LockError::storage,
      path_ +
          ": the lock file was removed or replaced; what is held in it is lost when its lease "
          "ends, "
          "and who opens it now excludes only others who do. Open the engine again. If it is a new "
          "file, its tokens begin at 1, so let every gate begin anew too");
}

int Connection::busy(void* self, int times) noexcept {
  auto& connection = *static_cast<Connection*>(self);
  auto now = std::chrono::steady_clock::now();
  if (times == 0) connection.busy_since_ = now;
  if (now - connection.busy_since_ >= kBusyMax) return 0;
  auto pause = std::min<std::chrono::microseconds>(std::chrono::microseconds(50) * (times + 1),
                                                   kBusyPauseMax);
  std::this_thread::sleep_for(pause);
  return 1;
}

void Connection::execute(const char* sql) {
  step();
  check(sqlite3_exec(raw(), sql, nullptr, nullptr, nullptr));
  step();
}

std::string Connection::ask(const char* sql) {
  Statement statement(*this, sql);
  Cursor row = statement.with();
  return row.next() ? row.text(0) : std::string();
}

bool Connection::in_transaction() const noexcept { return sqlite3_get_autocommit(raw()) == 0; }

sqlite3_file& Connection::file_by(int control) const {
  sqlite3_file* found = nullptr;
  check(sqlite3_file_control(raw(), "main", control, &found));
  WEFT_ASSERT(found && found->pMethods, "SQLite has opened it");
  return *found;
}
sqlite3_file& Connection::file() const { return file_by(SQLITE_FCNTL_FILE_POINTER); }
sqlite3_file& Connection::journal() const { return file_by(SQLITE_FCNTL_JOURNAL_POINTER); }

void Connection::checkpoint_at_close(bool wanted) {
  check(sqlite3_db_config(raw(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, wanted ? 0 : 1, nullptr));
}

LockError Connection::error(int code) const {
  if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED) {
    return LockError(LockError::unreachable, path_ +
                                                 ": another process has kept the file locked for " +
                                                 std::to_string(kBusyMax.count() / 1000) + " s");
  }
  std::string text = path_ + ": " + sqlite3_errstr(code & 0xff);
  if (raw() && sqlite3_extended_errcode(raw()) == code) {
    text = path_ + ": " + sqlite3_errmsg(raw());
    if (int system = sqlite3_system_errno(raw()); system != 0) {
      text += " (" + std::generic_category().message(system) + ")";
    }
  }
  return LockError(LockError::storage, text + ": " + advice(code));
}

Statement::Statement(Connection& connection, const char* sql) : connection_(connection) {
  sqlite3_stmt* raw = nullptr;
  int code =
      sqlite3_prepare_v3(connection.raw(), sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  raw_.reset(raw);
  connection.check(code);
}

void Statement::bind(int at, std::int64_t value) {
  connection_.check(sqlite3_bind_int64(raw_.get(), at, value));
}
void Statement::bind(int at, const std::string& value) {
  connection_.check(
      sqlite3_bind_text64(raw_.get(), at, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

bool Statement::step() {
  connection_.step();
  int code = sqlite3_step(raw_.get());
  connection_.step();
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  throw connection_.error(code);
}

void Statement::reset() noexcept {
  sqlite3_reset(raw_.get());  // says once more what step() has said
}

std::int64_t Cursor::integer(int column) const {
  return sqlite3_column_int64(statement_.raw_.get(), column);
}
std::string Cursor::text(int column) const {
  sqlite3_stmt* raw = statement_.raw_.get();
  const unsigned char* text = sqlite3_column_text(raw, column);
  auto length = static_cast<std::size_t>(sqlite3_column_bytes(raw, column));
  return text ? std::string(reinterpret_cast<const char*>(text), length) : std::string();
}

}  // namespace weft::inline v0::durable::detail
