// SPDX-License-Identifier: MIT
#include "durable/sqlite/wake_pipes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "weft/base/log.h"

namespace weft::inline v0::durable::detail {

namespace {

// A pipe gets its name when it is open: so one that nobody reads is never that of a session about to begin. Until then:
constexpr std::string_view kUnborn = "new-";
constexpr std::chrono::minutes kUnbornMax{1};

std::unexpected<LockError> failed(const std::string& path) {
  return std::unexpected(
      LockError(LockError::storage, path + ": " + std::generic_category().message(errno) +
                                        ": the lock file's folder must be writable for this user"));
}

// Returns: 0 if it is none.
SessionId session_in(std::string_view name) noexcept {
  SessionId session = 0;
  const char* end = name.data() + name.size();
  auto [rest, error] = std::from_chars(name.data(), end, session, 16);
  return error == std::errc() && rest == end ? session : 0;
}

std::string name_of(SessionId session) {
  char text[16];
  auto [end, error] = std::to_chars(text, text + sizeof text, session, 16);
  return std::string(text, end);
}

bool is_folder(const std::string& path) noexcept {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

WakePipes::WakePipes(std::string lock_file)
    : lock_file_(std::move(lock_file)), folder_(lock_file_ + "-wake") {}

std::string WakePipes::path_of(SessionId session) const { return folder_ + "/" + name_of(session); }

LockResult<UniqueFd> WakePipes::open(SessionId session) {
  struct stat file{};
  if (::stat(lock_file_.c_str(), &file) != 0) return failed(lock_file_);
  mode_t mode = file.st_mode & 0666;
  if (::mkdir(folder_.c_str(), 0700) == 0) {
    ::chmod(folder_.c_str(),
            mode | (mode & 0444) >> 2);  // who may read the file may search the folder
  } else if (errno != EEXIST) {
    return failed(folder_);
  }
  std::string unborn = folder_ + "/" + std::string(kUnborn) + name_of(session);
  if (::mkfifo(unborn.c_str(), 0600) != 0) return failed(unborn);
  // For writing too: so it never comes to its end when the last writer goes.
  UniqueFd end(::open(unborn.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!end || ::fchmod(end.get(), mode) != 0 ||
      ::rename(unborn.c_str(), path_of(session).c_str()) != 0) {
    std::unexpected<LockError> error = failed(unborn);
    ::unlink(unborn.c_str());
    return error;
  }
  remove_dead();
  return end;
}

void WakePipes::close(SessionId session) noexcept { ::unlink(path_of(session).c_str()); }

bool WakePipes::reach(SessionId session, bool wake) const noexcept {
  std::string path = path_of(session);
  UniqueFd end(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (end) {
    // EAGAIN: it has bytes enough to be woken by. EPIPE: it died just now.
    if (wake) static_cast<void>(::write(end.get(), "!", 1) == 1);
    return true;
  }
  int why = errno;
  if (why == ENXIO) ::unlink(path.c_str());  // session numbers are never used again
  if (why == ENOENT) return !is_folder(folder_);
  if ((why == EMFILE || why == ENFILE) && !std::exchange(has_complained_, true)) complain(why);
  return why != ENXIO;
}

void WakePipes::complain(int why) const noexcept {
  log(LogLevel::warning,
      "weft: durable: " + lock_file_ +
          ": another process could not be told: " + std::generic_category().message(why) +
          ": it hears of it later, with its next renewal. Raise the limit of open files");
}

void WakePipes::remove_dead() const {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end;
       at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.starts_with(kUnborn)) {
      struct stat file{};
      if (::stat(at->path().c_str(), &file) != 0) continue;
      auto made = std::chrono::system_clock::from_time_t(file.st_mtime);
      if (std::chrono::system_clock::now() - made > kUnbornMax) ::unlink(at->path().c_str());
    } else if (SessionId session = session_in(name)) {
      static_cast<void>(is_alive(session));
    }
  }
}

}  // namespace weft::inline v0::durable::detail
