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
#include <optional>
#include <source_location>
#include <utility>

#include "weft/core/make_awaitable.h"
#include "weft/core/thread_state.h"
#include "weft/core/tree.h"
#include "weft/sync/mutex_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class Mutex;

// The right to be inside, and the duty to leave. Empty when it was moved from or unlocked.
class [[nodiscard]] MutexGuard {
 public:
  MutexGuard() = default;
  MutexGuard(MutexGuard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  MutexGuard& operator=(MutexGuard&& other) noexcept {
    if (this != &other) {
      unlock();
      mutex_ = std::exchange(other.mutex_, nullptr);
    }
    return *this;
  }
  ~MutexGuard() { unlock(); }

  // Before the end of the block. Without effect if it is empty.
  inline void unlock() noexcept;
  // Gives the duty to the caller, who calls Mutex::unlock(). Returns: the mutex, or null.
  [[nodiscard]] Mutex* release() noexcept { return std::exchange(mutex_, nullptr); }
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

  Mutex() = default;
  // The name is shown in the task tree and in messages. Requires: it outlives the Mutex.
  explicit Mutex(const char* name) noexcept : name_(name) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  // Requires: nobody holds it, nobody waits for it. Ends the process if somebody does.
  ~Mutex();

  // Returns: an awaitable of a Guard.
  [[nodiscard]] auto lock(std::source_location at = std::source_location::current()) noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Lock>, Mutex&, std::source_location>(
        *this, std::move(at));
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
    if (!core_.try_lock(home)) return std::nullopt;
    owned_at(at);
    return Guard(*this);
  }

  // Requires: this loop locked it. Ends the process if not.
  void unlock() noexcept {
    const Executor* here = detail::thread_state().executor;
    if (!here || !core_.try_unlock(here->home())) [[unlikely]]
      unlock_contended();
  }

  [[nodiscard]] bool is_locked() const noexcept { return core_.is_locked(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  friend class Condition;

  void owned_at(std::source_location at) noexcept { held_at_.store(at, detail::relaxed); }
  // For Condition: locks it for who has waited there, on any thread. Returns: false if that waits.
  bool relock(detail::WaitNode& waiter) noexcept { return core_.lock_or_wait(waiter); }
  void unlock_contended() noexcept;
  [[noreturn]] void abort_not_owner() const noexcept;
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::MutexCore core_;
  const char* name_ = nullptr;
  // Which lock() the owner is behind: for those who wait and wonder.
  detail::Atomic<std::source_location> held_at_{std::source_location()};
};

class Mutex::Wait : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "Mutex::lock()";

 protected:
  Wait(Mutex& mutex, std::source_location at) noexcept : mutex_(mutex), at_(at) {}

  bool take() noexcept { return mutex_.core_.try_lock(home); }
  bool take_or_wait() noexcept;
  detail::Withdrawn withdraw() noexcept;
  void give_back() noexcept { mutex_.unlock(); }
  void introspect(TaskTreeCollector& tree) { mutex_.describe_wait(tree, *this); }

  Mutex& mutex_;
  const std::source_location at_;
};

class Mutex::Lock : public Wait {
 protected:
  using Wait::Wait;
  Guard result() noexcept {
    mutex_.owned_at(at_);
    return Guard(mutex_);
  }
};

class Mutex::LockRaw : public Wait {
 protected:
  using Wait::Wait;
  void result() noexcept { mutex_.owned_at(at_); }
};

inline void MutexGuard::unlock() noexcept {
  if (Mutex* mutex = release()) mutex->unlock();
}

}  // namespace weft::inline v0
