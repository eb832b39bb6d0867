// SPDX-License-Identifier: MIT
#include "weft/sync/lock_book.h"

#include <cstddef>
#include <mutex>

#include "weft/core/executor.h"

namespace weft::inline v0::detail {

namespace {

constexpr std::size_t kShards = 16;

struct Shard {
  std::mutex mutex;
  IntrusiveList<LockEntry, LockEntry> entries;
};

// Never destroyed: a lock with static storage may end after it would.
union Shards {
  Shards() : all() {}
  ~Shards() {}
  Shard all[kShards];
};

Shard* shards() {
  static Shards forever;
  return forever.all;
}

Shard& shard_of(const LockEntry& entry) {
  const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&entry));
  return shards()[bits * 0x9e3779b97f4a7c15u >> 60];
}

}  // namespace

void LockEntry::enter_book() noexcept {
  Shard& shard = shard_of(*this);
  std::lock_guard lock(shard.mutex);
  if (entered_.load(relaxed)) return;
  entered_.store(true, relaxed);
  shard.entries.push_back(*this);
}

void LockEntry::leave() noexcept {
  std::lock_guard lock(shard_of(*this).mutex);
  unlink();
}

std::vector<LockReport> lock_waits_here() {
  const HomeIndex home = Executor::current_or_null()->home();
  std::vector<LockReport> waits;
  for (std::size_t i = 0; i < kShards; ++i) {
    Shard& shard = shards()[i];
    std::lock_guard lock(shard.mutex);
    for (LockEntry& each : shard.entries) each.collect_(each, home, waits);
  }
  return waits;
}

}  // namespace weft::inline v0::detail
