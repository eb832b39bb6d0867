// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::LockWaiter: a Waiter for a lock: it knows which task it is, so that others can be told
// who holds the lock (LockHolder), and who waits for it (LockBook).
//
// A lock that takes part
//   - tells its LockHolder, in the step in which a wait takes the lock, or goes on with it;
//   - has a LockEntry, which is entered before a wait enters the lock's own list.
//
// Threads        the waiter's home loop; what is set before it waits, whoever may look at its node.
#include <source_location>

#include "weft/sync/lock_book.h"
#include "weft/sync/lock_holder.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0::detail {

class LockWaiter : public Waiter {
 public:
  // Requires: it is one.
  static LockWaiter& from(WaitNode& node) noexcept { return static_cast<LockWaiter&>(node); }

  using Waiter::needing;
  [[nodiscard]] LockHolder::Who who() const noexcept { return {task_, at_}; }
  [[nodiscard]] const std::source_location& at() const noexcept { return at_; }

 protected:
  LockWaiter(OnArrival on_arrival, std::source_location at) noexcept
      : Waiter(on_arrival), at_(at) {}
  ~LockWaiter() = default;

  // Nothing: take() asks the thread once, for the loop and for the task.
  static void require_loop(const char*) noexcept {}
  // The loop and the task that take(). Throws UsageError off any loop.
  const ThreadState& look_around(const char* what) {
    const ThreadState& thread = thread_state();
    home = (thread.executor ? *thread.executor : Executor::current(what)).home();
    return thread;
  }

  // It begins to wait, and may be told of by who().
  void begins(const ThreadState& thread) noexcept { task_ = thread.running; }

 private:
  const void* task_;  // once it waits: most locks are free
  const std::source_location at_;
};

}  // namespace weft::inline v0::detail
