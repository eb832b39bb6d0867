// SPDX-License-Identifier: MIT
#pragma once
// weft::SharedMutex: many tasks that look, or one that changes, also across loops. Waiting suspends
// the task, never the thread.
//
//     SharedMutex mutex("routes");
//     {
//       auto lock = co_await mutex.lock_shared();   // beside others who share it
//       co_await answer(routes.find(name));
//     }
//     auto lock = co_await mutex.lock();            // alone
//     routes.insert(route);
//
// First come, first served: who wants to share it and comes after one who waits to have it alone
// waits behind that one, so those who change do not starve; those who want to share it and stand
// together at the front are let in together. It is worth its second kind of lock where looking
// takes long, or awaits; else use Mutex.
//
// There is no upgrade from shared to exclusive: two who share it and both ask for that would wait
// for each other for ever. Unlock, lock(), and look again at what was seen. For the same reason a
// task that shares it does not ask to share it once more: one who waits to have it alone may have
// come in between.
//
// Who has it alone is known by its loop, as with Mutex: unlock() on another loop ends the process
// with a message that names both. Who shares it is only counted: a SharedGuard, like a Semaphore's
// permit, belongs to nobody, may leave its loop, and may be unlocked by any thread. So that a guard
// was left on the wrong loop is not noticed there; it does no harm either, because nobody is let
// in before it is gone.
//
// Threads        lock…(), try_lock(), unlock(): on a loop. Everything else: any thread. Tasks of many
//                loops may share one, if those take posts (Executor::takes_posts()).
// Cancellation   a lock…() that waits is unlinked and takes nothing; those behind it who can enter
//                now, do. One that has just been let in and has not gone on yet leaves, those who can
//                enter then do, and it ends cancelled. One that has gone on has the lock, and its
//                guard unlocks it.
// Resumption     on the loop that awaited, through its ready ring; never inside of an unlock.
// Memory order   what happens before an unlock() is visible to all who lock it later; what happens
//                before an unlock_shared(), to who has it alone later.
// Errors         UsageError: lock…() and try_lock() off any loop.
// Allocation     none.
// Cost           without waiters: one compare-exchange to lock, one to unlock. Those who share it
//                write one word, too: on many loops at once that costs about as much as a Mutex. An
//                unlock is O(tasks that it lets in).
#include <cstddef>
#include <optional>
#include <source_location>
#include <string>
#include <utility>

#include "weft/core/make_awaitable.h"
#include "weft/core/thread_state.h"
#include "weft/core/tree.h"
#include "weft/sync/lock_waiter.h"
#include "weft/sync/shared_mutex_core.h"

namespace weft::inline v0 {

class SharedMutex;

// The right to be inside, alone or beside others, and the duty to leave. Empty when it was moved
// from or unlocked.
template <detail::LockMode kMode>
class [[nodiscard]] BasicSharedMutexGuard {
 public:
  BasicSharedMutexGuard() = default;
  BasicSharedMutexGuard(BasicSharedMutexGuard&& other) noexcept : mutex_(other.release()) {}
  BasicSharedMutexGuard& operator=(BasicSharedMutexGuard&& other) noexcept {
    if (this != &other) {
      unlock();
      mutex_ = other.release();
    }
    return *this;
  }
  ~BasicSharedMutexGuard() { unlock(); }

  // Before the end of the block. Without effect if it is empty.
  inline void unlock() noexcept;
  // Gives the duty to the caller, who calls SharedMutex::unlock() or unlock_shared(). Returns: the
  // mutex, or null.
  [[nodiscard]] SharedMutex* release() noexcept { return std::exchange(mutex_, nullptr); }
  explicit operator bool() const noexcept { return mutex_ != nullptr; }

 private:
  friend class SharedMutex;
  friend class Condition;
  explicit BasicSharedMutexGuard(SharedMutex& mutex) noexcept : mutex_(&mutex) {}

  SharedMutex* mutex_ = nullptr;
};

using SharedMutexGuard = BasicSharedMutexGuard<detail::LockMode::exclusive>;
using SharedMutexSharedGuard = BasicSharedMutexGuard<detail::LockMode::shared>;

class SharedMutex {
  using Mode = detail::LockMode;
  template <Mode kMode>
  class Wait;
  template <Mode kMode>
  class Lock;
  template <Mode kMode>
  class LockRaw;
  template <class Wait>
  using Awaitable =
      AwaiterDescription<detail::SyncAwaiter<Wait>, SharedMutex&, std::source_location>;

 public:
  using Guard = SharedMutexGuard;
  using SharedGuard = SharedMutexSharedGuard;

  SharedMutex() = default;
  // The name is shown in the task tree and in messages. Requires: it outlives the SharedMutex.
  explicit SharedMutex(const char* name) noexcept : name_(name) {}
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;
  // Requires: nobody is inside, nobody waits for it. Ends the process if somebody does.
  ~SharedMutex();

  // Returns: an awaitable of a Guard: nobody else is inside.
  [[nodiscard]] auto lock(std::source_location at = std::source_location::current()) noexcept {
    return Awaitable<Lock<Mode::exclusive>>(*this, std::move(at));
  }
  // Returns: an awaitable of a SharedGuard: nobody has it alone.
  [[nodiscard]] auto lock_shared(
      std::source_location at = std::source_location::current()) noexcept {
    return Awaitable<Lock<Mode::shared>>(*this, std::move(at));
  }
  // The same without a guard: the caller calls unlock() or unlock_shared(), on every way out.
  [[nodiscard]] auto lock_raw(std::source_location at = std::source_location::current()) noexcept {
    return Awaitable<LockRaw<Mode::exclusive>>(*this, std::move(at));
  }
  [[nodiscard]] auto lock_shared_raw(
      std::source_location at = std::source_location::current()) noexcept {
    return Awaitable<LockRaw<Mode::shared>>(*this, std::move(at));
  }
  // Returns: a guard, or nothing if somebody is inside. Throws UsageError off any loop.
  [[nodiscard]] std::optional<Guard> try_lock(
      std::source_location at = std::source_location::current()) {
    const detail::HomeIndex home = Executor::current("SharedMutex::try_lock()").home();
    if (!core_.try_lock(home)) return std::nullopt;
    owned_at(at);
    return Guard(*this);
  }
  // Returns: a guard, or nothing if somebody has it alone, or waits.
  [[nodiscard]] std::optional<SharedGuard> try_lock_shared(
      std::source_location at = std::source_location::current()) noexcept {
    if (!core_.try_lock_shared()) return std::nullopt;
    owned_at(at);
    return SharedGuard(*this);
  }

  // Requires: this loop has it alone. Ends the process if not.
  void unlock() noexcept {
    const Executor* here = detail::thread_state().executor;
    if (!here || !core_.try_unlock(here->home())) [[unlikely]]
      unlock_contended();
  }
  // Requires: the caller shares it. Ends the process if nobody does.
  void unlock_shared() noexcept {
    detail::WaitList admitted;
    if (!core_.unlock_shared(admitted)) [[unlikely]]
      abort_not_shared();
    detail::Waiter::notify_all(admitted);  // X4: *this may be gone
  }

  // A moment's truth. Somebody has it alone.
  [[nodiscard]] bool is_locked() const noexcept { return core_.is_exclusive(); }
  // So many share it.
  [[nodiscard]] std::size_t shared_count() const noexcept { return core_.sharers(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  friend class Condition;

  void owned_at(std::source_location at) noexcept { held_at_.store(at, detail::relaxed); }
  // For Condition: locks it for who has waited there, on any thread. Returns: false if that waits.
  bool relock(detail::LockWaiter& waiter) noexcept {
    waiter.amount = static_cast<std::uint32_t>(Mode::exclusive);
    return core_.lock_or_wait(waiter);
  }
  // It has gone on with the lock, on its loop; its task goes on.
  void relocked(const detail::LockWaiter& waiter) noexcept { owned_at(waiter.at()); }
  static void resumed(const detail::LockWaiter&) noexcept {}
  void unlock_contended() noexcept;
  [[noreturn]] void abort_not_owner() const noexcept;
  [[noreturn]] void abort_not_shared() const noexcept;
  [[nodiscard]] std::string holders() const;
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::SharedMutexCore core_;
  const char* name_ = nullptr;
  // Where the last one came in: for those who wait and wonder.
  detail::Atomic<std::source_location> held_at_{std::source_location()};
};

template <detail::LockMode kMode>
class SharedMutex::Wait : public detail::Waiter {
 public:
  static constexpr const char* kWhat =
      kMode == Mode::shared ? "SharedMutex::lock_shared()" : "SharedMutex::lock()";

 protected:
  Wait(SharedMutex& mutex, std::source_location at) noexcept : mutex_(mutex), at_(at) {
    amount = static_cast<std::uint32_t>(kMode);
  }

  bool take() noexcept {
    return kMode == Mode::shared ? mutex_.core_.try_lock_shared() : mutex_.core_.try_lock(home);
  }
  bool take_or_wait() noexcept { return mutex_.core_.lock_or_wait(*this); }
  detail::Withdrawn withdraw() noexcept {
    detail::WaitList admitted;
    const detail::Withdrawn how = mutex_.core_.withdraw(*this, admitted);
    notify_all(admitted);
    if (how == detail::Withdrawn::passed_on) give_back();
    return how;
  }
  void give_back() noexcept { kMode == Mode::shared ? mutex_.unlock_shared() : mutex_.unlock(); }
  void introspect(TaskTreeCollector& tree) { mutex_.describe_wait(tree, *this); }

  SharedMutex& mutex_;
  const std::source_location at_;
};

template <detail::LockMode kMode>
class SharedMutex::Lock : public Wait<kMode> {
 protected:
  using Wait<kMode>::Wait;
  BasicSharedMutexGuard<kMode> result() noexcept {
    this->mutex_.owned_at(this->at_);
    return BasicSharedMutexGuard<kMode>(this->mutex_);
  }
};

template <detail::LockMode kMode>
class SharedMutex::LockRaw : public Wait<kMode> {
 protected:
  using Wait<kMode>::Wait;
  void result() noexcept { this->mutex_.owned_at(this->at_); }
};

template <detail::LockMode kMode>
void BasicSharedMutexGuard<kMode>::unlock() noexcept {
  SharedMutex* mutex = release();
  if (!mutex) return;
  if constexpr (kMode == detail::LockMode::shared) {
    mutex->unlock_shared();
  } else {
    mutex->unlock();
  }
}

}  // namespace weft::inline v0
