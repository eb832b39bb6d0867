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
// Cost           without waiters: one compare-exchange to lock, one to unlock, and one to note who
//                shares it. Those write one word, too: on many loops at once that costs about as much as
//                a Mutex. An unlock is O(tasks that it lets in).
// Inspection     the task tree says of a waiter who holds it; inspect::find_deadlocks() finds cycles, also
//                through those who share it: the first SharedHolders::kNotedMax of them, until their
//                guards are moved or released.
#include <cstddef>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "weft/core/held_lock.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/thread_state.h"
#include "weft/core/tree.h"
#include "weft/sync/lock_guard.h"
#include "weft/sync/lock_waiter.h"
#include "weft/sync/shared_holders.h"
#include "weft/sync/shared_mutex_core.h"

namespace weft::inline v0 {

class SharedMutex;

using SharedMutexGuard = LockGuard<SharedMutex>;

// The right to be inside beside others, and the duty to leave. Empty when it was moved from, released or
// unlocked.
//
// Threads        any, one at a time: it belongs to nobody.
class [[nodiscard]] SharedMutexSharedGuard {
 public:
  SharedMutexSharedGuard() = default;
  SharedMutexSharedGuard(SharedMutexSharedGuard&& other) noexcept : mutex_(other.release()) {}
  SharedMutexSharedGuard& operator=(SharedMutexSharedGuard&& other) noexcept {
    if (this != &other) {
      unlock();
      mutex_ = other.release();
    }
    return *this;
  }
  ~SharedMutexSharedGuard() { unlock(); }

  // Before the end of the block. Without effect if it is empty.
  inline void unlock() noexcept;
  // Gives the duty to the caller, who calls SharedMutex::unlock_shared(). Returns: the mutex, or null.
  [[nodiscard]] inline SharedMutex* release() noexcept;
  explicit operator bool() const noexcept { return mutex_ != nullptr; }

 private:
  friend class SharedMutex;
  using Place = detail::SharedHolders::Place;
  explicit SharedMutexSharedGuard(SharedMutex& mutex,
                                  Place noted = detail::SharedHolders::kNowhere) noexcept
      : mutex_(&mutex), noted_(noted) {}

  SharedMutex* mutex_ = nullptr;
  Place noted_ = detail::SharedHolders::kNowhere;
};

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

  SharedMutex() noexcept : SharedMutex(nullptr) {}
  // The name is shown in the task tree and in messages. Requires: it outlives the SharedMutex.
  explicit SharedMutex(const char* name) noexcept : name_(name), entry_(*this) {}
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
    return core_.try_lock(home) ? guarded(at) : std::nullopt;
  }
  // Returns: a guard, or nothing if somebody has it alone, or waits.
  [[nodiscard]] std::optional<SharedGuard> try_lock_shared(
      std::source_location at = std::source_location::current()) noexcept {
    return core_.try_lock_shared() ? guarded_shared(at) : std::nullopt;
  }

  // Requires: this loop has it alone. Ends the process if not.
  void unlock() noexcept {
    held_.unlocked();
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
  friend Guard;
  friend SharedGuard;
  friend class Condition;
  using Who = detail::LockHolder::Who;

  std::optional<Guard> guarded(std::source_location at) noexcept;
  std::optional<SharedGuard> guarded_shared(std::source_location at) noexcept;
  void guard_moved() noexcept {
    core_.holder().guard_moved();
    held_.unlocked();
  }
  // Somebody is inside, and goes on (X5).
  void entered_alone(const Who& who) noexcept { core_.holder().set(who); }
  [[nodiscard]] SharedGuard::Place entered_shared(const Who& who) noexcept {
    core_.holder().set({nullptr, who.at});
    return sharers_.note(who);
  }
  // For Condition: locks it for who has waited there, on any thread. Returns: false if that waits.
  bool relock(detail::LockWaiter& waiter) noexcept {
    waiter.amount = static_cast<std::uint32_t>(Mode::exclusive);
    entry_.enter();
    return core_.lock_or_wait(waiter);
  }
  // It has gone on with the lock, on its loop; its task keeps it.
  void relocked(const detail::LockWaiter& waiter) noexcept { entered_alone(waiter.who()); }
  void kept(const detail::LockWaiter& waiter, const detail::Strand* task) noexcept {
    held_.locked_by(task, kKind, name_, waiter.at());
  }
  void unlock_contended() noexcept;
  [[noreturn]] void abort_not_owner() const noexcept;
  [[noreturn]] void abort_not_shared() const noexcept;
  [[nodiscard]] std::string holders() const;
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  static constexpr const char* kKind = "SharedMutex";

  detail::SharedMutexCore core_;
  detail::SharedHolders sharers_;
  const char* name_;
  struct Entry : detail::LockEntry {
    explicit Entry(SharedMutex& of) noexcept : LockEntry(&collect), mutex(of) {}
    static void collect(LockEntry& entry, detail::HomeIndex home,
                        std::vector<detail::LockReport>& waits);
    SharedMutex& mutex;
  };
  Entry entry_;
  [[no_unique_address]] detail::HeldLock held_;
};

template <detail::LockMode kMode>
class SharedMutex::Wait : public detail::LockWaiter {
 public:
  static constexpr const char* kWhat =
      kMode == Mode::shared ? "SharedMutex::lock_shared()" : "SharedMutex::lock()";

 protected:
  Wait(SharedMutex& mutex, std::source_location at) noexcept
      : LockWaiter(&went_on, at), mutex_(mutex) {
    amount = static_cast<std::uint32_t>(kMode);
  }

  bool take() {
    const detail::ThreadState& thread = look_around(kWhat);
    const bool free =
        kMode == Mode::shared ? mutex_.core_.try_lock_shared() : mutex_.core_.try_lock(home);
    if (free) entered({thread.running, at()});
    return free;
  }
  bool take_or_wait() noexcept {
    begins(detail::thread_state());
    mutex_.entry_.enter();
    if (!mutex_.core_.lock_or_wait(*this)) return false;
    entered(who());
    return true;
  }
  detail::Withdrawn withdraw() noexcept {
    detail::WaitList admitted;
    const detail::Withdrawn how = mutex_.core_.withdraw(*this, admitted);
    notify_all(admitted);
    if (how == detail::Withdrawn::passed_on) give_back();
    return how;
  }
  void give_back() noexcept {
    if constexpr (kMode == Mode::shared) {
      mutex_.sharers_.forget(noted_);
      mutex_.unlock_shared();
    } else {
      mutex_.unlock();
    }
  }
  void introspect(TaskTreeCollector& tree) { mutex_.describe_wait(tree, *this); }

  SharedMutex& mutex_;
  SharedGuard::Place noted_ = detail::SharedHolders::kNowhere;

 private:
  void entered(const Who& who) noexcept {
    if constexpr (kMode == Mode::shared) {
      noted_ = mutex_.entered_shared(who);
    } else {
      mutex_.entered_alone(who);
    }
  }
  static void went_on(Posted& work) noexcept {
    auto& self = static_cast<Wait&>(from_posted(work));
    // Or it was cancelled, and has left.
    if (self.state == detail::WaitState::notified) self.entered(self.who());
    arrived(work);
  }
};

template <detail::LockMode kMode>
class SharedMutex::Lock : public Wait<kMode> {
 protected:
  using Wait<kMode>::Wait;
  auto result() noexcept {
    if constexpr (kMode == Mode::shared) {
      return SharedGuard(this->mutex_, this->noted_);
    } else {
      this->mutex_.held_.locked(kKind, this->mutex_.name_, this->at());
      return Guard(this->mutex_);
    }
  }
};

// Nobody knows who will unlock it.
template <detail::LockMode kMode>
class SharedMutex::LockRaw : public Wait<kMode> {
 protected:
  using Wait<kMode>::Wait;
  void result() noexcept {
    if constexpr (kMode == Mode::shared) {
      this->mutex_.sharers_.forget(this->noted_);
    } else {
      this->mutex_.core_.holder().guard_moved();
    }
  }
};

inline SharedMutex* SharedMutexSharedGuard::release() noexcept {
  if (mutex_) mutex_->sharers_.forget(std::exchange(noted_, detail::SharedHolders::kNowhere));
  return std::exchange(mutex_, nullptr);
}
inline void SharedMutexSharedGuard::unlock() noexcept {
  if (SharedMutex* mutex = release()) mutex->unlock_shared();
}

}  // namespace weft::inline v0
