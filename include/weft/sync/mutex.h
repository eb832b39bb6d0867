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
#include "weft/sync/lock_guard.h"
#include "weft/sync/lock_waiter.h"
#include "weft/sync/mutex_core.h"
#include "weft/sync/sharing.h"
#include "weft/sync/sync_awaitable.h"

namespace weft::inline v0 {

template <class Sharing>
class BasicMutex;

template <class Sharing>
using BasicMutexGuard = LockGuard<BasicMutex<Sharing>>;

template <class Sharing>
class BasicMutex {
  class Wait;
  class Lock;
  class LockRaw;

 public:
  using Guard = BasicMutexGuard<Sharing>;

  BasicMutex() noexcept : BasicMutex(nullptr) {}
  // The name is shown in the task tree and in messages. Requires: it outlives the Mutex.
  explicit BasicMutex(const char* name) noexcept : name_(name), entry_(*this) {}
  BasicMutex(const BasicMutex&) = delete;
  BasicMutex& operator=(const BasicMutex&) = delete;
  // Requires: nobody holds it, nobody waits for it. Ends the process if somebody does.
  ~BasicMutex();

  // Returns: an awaitable of a Guard.
  [[nodiscard]] auto lock(std::source_location at = std::source_location::current()) noexcept {
    return detail::SyncAwaitable<Lock, BasicMutex&, std::source_location>(*this, std::move(at));
  }
  // The same without a guard: the caller calls unlock(), on every way out.
  [[nodiscard]] auto lock_raw(std::source_location at = std::source_location::current()) noexcept {
    return AwaiterDescription<detail::SyncAwaiter<LockRaw>, BasicMutex&, std::source_location>(
        *this, std::move(at));
  }
  // Returns: a guard, or nothing if somebody holds it. Throws UsageError off any loop.
  [[nodiscard]] std::optional<Guard> try_lock(
      std::source_location at = std::source_location::current()) {
    const detail::HomeIndex home = Executor::current(kTryLock).home();
    bond_.require(home, kTryLock);
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
  friend Guard;
  friend class Condition;

  std::optional<Guard> guarded(std::source_location at) noexcept;
  void guard_moved() noexcept {
    core_.holder().guard_moved();
    held_.unlocked();
  }
  // For Condition: locks it for who has waited there, on any thread. Returns: false if that waits.
  bool relock(detail::LockWaiter& waiter) noexcept;
  // It has gone on with the lock, on its loop; its task keeps it.
  void relocked(const detail::LockWaiter& waiter) noexcept { core_.holder().set(waiter.who()); }
  void kept(const detail::LockWaiter& waiter, const detail::Strand* task) noexcept {
    held_.locked_by(task, kKind, name_, waiter.at());
  }
  void unlock_contended() noexcept;
  [[noreturn]] void abort_not_owner() const noexcept;
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  static constexpr bool kIsLocal = Sharing::kIsLocal;
  static constexpr const char* kKind = kIsLocal ? "LocalMutex" : "Mutex";
  static constexpr const char* kTryLock = kIsLocal ? "LocalMutex::try_lock()" : "Mutex::try_lock()";

  detail::BasicMutexCore<Sharing> core_;
  const char* name_;
  struct Entry : detail::LockEntry {
    explicit Entry(BasicMutex& of) noexcept : LockEntry(&collect), mutex(of) {}
    static void collect(LockEntry& entry, detail::HomeIndex home,
                        std::vector<detail::LockReport>& waits);
    BasicMutex& mutex;
  };
  Entry entry_;
  [[no_unique_address]] typename Sharing::LoopBond bond_;
  [[no_unique_address]] detail::HeldLock held_;
};

template <class Sharing>
class BasicMutex<Sharing>::Wait : public detail::LockWaiter {
 public:
  static constexpr const char* kWhat = kIsLocal ? "LocalMutex::lock()" : "Mutex::lock()";

 protected:
  Wait(BasicMutex& mutex, std::source_location at) noexcept
      : LockWaiter(&went_on, at), mutex_(mutex) {}

  bool take() {
    const detail::ThreadState& thread = look_around(kWhat);
    mutex_.bond_.require(home, kWhat);
    if (!mutex_.core_.try_lock(home)) return false;
    mutex_.core_.holder().set({thread.running, at()});
    return true;
  }
  bool take_or_wait() noexcept;
  detail::Withdrawn withdraw() noexcept;
  void give_back() noexcept { mutex_.unlock(); }
  void introspect(TaskTreeCollector& tree) { mutex_.describe_wait(tree, *this); }

  BasicMutex& mutex_;

 private:
  friend struct Entry;
  static void went_on(Posted& work) noexcept;
};

template <class Sharing>
class BasicMutex<Sharing>::Lock : public Wait {
 public:
  using Now = BasicMutex*;
  static bool take_now(detail::Strand& task, BasicMutex*& taken, BasicMutex& mutex,
                       std::source_location at) noexcept {
    const detail::HomeIndex home = task.home.load(detail::relaxed);
    mutex.bond_.require(home, Wait::kWhat);
    if (!mutex.core_.try_lock(home)) return false;
    mutex.core_.holder().set({&task, at});
    mutex.held_.locked(kKind, mutex.name_, at);
    taken = &mutex;
    return true;
  }
  // A guard that was made before and moved here would have lost its holder.
  static Guard made_of(BasicMutex* taken) noexcept { return Guard(*taken); }

 protected:
  using Wait::Wait;
  Guard result() noexcept {
    this->mutex_.held_.locked(kKind, this->mutex_.name_, this->at());
    return Guard(this->mutex_);
  }
};

template <class Sharing>
class BasicMutex<Sharing>::LockRaw : public Wait {
 protected:
  using Wait::Wait;
  // Nobody knows who will unlock it.
  void result() noexcept { this->mutex_.core_.holder().guard_moved(); }
};

using Mutex = BasicMutex<detail::BetweenLoops>;
using MutexGuard = Mutex::Guard;

}  // namespace weft::inline v0
