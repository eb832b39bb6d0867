// SPDX-License-Identifier: MIT
#include "output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "command.h"

namespace weft::tool {

namespace {

// Of a pipe that poll() says has room, what it takes without waiting (pipe(7)).
constexpr std::size_t kRoomBytes = PIPE_BUF;
constexpr int kLookMilliseconds = 50;  // how often a write that waits asks whether it should

std::string last_error() { return std::system_category().message(errno); }

[[noreturn]] void fail_there_already(const std::string& path) {
  throw Failure("'" + path +
                "' is there already: choose another name, or overwrite it with --force");
}

// Of a file that is created. To be asked while there are no other threads: it can only be read by being changed.
mode_t usual_mode() {
  mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// Also one that has come there meanwhile is not replaced. Returns: false, and errno says why.
bool rename_unless_there(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // A file system that cannot. Nor does a link replace anything.
  if (::link(from.c_str(), to.c_str()) != 0) return false;
  ::unlink(from.c_str());
  return true;
}

}  // namespace

Output::Output(const std::optional<std::string>& path, bool overwrite) : overwrite_(overwrite) {
  if (!path || *path == "-") {
    struct stat status{};
    may_wait_ = ::fstat(fd_, &status) == 0 && !S_ISREG(status.st_mode);
    return;
  }
  path_ = *path;
  struct stat status{};
  bool is_there = ::stat(path_.c_str(), &status) == 0;
  if (is_there && S_ISDIR(status.st_mode))
    throw Failure("'" + path_ + "' is a directory: name a file in it");
  if (is_there && S_ISREG(status.st_mode) && !overwrite) fail_there_already(path_);
  if (is_there && !S_ISREG(status.st_mode)) {
    owned_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    may_wait_ = true;
  } else {
    temporary_ = path_ + ".XXXXXX.part";
    owned_ = UniqueFd(::mkostemps(temporary_.data(), 5, O_CLOEXEC));
    if (!owned_) temporary_.clear();
    mode_ = usual_mode();
  }
  if (!owned_) throw Failure("cannot write '" + path_ + "': " + last_error());
  fd_ = owned_.get();
}

Output::~Output() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

bool Output::is_terminal() const noexcept { return ::isatty(fd_) == 1; }

bool Output::wait_for_room(StopToken stop) const {
  pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
  while (!stop.stop_requested()) {
    if (::poll(&room, 1, kLookMilliseconds) != 0)
      return true;  // also if it failed: write() says why
  }
  return false;
}

void Output::write(std::span<const std::byte> bytes, StopToken stop) {
  while (!bytes.empty()) {
    if (may_wait_ && !wait_for_room(stop)) return;
    ssize_t count =
        ::write(fd_, bytes.data(), may_wait_ ? std::min(bytes.size(), kRoomBytes) : bytes.size());
    // EAGAIN: somebody who shares our standard output has it so that it does not wait.
    if (count < 0 && (errno == EINTR || (errno == EAGAIN && may_wait_))) continue;
    if (count < 0) {
      throw Failure("cannot write " + (path_.empty() ? "to standard output" : "'" + path_ + "'") +
                    ": " + last_error());
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void Output::keep() {
  if (temporary_.empty()) return;
  bool done = ::fchmod(fd_, mode_) == 0;
  if (done && overwrite_) {
    done = ::rename(temporary_.c_str(), path_.c_str()) == 0;
  } else if (done) {
    done = rename_unless_there(temporary_, path_);
    if (!done && errno == EEXIST) fail_there_already(path_);
  }
  if (!done) throw Failure("cannot name what was fetched '" + path_ + "': " + last_error());
  temporary_.clear();
}

}  // namespace weft::tool
