// SPDX-License-Identifier: MIT
#pragma once
// The thread of a session on a lock file. SQLite blocks; so it alone opens the file, takes all calls that have come in the
// meantime, carries them out in one commit (so that one sync is for all of them), and wakes whom they concern.
//
// Threads        opened.wait(), ended.wait(): a loop. All others: any thread.
//
// Invariants
//   W1  a call that was submitted is carried out or refused, before ended is set.
//   W2  the session's pipe is there before its first ticket is, and gone before ended is set.
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "durable/sqlite/wake_pipes.h"
#include "durable/table_store.h"
#include "weft/atomic/atomic.h"
#include "weft/base/unique_fd.h"
#include "weft/sync/event.h"

namespace weft::inline v0::durable::detail {

// Nanoseconds of CLOCK_BOOTTIME: of all processes, and it goes on in suspend.
[[nodiscard]] std::int64_t boot_clock();
// Another one after each boot.
[[nodiscard]] LockResult<std::string> boot_id();

class SqliteWriter {
 public:
  // Of one commit, so that other processes get their turn.
  static constexpr std::size_t kCallsMax = 256;
  // To be woken takes half as long as a commit: if the last call has come so soon, it looks for the next one so long before it sleeps.
  static constexpr std::int64_t kSpinNs = 100'000;

  // std::system_error if there is no thread to be had.
  SqliteWriter(std::string path, SessionId session);
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;
  // Waits for the thread: stop(), and ended.wait() where that must not block.
  ~SqliteWriter();

  Event opened{"a lock file being opened"};
  // After opened, once: the pipe that the session is woken by; or why there is no file.
  [[nodiscard]] LockResult<UniqueFd> take_opened() { return std::move(pipe_); }

  void submit(TableCall& call);
  // Takes no more calls, and ends when it has done those it has.
  void stop();
  Event ended{"a lock file being closed"};

 private:
  void run() noexcept;
  [[nodiscard]] LockResult<UniqueFd> open();
  // Returns: nothing, if it is to end.
  [[nodiscard]] std::vector<TableCall*> take();
  void spin() const noexcept;

  const std::string path_;
  const SessionId session_;
  LockResult<UniqueFd> pipe_;  // the thread's until opened

  // The thread's own.
  std::unique_ptr<LockTable> table_;
  std::optional<WakePipes> pipes_;  // with the table
  std::uint64_t commits_ = 0;
  bool spins_ = false;

  // Calls, or stop(): a hint for spin().
  ::weft::detail::Atomic<bool> has_work_{false};
  std::mutex mutex_;  // guards all that follows
  std::condition_variable came_;
  std::vector<TableCall*> calls_;
  bool stopped_ = false;

  std::thread thread_;  // the last: it uses all of the others
};

}  // namespace weft::inline v0::durable::detail
