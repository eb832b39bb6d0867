// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "arguments.h"
#include "lock.h"

namespace weft::tool {

namespace {

constexpr const char* kVariable = "WEFT_LOCK_ENGINE";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

constexpr const char* kInstead = ": name another place with --engine";

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return;
  throw Failure("cannot make '" + path + "': " + std::system_category().message(errno) + kInstead,
                kNoEngine);
}

// In /tmp anybody could have been there first, with a folder or a link to one.
void check_own(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    throw Failure("cannot look at '" + path + "': " + std::system_category().message(errno),
                  kNoEngine);
  }
  if (!S_ISDIR(status.st_mode)) throw Failure("'" + path + "' is no folder" + kInstead, kNoEngine);
  if (status.st_uid != ::geteuid())
    throw Failure("'" + path + "' is somebody else's" + kInstead, kNoEngine);
  if ((status.st_mode & 0077) != 0) {
    throw Failure(
        "'" + path + "' is open to others: chmod 700 it, or name another place with --engine",
        kNoEngine);
  }
}

// sudo and containers may leave us somebody else's, or one that is not there: what root made there its owner could not use.
bool is_own_folder(const std::string& path) {
  struct stat status{};
  return path.starts_with('/') && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

// Where state is kept that outlives a logout and a boot, by the XDG Base Directory Specification: the tokens must, and a job of
// cron, which has no XDG_RUNTIME_DIR, has to meet what is started at a terminal. Without a home, what is left is a
// place that others clean up.
std::string own_folder(bool make) {
  if (std::string state = environment("XDG_STATE_HOME"); state.starts_with('/')) {
    if (make) make_folder(state);
    return state + "/weft";
  }
  if (std::string home = environment("HOME"); is_own_folder(home)) {
    for (const char* part : {"/.local", "/state"}) {
      home += part;
      if (make) make_folder(home);
    }
    return home + "/weft";
  }
  std::string runtime = environment("XDG_RUNTIME_DIR");
  return runtime.starts_with('/') ? runtime + "/weft" : "/tmp/weft-" + std::to_string(::geteuid());
}

std::string own_file(bool make) {
  std::string folder = own_folder(make);
  if (make) make_folder(folder);
  struct stat status{};
  if (make || ::lstat(folder.c_str(), &status) == 0) check_own(folder);
  return folder + "/locks.db";
}

}  // namespace

std::string lock_engine(const std::optional<std::string>& given, OwnFile own) {
  std::string url = given.value_or(environment(kVariable));
  if (url.empty()) url = own_file(own == OwnFile::made);
  if (url.starts_with('/')) url.insert(0, "sqlite://");
  if (url.starts_with("memory:")) {
    throw BadUsage("weft lock: '" + url +
                   "' is of one process, and so keeps nobody out: name a file, or etcd");
  }
  return url;
}

std::string lock_engine_help() {
  return "where locks are kept: a file, sqlite:///FILE or etcd://HOST:PORT/PREFIX ($" +
         std::string(kVariable) + ", or a file of this user's)";
}

void fail(const durable::LockError& error, const std::string& name) {
  using durable::LockError;
  std::string what = error.what();
  what.erase(0, what.find(": ") + 2);  // its kind
  switch (error.kind()) {
    case LockError::invalid:
      throw BadUsage("weft lock: " + what);
    case LockError::busy:
      throw Failure(what + ": weft lock show '" + name + "' says by whom", kBusy);
    case LockError::timeout:
      throw Failure(what + ": weft lock show '" + name + "' says why; --timeout gives it more",
                    kNotInTime);
    case LockError::lost:
      throw Failure("the lock was lost while the command ran: " + what, kLockLost);
    case LockError::revoked:
      throw Failure(what, kLockLost);
    default:
      throw Failure(what, kNoEngine);
  }
}

}  // namespace weft::tool
