// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::LockHolder: who is behind a lock, for those who wait and wonder.
//
// The lock itself does not need to know: its owner is a loop. So this costs an uncontended lock() two
// plain stores, and no clock: how long it is held is known from the moment somebody waits for it.
//
// Threads        written by the owner, on its loop, or under the lock's StateMutex; read by anybody.
#include <cstdint>
#include <source_location>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

class LockHolder {
 public:
  struct Who {
    const void* task;         // a Strand: a name, which nobody may look into. Null: not known
    std::source_location at;  // its lock(); line 0: it was given the lock, and has not gone on yet
  };

  // relaxed, all of them: who wants more than a name to print looks twice (inspect/deadlock.h).
  void set(Who who) noexcept {
    task_.store(who.task, relaxed);
    at_.store(who.at, relaxed);
  }
  // Its guard has gone to another place, and nobody knows whose it is.
  void guard_moved() noexcept { task_.store(nullptr, relaxed); }
  void forget() noexcept { set({nullptr, std::source_location()}); }
  [[nodiscard]] Who who() const noexcept { return {task_.load(relaxed), at_.load(relaxed)}; }

 private:
#ifdef WEFT_MODEL_CHECK  // nothing hangs on these two, and Relacy has no such atomics
  template <class T>
  struct Ignored {
    void store(T, Order) noexcept {}
    T load(Order) const noexcept { return T(); }
  };
  Ignored<const void*> task_;
  Ignored<std::source_location> at_;
#else
  Atomic<const void*> task_{nullptr};
  Atomic<std::source_location> at_{std::source_location()};
#endif
};

// Since when somebody has waited for the owner. That is since it became the owner, or only from some
// time after.
struct HeldSince {
  std::int64_t ns;  // of the loop's clock that stamped it
  bool exact;
};

}  // namespace weft::inline v0::detail
