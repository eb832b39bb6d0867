// SPDX-License-Identifier: MIT
#pragma once
// weft::Condition: tasks that hold a lock wait until something has changed under it, also across
// loops.
//
//     Mutex mutex;
//     Condition not_empty("queue");
//
//     auto lock = co_await mutex.lock();
//     co_await not_empty.wait(lock, [&] { return !queue.empty(); });   // locked again after it
//     take(queue.front());
//
//     auto lock = co_await mutex.lock();
//     queue.push_back(item);
//     not_empty.notify_one();                                          // before or after unlock()
//
// wait() stands in the Condition's queue before it unlocks: who changes something under the lock
// from then on, and notifies, finds it there. It goes on when it was notified and has the lock
// again: a notify puts it into the lock's own queue, so it is not woken only to find the lock
// taken. Nobody wakes it without a notify; but others may have the lock before it does and change
// things back: look again, or give wait() the predicate, which does that.
//
// The lock is a Mutex, or a SharedMutex that is held alone. For a flag use Event, for a number
// Semaphore, for a queue Channel: they need no lock.
//
// Threads        wait(): on the loop that holds the lock. notify_…(): any thread, with the lock held or
//                not. Tasks of many loops may wait.
// Cancellation   a cancelled wait() has the lock again before it unwinds, and its guard unlocks it
//                then; to get it is not cancelled. If notify_one() had chosen it, the next that waits
//                is notified in its place. So whoever cancels one and waits for its end does not hold
//                the lock meanwhile: both would wait for ever, and the task tree shows it.
// Resumption     on the loop that awaited, first come, first served, through its ready ring; never
//                inside of a notify.
// Predicates     are called with the lock held: first in the task, then, after each notify, by its
//                loop. What one throws comes out of wait(), with the lock held.
// Memory order   the lock's. What happens before a notify is visible to those whom it wakes, too.
// Errors         UsageError: a guard that is empty; wait() off any loop. The lock ends the process if
//                another loop holds it.
// Allocation     none.
// Cost           wait(), notify_…(): one short lock, and what the Mutex costs. notify_all() is O(tasks
//                that wait).
//
// Invariants
//   C1  place_ is in the Condition's queue from before the unlock until a notify or a cancel takes it
//       out; N1 holds for it there. Whoever has taken it out calls lock_again(), once.
//   C2  the Waiter itself waits for the lock only, and is notified by that. N1 holds for it there.
//   C3  the task goes on, or unwinds, only with the lock: after C2's notify() has arrived, or if
//       lock_again() had it at once on the home loop.
#include <concepts>
#include <exception>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/core/invoked.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/lock_waiter.h"
#include "weft/sync/mutex.h"
#include "weft/sync/parking_lot_core.h"
#include "weft/sync/shared_mutex.h"

namespace weft::inline v0 {

namespace detail {

template <class Guard>
concept ExclusiveGuard = std::same_as<Guard, MutexGuard> || std::same_as<Guard, SharedMutexGuard>;

}  // namespace detail

class Condition {
  class Wait;
  template <class Lock>
  class LockWait;
  template <class Lock, class Predicate>
  class Awaiter;
  // In place of a predicate: one notify is enough, and nothing else is.
  struct Notified {};

 public:
  Condition() = default;
  // The name is shown in the task tree and in messages. Requires: it outlives the Condition.
  explicit Condition(const char* name) noexcept : name_(name) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  // Requires: nobody waits for it, nor was notified and has not gone on yet. Ends the process if
  // somebody waits.
  ~Condition();

  // Until it is notified once. Requires: the guard outlives the wait.
  template <detail::ExclusiveGuard Guard>
  [[nodiscard]] auto wait(Guard& guard, std::source_location at = std::source_location::current()) {
    return wait_until<Notified>(guard, Notified(), at);
  }
  // Until predicate() is true; at once if it is. The predicate is kept.
  template <detail::ExclusiveGuard Guard, std::predicate Predicate>
  [[nodiscard]] auto wait(Guard& guard, Predicate&& predicate,
                          std::source_location at = std::source_location::current()) {
    detail::check_callable<Predicate>();
    using Kept = detail::KeptFunction<Predicate>;
    return wait_until<Kept>(guard, Kept(std::forward<Predicate>(predicate)), at);
  }

  // Who has waited longest, if anybody waits.
  void notify_one() noexcept;
  // Those who wait now.
  void notify_all() noexcept;

  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  template <class Kept, class Guard, class Given>
  auto wait_until(const Guard& guard, Given&& predicate, std::source_location at);
  [[noreturn]] void refuse_empty_guard() const;

  detail::ParkingLotCore core_;
  const char* name_ = nullptr;
};

// What does not depend on the lock and the predicate.
class Condition::Wait : protected detail::LockWaiter, private detail::Waker {
 public:
  bool await_suspend(detail::Continuation waiter) noexcept;
  bool await_cancel(detail::Continuation) noexcept;
  [[nodiscard]] bool await_must_resume() const noexcept { return !cancelled_; }
  void await_introspect(TaskTreeCollector& tree);

  static void lock_again(detail::WaitNode& place) noexcept;

 protected:
  Wait(Condition& condition, std::source_location at) noexcept
      : LockWaiter(&arrived, at), condition_(condition), place_(*this) {}
  ~Wait() = default;

  static constexpr const char* kWhat = "Condition::wait()";

 private:
  struct Place : detail::WaitNode {
    explicit Place(Wait& owner) noexcept : wait(owner) {}
    Wait& wait;
  };

  // Any thread. Returns: true if it has the lock; false if it waits for that.
  virtual bool relock() noexcept = 0;
  virtual void unlock() noexcept = 0;
  // It has the lock, and has gone on: the wait may be over. Then it is the task's.
  virtual void relocked() noexcept = 0;
  virtual void kept(const detail::Strand* task) noexcept = 0;
  virtual bool is_satisfied() noexcept = 0;
  virtual void describe_lock(TaskTreeCollector& tree) = 0;

  void wait_unlocked() noexcept;
  void end_locked() noexcept { kept(waiter_.strand()); }
  bool is_over() noexcept;

  // Waker, for the Waiter's notify().
  void wake() noexcept override;
  void enter() noexcept override;
  bool cancel_with(const CancelReason& reason) noexcept override;
  [[nodiscard]] detail::Strand* waiting() const noexcept override;
  [[nodiscard]] detail::Strand* needing() const noexcept override { return waiter_.needing(); }

  Condition& condition_;
  detail::Continuation waiter_;
  Place place_;
  bool cancelled_ = false;
};

template <class Lock>
class Condition::LockWait : public Wait {
 protected:
  LockWait(Condition& condition, Lock& lock, std::source_location at) noexcept
      : Wait(condition, at), lock_(lock) {}

 private:
  bool relock() noexcept final { return lock_.relock(*this); }
  void unlock() noexcept final { lock_.unlock(); }
  void relocked() noexcept final { lock_.relocked(*this); }
  void kept(const detail::Strand* task) noexcept final { lock_.kept(*this, task); }
  void describe_lock(TaskTreeCollector& tree) final { lock_.describe_wait(tree, *this); }

  Lock& lock_;
};

template <class Lock, class Predicate>
class Condition::Awaiter final : public LockWait<Lock> {
 public:
  using native_awaiter = void;
  Awaiter(Condition& condition, Lock& lock, Predicate&& predicate,
          std::source_location at) noexcept(std::is_nothrow_constructible_v<Predicate, Predicate&&>)
      : LockWait<Lock>(condition, lock, at), predicate_(std::forward<Predicate>(predicate)) {}

  bool await_ready() {
    this->begins(this->look_around(Wait::kWhat));
    if constexpr (kAnyNotify) {
      return false;
    } else {
      return std::invoke(predicate_);
    }
  }
  void await_resume() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  static constexpr bool kAnyNotify = std::same_as<Predicate, Notified>;

  bool is_satisfied() noexcept override {
    if constexpr (kAnyNotify) {
      return true;
    } else {
      try {
        return std::invoke(predicate_);
      } catch (...) {
        error_ = std::current_exception();
        return true;
      }
    }
  }

  [[no_unique_address]] Predicate predicate_;
  std::exception_ptr error_;
};

template <class Kept, class Guard, class Given>
auto Condition::wait_until(const Guard& guard, Given&& predicate, std::source_location at) {
  if (!guard) [[unlikely]]
    refuse_empty_guard();
  using Lock = std::remove_pointer_t<decltype(guard.mutex_)>;
  return AwaiterDescription<Awaiter<Lock, Kept>, Condition&, Lock&, Kept, std::source_location>(
      *this, *guard.mutex_, std::forward<Given>(predicate), std::move(at));
}

}  // namespace weft::inline v0
