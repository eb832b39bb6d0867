// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::HeldLock: a part of a lock whose guard must stay on one loop: of Mutex, and of SharedMutex for who
// has it alone. It lets resume_on() refuse a task that holds one, instead of the lock's unlock() having to end the
// process later.
//
// With WEFT_AWAITABLE_STATE_DEBUG the loop lists what its tasks hold. Without, this is empty, and
// nothing is done.
//
// Threads        the loop that locked it.
#include <source_location>

#include "weft/base/intrusive_list.h"
#include "weft/core/strand.h"

namespace weft::inline v0::detail {

#ifdef WEFT_AWAITABLE_STATE_DEBUG

class HeldLock : public ListNode<HeldLock> {
 public:
  // By the task that runs now, or by another of this loop.
  void locked(const char* kind, const char* name, std::source_location at) noexcept;
  void locked_by(const Strand* task, const char* kind, const char* name,
                 std::source_location at) noexcept;
  // Or its guard has gone to another place, and nobody knows whose it is.
  void unlocked() noexcept;

 private:
  friend void require_no_locks(const Strand& strand, const char* what);

  const Strand* by_ = nullptr;
  HomeIndex home_ = 0;
  const char* kind_ = nullptr;
  const char* name_ = nullptr;
  std::source_location at_;
};

using HeldLocks = IntrusiveList<HeldLock, HeldLock>;

// UsageError if a task of this loop holds a lock; `what` is who asks.
void require_no_locks(const Strand& strand, const char* what);

#else

class HeldLock {
 public:
  static void locked(const char*, const char*, std::source_location) noexcept {}
  static void locked_by(const Strand*, const char*, const char*, std::source_location) noexcept {}
  static void unlocked() noexcept {}
};

#endif

}  // namespace weft::inline v0::detail
