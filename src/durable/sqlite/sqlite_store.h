// SPDX-License-Identifier: MIT
#pragma once
// The engine sqlite:///path/locks.db: a file that the processes of one machine share.
//
// Needs a loop with I/O. A call costs one commit on the session's own thread, together with whatever else was asked meanwhile;
// the loop never waits. News of other processes come by a pipe (wake_pipes.h), in well under a millisecond.
//
// The file, SQLite's two (-wal, -shm) and the folder of pipes (-wake) are made beside each other: on a local file system,
// writable for all who use it. They must not be moved or removed while somebody does.
//
// A process that is stopped in the midst of a commit (SIGSTOP, a debugger) keeps the file locked: the others' calls end as
// unreachable, after Connection::kBusyMax each, until it goes on or is killed. That is some tens of microseconds of each call.
#include <memory>
#include <string>
#include <string_view>

#include "durable/table_store.h"
#include "weft/io/descriptor.h"

namespace weft::inline v0::durable::detail {

class SqliteWriter;

class SqliteStore final : public TableStore {
 public:
  SqliteStore(std::string url, std::string path);
  // Blocks for as long as a commit takes, unless close() was awaited. Requires: no call is under way.
  ~SqliteStore() override;

  Task<LockResult<>> open(Listener& listener) override;
  Task<void> run() override;
  Task<void> close() override;

 private:
  void submit(TableCall& call) override;
  [[nodiscard]] std::int64_t lease_clock() const override;
  // Reads the bytes that others write.
  [[nodiscard]] Task<void> listen();

  std::string path_;
  std::unique_ptr<SqliteWriter> writer_;  // from open() to close()
  Descriptor pipe_;
};

// "sqlite:///absolute/path", "sqlite:relative/path": from the working directory of now. Characters stand for themselves.
// LockError::invalid: it is neither.
[[nodiscard]] LockResult<std::unique_ptr<LockStore>> make_sqlite_store(std::string_view url);
// The absolute path in such a URL.
[[nodiscard]] LockResult<std::string> path_in(std::string_view url);

}  // namespace weft::inline v0::durable::detail
