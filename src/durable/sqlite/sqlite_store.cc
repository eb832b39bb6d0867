// SPDX-License-Identifier: MIT
#include "durable/sqlite/sqlite_store.h"

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "durable/sqlite/sqlite_writer.h"
#include "weft/core/combinators.h"
#include "weft/core/shield.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::durable::detail {

namespace {

constexpr std::string_view kScheme = "sqlite:";
constexpr std::chrono::milliseconds kPauseAfterTrouble{200};

std::unexpected<LockError> bad_url(std::string_view url, const char* why) {
  return std::unexpected(LockError(
      LockError::invalid, "'" + std::string(url) + "': " + why +
                              ": write sqlite:///absolute/path/locks.db, or sqlite:locks.db"));
}

}  // namespace

LockResult<std::string> path_in(std::string_view url) {
  if (!url.starts_with(kScheme)) return bad_url(url, "the scheme is not sqlite");
  std::string_view path = url.substr(kScheme.size());
  if (path.starts_with("//")) {
    path.remove_prefix(2);
    if (!path.starts_with('/')) return bad_url(url, "a file has no host");
  }
  if (path.empty() || path.ends_with('/')) return bad_url(url, "it names no file");
  if (path.find('\0') != std::string_view::npos) return bad_url(url, "a zero byte in the path");
  std::error_code error;
  // An absolute path means the same after a chdir(), and is none of SQLite's special names (":memory:").
  std::filesystem::path absolute = std::filesystem::absolute(std::filesystem::path(path), error);
  if (error) return bad_url(url, "the working directory is gone");
  return absolute.string();
}

LockResult<std::unique_ptr<LockStore>> make_sqlite_store(std::string_view url) {
  LockResult<std::string> path = path_in(url);
  if (!path) return std::unexpected(path.error());
  return std::make_unique<SqliteStore>(std::string(url), std::move(*path));
}

SqliteStore::SqliteStore(std::string url, std::string path)
    : TableStore(std::move(url)), path_(std::move(path)) {}

SqliteStore::~SqliteStore() = default;

std::int64_t SqliteStore::lease_clock() const { return boot_clock(); }

Task<LockResult<>> SqliteStore::open(Listener& listener) {
  static_cast<void>(co_await TableStore::open(listener));
  try {
    writer_ = std::make_unique<SqliteWriter>(path_, session());
  } catch (const std::system_error& error) {
    co_return std::unexpected(
        LockError(LockError::storage, path_ + ": no thread for it: " + error.code().message()));
  }
  co_await noncancellable(writer_->opened.wait());
  LockResult<UniqueFd> pipe = writer_->take_opened();
  if (!pipe) {
    co_await close();
    co_return std::unexpected(pipe.error());
  }
  pipe_ = Descriptor(std::move(*pipe));
  co_return LockResult<>();
}

Task<void> SqliteStore::run() { co_await all_of(TableStore::run(), listen()); }

Task<void> SqliteStore::listen() {
  std::array<std::byte, 64> bytes;  // what they are does not matter
  while (true) {
    Result<std::size_t> count = co_await pipe_.read(bytes);
    if (!count) co_await sleep_for(kPauseAfterTrouble);
    wake();
  }
}

Task<void> SqliteStore::close() {
  if (!writer_) co_return;
  writer_->stop();
  co_await noncancellable(writer_->ended.wait());
  writer_.reset();
  pipe_.close();
}

void SqliteStore::submit(TableCall& call) {
  if (writer_) {
    writer_->submit(call);
  } else {
    call.fail(LockError(LockError::withdrawn, path_ + " is not open"));
    call.done.set();
  }
}

}  // namespace weft::inline v0::durable::detail
