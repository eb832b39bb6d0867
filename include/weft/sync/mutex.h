// SPDX-License-Identifier: MIT
#pragma once
// weft::Mutex: one task at a time, also across loops. Waiting suspends the task, never the thread.
//
//     Mutex mutex;
//     {
//       auto lock = co_await mutex.lock();   // unlocks at the end of the block, however it is left
//       balance += co_await deposit();       // may await with it held
//     }
//
// First come, first served: unlock() makes the longest waiting task the owner at once, and nobody
// gets in between. That task goes on when its loop comes to it; never inside of unlock().
//
// The owner is the loop that the task was on, as only that loop's tasks can be meant to hold it: a
// guard must not leave its loop. unlock() on another one, by a guard that was held across
// resume_on(), returned out of on(), or moved to a task elsewhere, ends the process with a message
// that names both loops: with two tasks inside, there would be nothing to save.
//
// Threads        lock(), try_lock(), unlock(): on a loop; any thread that drives one. Tasks of many
//                loops may share a Mutex, if those take posts (Executor::takes_posts()).
// Cancellation   a lock() that waits is unlinked and takes nothing. One that has just become the owner
//                and has not gone on yet passes the lock on, and ends cancelled. One that has gone on
//                has the lock, and its guard unlocks it.
// Resumption     on the loop that awaited, through its ready ring.
// Errors         UsageError off any loop.
// Allocation     none.
// Cost           uncontended: one compare-exchange to lock, one to unlock.
// Inspection     the task tree says of a waiter who holds the lock, for how long, and how many stand
//                before it; inspect::find_deadlocks() finds cycles. The holder is the task that
//                locked it, until its guard is moved or released: then nobody knows. How long is
//                counted from the first that waited ("at least"), so that no clock is read to lock
//                what is free.
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "weft/core/held_lock.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/thread_state.h"
#include "weft/core/tree.h"
#include "weft/sync/lock_waiter.h"
#include "weft/sync/mutex_core.h"
#include "weft/sync/sync_awaitable.h"

namespace weft::inline v0 {

class Mutex;

// The right to be inside, and the duty to leave. Empty when it was moved from or unlocked.
class [[nodiscard]] MutexGuard {
 public:
  MutexGuard() = default;
  MutexGuard(MutexGuard&& other) noexcept : mutex_(other.release()) {}
  MutexGuard& operator=(MutexGuard&& other) noexcept {
    if (this != &other) {
      unlock();
      mutex_ = other.release();
    }
    return *this;
  }
  ~MutexGuard() { unlock(); }

  // Before the end of the block. Without effect if it is empty.
  inline void unlock() noexcept;
  // Gives the duty to the caller, who calls Mutex::unlock(). Returns: the mutex, or null.
  [[nodiscard]] inline Mutex* release() noexcept;
  explicit operator bool() const noexcept { return mutex_ != nullptr; }

 private:
  friend class Mutex;
  friend class Condition;
  explicit MutexGuard(Mutex& mutex) noexcept : mutex_(&mutex) {}

  Mutex* mutex_ = nullptr;
};

class Mutex {
  class Wait;
  class Lock;
  class LockRaw;

 public:
  using Guard = MutexGuard;

  Mutex() noexcept : Mutex(nullptr) {}
  // The name is shown in the task tree and in messages. Requires: it outlives the Mutex.
  explicit Mutex(const char* name) noexcept : name_(name), entry_(*this) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  // Requires: nobody holds it, nobody waits for it. Ends the process if somebody does.
  ~Mutex();

  // Returns: an awaitable of a Guard.
  [[nodiscard]] auto lock(std::source_location at = std::source_location::current()) noexcept {
    return detail::SyncAwaitable<Lock, Mutex&, std::source_location>(*this, std::move(at));
  }
  // The same without a guard: the caller calls unlock(), on every way out.
  [[nodiscard]] auto lock_raw(std::source_location at = std::source_location::current()) noexcept {
    return AwaiterDescription<detail::SyncAwaiter<LockRaw>, Mutex&, std::source_location>(
        *this, std::move(at));
  }
  // Returns: a guard, or nothing if somebody holds it. Throws UsageError off any loop.
  [[nodiscard]] std::optional<Guard> try_lock(
      std::source_location at = std::source_location::current()) {
    const detail::HomeIndex home = Executor::current("Mutex::try_lock()").home();
    return core_.try_lock(home) ? guarded(at) : std::nullopt;
  }

  // Requires: this loop locked it. Ends the process if not.
  void unlock() noexcept {
    held_.unlocked();
    const Executor* here = detail::thread_state().executor;
    if (!here || !core_.try_unlock(here->home())) [[unlikely]]
      unlock_contended();
  }

  [[nodiscard]] bool is_locked() const noexcept { return core_.is_locked(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  friend class MutexGuard;
  friend class Condition;

  std::optional<Guard> guarded(std::source_location at) noexcept;
  void guard_moved() noexcept {
    core_.holder().guard_moved();
    held_.unlocked();
  }
  // For Condition: locks it for who has waited there, on any thread. Returns: false if that waits.
  bool relock(detail::LockWaiter& waiter) noexcept;
  // It has gone on with the lock, on its loop; its task goes on.
  void relocked(const detail::LockWaiter& waiter) noexcept { core_.holder().set(waiter.who()); }
  void resumed(const detail::LockWaiter& waiter) noexcept {
    held_.locked("Mutex", name_, waiter.at());
  }
  void unlock_contended() noexcept;
  [[noreturn]] void abort_not_owner() const noexcept;
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::MutexCore core_;
  const char* name_;
  struct Entry : detail::LockEntry {
    explicit Entry(Mutex& of) noexcept : LockEntry(&collect), mutex(of) {}
    static void collect(LockEntry& entry, detail::HomeIndex home,
                        std::vector<detail::LockReport>& waits);
    Mutex& mutex;
  };
  Entry entry_;
  [[no_unique_address]] detail::HeldLock held_;
};

class Mutex::Wait : public detail::LockWaiter {
 public:
  static constexpr const char* kWhat = "Mutex::lock()";

 protected:
  Wait(Mutex& mutex, std::source_location at) noexcept : LockWaiter(&went_on, at), mutex_(mutex) {}

  bool take() {
    const detail::ThreadState& thread = look_around(kWhat);
    if (!mutex_.core_.try_lock(home)) return false;
    mutex_.core_.holder().set({thread.running, at()});
    return true;
  }
  bool take_or_wait() noexcept;
  detail::Withdrawn withdraw() noexcept;
  void give_back() noexcept { mutex_.unlock(); }
  void introspect(TaskTreeCollector& tree) { mutex_.describe_wait(tree, *this); }

  Mutex& mutex_;

 private:
  friend struct Entry;
  static void went_on(Posted& work) noexcept;
};

class Mutex::Lock : public Wait {
 public:
  using Now = Mutex*;
  static bool take_now(detail::Strand& task, Mutex*& taken, Mutex& mutex,
                       std::source_location at) noexcept {
    if (!mutex.core_.try_lock(task.home.load(detail::relaxed))) return false;
    mutex.core_.holder().set({&task, at});
    mutex.held_.locked("Mutex", mutex.name_, at);
    taken = &mutex;
    return true;
  }
  // A guard that was made before and moved here would have lost its holder.
  static Guard made_of(Mutex* taken) noexcept { return Guard(*taken); }

 protected:
  using Wait::Wait;
  Guard result() noexcept {
    mutex_.held_.locked("Mutex", mutex_.name_, at());
    return Guard(mutex_);
  }
};

class Mutex::LockRaw : public Wait {
 protected:
  using Wait::Wait;
  // Nobody knows who will unlock it.
  void result() noexcept { mutex_.core_.holder().guard_moved(); }
};

inline Mutex* MutexGuard::release() noexcept {
  if (mutex_) mutex_->guard_moved();
  return std::exchange(mutex_, nullptr);
}
inline void MutexGuard::unlock() noexcept {
  if (Mutex* mutex = std::exchange(mutex_, nullptr)) mutex->unlock();
}

}  // namespace weft::inline v0
