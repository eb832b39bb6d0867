// SPDX-License-Identifier: MIT
#include "child.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/log.h"

namespace weft::inline v0::detail {

namespace {

// Close-on-exec by definition. Not in glibc 2.35 and before.
UniqueFd open_pidfd(pid_t pid) noexcept {
#ifdef SYS_pidfd_open
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
#else
  return UniqueFd();
#endif
}

// Returns: 0, and info says how it ended, with si_pid 0 if it has not; or the errno.
int wait_id(pid_t pid, siginfo_t& info, int flags) noexcept {
  for (;;) {
    info.si_pid = 0;
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | flags) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

class Reaper {
 public:
  // Never destroyed: its thread may outlive main().
  static Reaper& instance() {
    static auto* reaper = new Reaper;
    return *reaper;
  }

  void add(pid_t pid) {
    std::lock_guard lock(mutex_);
    left_.push_back(pid);
    if (running_) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { run(); }).detach();
      running_ = true;
    } catch (const std::exception&) {
      log(LogLevel::warning,
          "weft: no thread to collect a child process with; the next that is dropped tries again");
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!left_.empty()) {
      pid_t pid = left_.back();
      left_.pop_back();
      lock.unlock();
      siginfo_t info;
      static_cast<void>(wait_id(pid, info, 0));  // ECHILD: somebody else has
      lock.lock();
    }
    running_ = false;
  }

  std::mutex mutex_;
  std::vector<pid_t> left_;
  bool running_ = false;
};

}  // namespace

void Child::begin(pid_t pid, const ProcessOptions& options) noexcept {
  pid_ = pid;
  own_group_ = options.own_group;
  if (options.use_pidfd) pidfd_ = open_pidfd(pid);
}

Child::~Child() {
  WEFT_ASSERT(!has_waiter, "a Process outlives the wait for its end");
  if (pid_ == 0 || try_collect()) return;
  static_cast<void>(kill(SIGKILL));
  if (!try_collect()) collect_later(pid_);
}

std::optional<Result<ExitStatus>> Child::try_collect() noexcept {
  if (status_) return status_;
  siginfo_t info;
  if (int error = wait_id(pid_, info, WNOHANG)) {
    status_.emplace(std::unexpected(std::error_code(error, std::system_category())));
  } else if (info.si_pid == 0) {
    return std::nullopt;
  } else if (info.si_code == CLD_EXITED) {
    status_.emplace(ExitStatus::exited(info.si_status));
  } else {
    status_.emplace(ExitStatus::killed(info.si_status));
  }
  pidfd_.reset();
  return status_;
}

// P1: not collected, and so the number is this child's.
Result<void> Child::kill(int signal) noexcept {
  int error = ESRCH;
  if (!status_) error = ::kill(own_group_ ? -pid_ : pid_, signal) == 0 ? 0 : errno;
  if (error) return std::unexpected(std::error_code(error, std::system_category()));
  return {};
}

void collect_later(pid_t pid) noexcept {
  try {
    Reaper::instance().add(pid);
  } catch (const std::bad_alloc&) {
    siginfo_t info;
    static_cast<void>(wait_id(pid, info, 0));  // it was killed, and so this takes not long
  }
}

}  // namespace weft::inline v0::detail
