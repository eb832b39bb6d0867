// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::LockBook: every lock that somebody has had to wait for, and that still is: for those
// who look for deadlocks (inspect/).
//
// A lock enters it with its first waiter ever, and leaves it at its end; so the book costs those who
// wait nothing but a look at a flag. A lock takes part by a LockEntry, which says of those who wait
// for it on one loop who they are, and who is in their way.
//
// Threads        any. Entering and leaving take a std::mutex, one of kShards.
#include <cstdint>
#include <source_location>
#include <vector>

#include "weft/atomic/atomic.h"
#include "weft/base/intrusive_list.h"
#include "weft/core/strand.h"

namespace weft::inline v0::detail {

// One wait, and one who is in its way: a lock that is shared reports a wait once for each. The holder is
// named, by its address, and never looked into: it may be another loop's.
struct LockReport {
  const char* kind = nullptr;    // "Mutex"
  const char* name = nullptr;    // its own, or null; valid on the waiter's loop, until that goes on
  const void* lock = nullptr;    // these two name the wait
  std::uint32_t ticket = 0;      // of the lock's, in the order of their coming
  Strand* waiter = nullptr;      // who cannot go on without it; null: nobody, or not known
  const void* holder = nullptr;  // a Strand; null: not known, or nobody yet
  HomeIndex holder_home = 0;     // 0: it may be anywhere
  std::source_location wanted_at = {};  // the waiter's lock()
  std::source_location held_at = {};    // the holder's
};

class LockEntry : public ListNode<LockEntry> {
 public:
  // Adds the waits of tasks of this thread's loop, whose number is `home`.
  using Collect = void (*)(LockEntry&, HomeIndex home, std::vector<LockReport>& waits);

  explicit LockEntry(Collect collect) noexcept : collect_(collect) {}
  LockEntry(const LockEntry&) = delete;
  LockEntry& operator=(const LockEntry&) = delete;
  ~LockEntry() {
    if (entered_.load(relaxed)) [[unlikely]]
      leave();
  }

  // Somebody is about to wait.
  void enter() noexcept {
    // relaxed: that it is in the book is a matter of the shard's mutex.
    if (!entered_.load(relaxed)) [[unlikely]]
      enter_book();
  }

 private:
  friend std::vector<LockReport> lock_waits_here();

  void enter_book() noexcept;
  void leave() noexcept;

  Collect collect_;
  Atomic<bool> entered_{false};
};

// The waits for locks of this thread's loop. Requires: there is one.
[[nodiscard]] std::vector<LockReport> lock_waits_here();

}  // namespace weft::inline v0::detail
