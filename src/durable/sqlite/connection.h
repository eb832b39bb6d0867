// SPDX-License-Identifier: MIT
#pragma once
// One connection to a SQLite file, and its statements. What fails is thrown as LockError: SqliteTable's calls catch it.
//
//     Statement find(connection, "SELECT number FROM tickets WHERE session = ?");
//     for (Cursor row = find.with(session); row.next();) use(row.integer(0));
//     insert.run(session, number);
//
// Threads        one at a time.
// Errors         LockError::unreachable: another process has kept the file locked for kBusyMax. storage: all the rest.
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weft/durable/lock_error.h"

struct sqlite3;
struct sqlite3_file;
struct sqlite3_stmt;

namespace weft::inline v0::durable::detail {

class Connection {
 public:
  static constexpr std::chrono::milliseconds kBusyMax{5000};
  static constexpr std::chrono::microseconds kBusyPauseMax{1000};

  // Opens the file, or makes an empty one. Nothing is read yet. `step`, where given, is called before and after all that is
  // done to the file: tests end the process there.
  explicit Connection(std::string path, std::function<void()> step = {});
  // Opens the file if there is one, and cannot write to it. unused: takes no lock, and does without SQLite's files beside it. Requires
  // then: nobody writes to it, or what is read is thrown away.
  enum ReadOnly { read_only, unused };
  Connection(std::string path, ReadOnly how);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Statements without rows and parameters, one after the other.
  void execute(const char* sql);
  // The only value of the first row: a PRAGMA's.
  [[nodiscard]] std::string ask(const char* sql);
  [[nodiscard]] bool in_transaction() const noexcept;
  // Whether its path still names the file that was opened. If not, it was removed or replaced, and who comes now uses another one.
  [[nodiscard]] bool is_in_place() const noexcept;
  // Its file, and the log beside it.
  [[nodiscard]] sqlite3_file& file() const;
  [[nodiscard]] sqlite3_file& journal() const;
  // Whether the last connection that goes writes the log into the file.
  void checkpoint_at_close(bool wanted);

  void check(int code) const {
    if (code != 0) throw error(code);
  }
  [[nodiscard]] LockError error(int code) const;
  // What is to be said if it is not in place.
  [[nodiscard]] LockError removed() const;
  void step() const {
    if (step_) step_();
  }
  [[nodiscard]] sqlite3* raw() const noexcept { return raw_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* raw) const noexcept;
  };
  // SQLite's own one sleeps for up to 100 ms, ten times as long as the file is ever locked for.
  static int busy(void* self, int times) noexcept;
  void open(const std::string& name, int flags);
  [[nodiscard]] sqlite3_file& file_by(int control) const;

  std::string path_;
  std::function<void()> step_;
  std::unique_ptr<sqlite3, Close> raw_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::chrono::steady_clock::time_point busy_since_;
};

class Cursor;

class Statement {
 public:
  Statement(Connection& connection, const char* sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Its rows. One Cursor at a time.
  template <class... Values>
  [[nodiscard]] Cursor with(const Values&... values);
  // To its end, whatever rows it has.
  template <class... Values>
  void run(const Values&... values);

 private:
  friend class Cursor;
  struct Finalize {
    void operator()(sqlite3_stmt* raw) const noexcept;
  };
  void bind(int at, std::int64_t value);
  void bind(int at, std::uint64_t value) { bind(at, static_cast<std::int64_t>(value)); }
  void bind(int at, std::uint32_t value) { bind(at, static_cast<std::int64_t>(value)); }
  // Requires: the text outlives the Cursor.
  void bind(int at, const std::string& value);
  [[nodiscard]] bool step();
  void reset() noexcept;

  Connection& connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> raw_;
};

class Cursor {
 public:
  explicit Cursor(Statement& statement) noexcept : statement_(statement) {}
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  ~Cursor() { statement_.reset(); }

  // Returns: whether there is another row. The first comes by the first call.
  [[nodiscard]] bool next() { return statement_.step(); }
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string text(int column) const;

 private:
  Statement& statement_;
};

template <class... Values>
Cursor Statement::with(const Values&... values) {
  int at = 0;
  (bind(++at, values), ...);
  return Cursor(*this);
}

template <class... Values>
void Statement::run(const Values&... values) {
  Cursor cursor = with(values...);
  while (cursor.next()) {
  }
}

}  // namespace weft::inline v0::durable::detail
