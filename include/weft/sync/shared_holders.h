// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::SharedHolders: who shares a lock, for those who look for deadlocks. The lock itself only
// counts them.
//
// Who comes in notes itself in a place of its own, if one of the kNotedMax is free, and takes its name
// back before it leaves. So a name that stands there is that of one who is inside.
//
// Threads        any: whoever has a place writes it; everybody reads.
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <vector>

#include "weft/atomic/atomic.h"
#include "weft/sync/lock_holder.h"

namespace weft::inline v0::detail {

class SharedHolders {
 public:
  using Place = std::uint8_t;
  static constexpr Place kNotedMax = 8;  // more than that many share it unseen
  static constexpr Place kNowhere = kNotedMax;

  // Returns: its place; or kNowhere, if all are taken or it is no task.
  [[nodiscard]] Place note(const LockHolder::Who& who) noexcept {
    if (!who.task) return kNowhere;
    for (Place i = 0; i < kNotedMax; ++i) {
      const void* nobody = nullptr;
      // relaxed, all of them: as LockHolder.
      if (places_[i].task.load(relaxed) == nullptr &&
          places_[i].task.compare_exchange_strong(nobody, who.task, relaxed)) {
        places_[i].at.store(who.at, relaxed);
        return i;
      }
    }
    return kNowhere;
  }
  void forget(Place place) noexcept {
    if (place != kNowhere) places_[place].task.store(nullptr, relaxed);
  }
  [[nodiscard]] std::vector<LockHolder::Who> all() const {
    std::vector<LockHolder::Who> found;
    for (const Noted& each : places_) {
      if (const void* task = each.task.load(relaxed))
        found.push_back({task, each.at.load(relaxed)});
    }
    return found;
  }

 private:
  struct Noted {
    Atomic<const void*> task{nullptr};
    Atomic<std::source_location> at{std::source_location()};
  };
  Noted places_[kNotedMax];
};

}  // namespace weft::inline v0::detail
