// SPDX-License-Identifier: MIT
#include "durable/sqlite/sqlite_look.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "durable/sqlite/lock_file.h"
#include "durable/sqlite/sqlite_store.h"
#include "durable/sqlite/sqlite_writer.h"
#include "weft/io/blocking.h"

namespace weft::inline v0::durable::detail {

namespace {

constexpr int kQuietReadsMax = 3;

LockResult<StoreView> read_by(const std::string& path, Connection::ReadOnly how,
                              const std::optional<std::string>& resource) {
  LockResult<std::string> boot = boot_id();
  if (!boot) return std::unexpected(boot.error());
  try {
    std::unique_ptr<Connection> file = open_to_look(path, how);
    if (!file) return StoreView{};
    file->execute("BEGIN");
    bool boot_is_past = file->ask("SELECT boot_id FROM meta") != *boot;
    return StoreView{true, ReportReader(*file).read(resource, boot_clock(), boot_is_past)};
  } catch (const LockError& error) {
    return std::unexpected(error);
  }
}

// What changes with every commit that reaches the file. Empty: it is being used, or there is none.
std::optional<std::array<std::int64_t, 4>> quiet_state(const std::string& path) {
  struct stat file{}, other{};
  for (const char* beside : {"-wal", "-journal"}) {
    if (::stat((path + beside).c_str(), &other) == 0 || errno != ENOENT) return std::nullopt;
  }
  if (::stat(path.c_str(), &file) != 0) return std::nullopt;
  return std::array<std::int64_t, 4>{static_cast<std::int64_t>(file.st_ino), file.st_size,
                                     file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
}

// A file that nobody has open is read without SQLite's files beside it, which would be made, and be ours: others might not be
// able to write to them. If somebody has come meanwhile, what was read is not to be relied on.
LockResult<StoreView> read_file(const std::string& path,
                                const std::optional<std::string>& resource) {
  struct stat named{};
  if (::stat(path.c_str(), &named) != 0 && errno == ENOENT) return StoreView{false, {}};
  for (int reads = 0; reads < kQuietReadsMax; ++reads) {
    auto before = quiet_state(path);
    if (!before) break;
    LockResult<StoreView> seen = read_by(path, Connection::unused, resource);
    if (quiet_state(path) == before) return seen;
  }
  return read_by(path, Connection::read_only, resource);
}

}  // namespace

std::vector<ResourceReport> ReportReader::read(const std::optional<std::string>& resource,
                                               std::int64_t now, bool boot_is_past) {
  using std::chrono::nanoseconds;
  std::vector<ResourceReport> all;
  for (Cursor row = resources_.with(); row.next();) {
    ResourceReport one{row.text(0), static_cast<std::uint32_t>(row.integer(1)), {}};
    if (!resource || *resource == one.resource) all.push_back(std::move(one));
  }
  for (ResourceReport& one : all) {
    for (Cursor row = tickets_.with(one.resource); row.next();) {
      nanoseconds age(now - row.integer(4)), left(row.integer(5) - now);
      if (boot_is_past) {
        age = nanoseconds(0);
        left = nanoseconds(row.integer(6));
      }
      one.tickets.push_back({row.text(0), row.integer(1) > 0,
                             static_cast<std::uint64_t>(row.integer(2)),
                             static_cast<std::uint32_t>(row.integer(3)), age, left});
    }
  }
  return all;
}

Task<LockResult<StoreView>> look_at_file(std::string url, std::optional<std::string> resource) {
  LockResult<std::string> path = path_in(url);
  if (!path) co_return std::unexpected(path.error());
  auto read = [&] { return read_file(*path, resource); };
  co_return co_await blocking(read);
}

}  // namespace weft::inline v0::durable::detail
