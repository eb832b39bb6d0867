// SPDX-License-Identifier: MIT
#include "durable/sqlite/sqlite_writer.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "durable/sqlite/sqlite_table.h"
#include "weft/atomic/pause.h"
#include "weft/base/steady_clock.h"

namespace weft::inline v0::durable::detail {

namespace {

using ::weft::detail::pause_processor;
using ::weft::detail::relaxed;
using ::weft::detail::steady_ns;

// Signals are for the threads that asked for them. SIGPIPE too: a session may die while it is being woken.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// A thread inherits the processors of its maker, which may be a pinned worker; the first thread's are the process's.
void use_all_processors() noexcept {
  cpu_set_t all;
  if (::sched_getaffinity(::getpid(), sizeof all, &all) == 0) {
    ::sched_setaffinity(0, sizeof all, &all);
  }
}

}  // namespace

std::int64_t boot_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

LockResult<std::string> boot_id() {
  static constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  std::string id;
  std::ifstream(kPath) >> id;
  if (!id.empty()) return id;
  return std::unexpected(LockError(
      LockError::storage,
      std::string(kPath) + " cannot be read: without it a lease cannot be told from one of before "
                           "the last boot. Is /proc mounted?"));
}

SqliteWriter::SqliteWriter(std::string path, SessionId session)
    : path_(std::move(path)), session_(session) {
  NoSignals inherited;
  thread_ = std::thread([this] { run(); });
}

SqliteWriter::~SqliteWriter() {
  stop();
  thread_.join();
}

LockResult<UniqueFd> SqliteWriter::open() {
  LockResult<std::string> boot = boot_id();
  if (!boot) return std::unexpected(boot.error());
  SqliteTable::Options options;
  options.path = path_;
  options.now = boot_clock();
  options.boot_id = std::move(*boot);
  options.is_alive = [this](SessionId session) {
    return session == session_ || pipes_->is_alive(session);
  };
  LockResult<std::unique_ptr<SqliteTable>> table = SqliteTable::open(std::move(options));
  if (!table) return std::unexpected(table.error());
  table_ = std::move(*table);
  // Beside the file itself, as SQLite's log is, whichever links have led us there. After it, because of its permissions.
  std::error_code error;
  std::filesystem::path file = std::filesystem::canonical(path_, error);
  if (error) return std::unexpected(LockError(LockError::storage, path_ + ": " + error.message()));
  pipes_.emplace(file.string());
  return pipes_->open(session_);
}

void SqliteWriter::run() noexcept {
  use_all_processors();
  pipe_ = open();
  if (!pipe_) stop();
  opened.set();
  for (std::vector<TableCall*> calls = take(); !calls.empty(); calls = take()) {
    std::vector<SessionId> told = carry_out(*table_, calls, &boot_clock, ++commits_);
    std::ranges::sort(told);
    auto twice = std::ranges::unique(told);
    told.erase(twice.begin(), twice.end());
    for (SessionId session : told) pipes_->wake(session);
  }
  if (pipes_) pipes_->close(session_);
  table_.reset();
  ended.set();
}

void SqliteWriter::spin() const noexcept {
  static const bool pays = std::thread::hardware_concurrency() > 1;
  if (!pays) return;
  std::int64_t end = steady_ns() + kSpinNs;
  while (!has_work_.load(relaxed) && steady_ns() < end) pause_processor();
}

std::vector<TableCall*> SqliteWriter::take() {
  std::int64_t since = steady_ns();
  if (spins_) spin();
  std::unique_lock lock(mutex_);
  came_.wait(lock, [&] { return stopped_ || !calls_.empty(); });
  spins_ = steady_ns() - since < kSpinNs;
  has_work_.store(stopped_ || calls_.size() > kCallsMax, relaxed);
  if (calls_.size() <= kCallsMax) return std::exchange(calls_, {});
  auto end = calls_.begin() + kCallsMax;
  std::vector<TableCall*> first(calls_.begin(), end);
  calls_.erase(calls_.begin(), end);
  return first;
}

void SqliteWriter::submit(TableCall& call) {
  bool stopped;
  {
    std::lock_guard lock(mutex_);
    stopped = stopped_;
    if (!stopped) {
      calls_.push_back(&call);
      has_work_.store(true, relaxed);
    }
  }
  if (!stopped) return came_.notify_one();
  call.fail(LockError(LockError::withdrawn, path_ + " is closed"));
  call.done.set();
}

void SqliteWriter::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  has_work_.store(true, relaxed);
  came_.notify_one();
}

}  // namespace weft::inline v0::durable::detail
