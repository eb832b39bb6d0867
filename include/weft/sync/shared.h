// SPDX-License-Identifier: MIT
#pragma once
// weft::Shared<A>: one operation, and any number of tasks that await it.
//
//     Shared connection(connect(address));               // nothing happens yet
//     const Connection& c = co_await connection;         // in any number of tasks, on any loop
//
// The first who awaits it starts it, on his loop; who comes later waits for the same operation, or
// finds it done. Copies share it. A is what is awaited, once: a Task, another awaitable, or a
// callable that returns one, which is then called by the operation itself.
//
// To do something once, with no result, and again if it failed, use Once; for a value that changes,
// Watch; to wait for a StartedTask alone, the handle itself.
//
// Its parent is those who wait for it, together. One who is cancelled leaves, and the others do not
// notice. The last one does not leave: it cancels the operation and waits for its end. Who comes in
// that moment waits as well. What has been cancelled so is over: he, and whoever comes later, gets
// TaskCancelled, as an exception, because nobody asked *him* to stop. Make another Shared then.
//
// Result         const T&, the same for all, valid while a copy of the Shared is; T& if the
//                operation's result is a T&; nothing if it has none.
// Threads        awaiting: on a loop. Copies: each one thread at a time, any thread. The result is
//                read on many threads at once, and destroyed by whoever drops the last copy.
// Cancellation   `co_await shared` is a cancel point on every call, also when it is done. A
//                cancelled wait ends at once, unless it is the last: then when the operation has
//                ended, and if that had a result after all, with it (L5). If the operation's loop
//                is stopped, it is cancelled there: TaskCancelled.
// Errors         an exception is thrown to everyone who awaits, now or later. One that nobody was
//                thrown is logged when the last copy goes (L14). UsageError off any loop, or for
//                one that was moved from.
// Resumption     on the loop that awaited, in arrival order there, through its ready ring.
// Memory order   what the operation did is visible after the wait.
// Allocation     one block, and a frame unless A is a Task; both when it is made. None per wait.
// Cost           one short lock per wait; O(tasks that wait) at its end.
//
// An operation that awaits its own Shared waits for itself; the task tree shows it.
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/atomic/atomic.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/invoked.h"
#include "weft/core/moving.h"
#include "weft/core/started_task.h"
#include "weft/core/task.h"
#include "weft/core/tree.h"
#include "weft/sync/shared_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

namespace detail {

// The operation without its type. Every copy, and every wait, holds it.
//
// Invariants
//   S1  strand_ is set once, by the first who waits, before he leaves. Whoever stops the operation,
//       ends it or reads its outcome comes after that; the task tree may not.
//   S2  from its end on the strand's own reference is this one's, and the outcome lies there.
class SharedOperation : private JoinWaiter {
 public:
  SharedOperation(const SharedOperation&) = delete;
  SharedOperation& operator=(const SharedOperation&) = delete;

  // Returns: false if it has ended; else the node waits.
  [[nodiscard]] bool join(Waiter& waiter) noexcept;
  [[nodiscard]] Withdrawn leave(Waiter& waiter) noexcept;
  [[nodiscard]] bool has_ended() noexcept { return core_.has_ended(); }
  void describe_wait(TaskTreeCollector& tree, const Waiter& waiter);

 protected:
  explicit SharedOperation(const char* name) noexcept : JoinWaiter(&ended), name_(name) {
    takes_strand = true;
  }
  ~SharedOperation();

  // The strand that has ended. Throws what it ended with, if that is not a value.
  [[nodiscard]] Strand& require_value();
  [[nodiscard]] Strand& strand() noexcept { return *strand_.load(relaxed); }
  // Called once.
  [[nodiscard]] virtual Frame& first_frame() noexcept = 0;

 private:
  static void ended(Runnable& work) noexcept;

  SharedCore core_;
  Atomic<Strand*> strand_{nullptr};
  const char* name_;
  Atomic<bool> error_read_{false};
};

template <class T>
class SharedOperationOf final : public SharedOperation {
  static_assert(!std::is_rvalue_reference_v<T>, "weft: what is shared is not moved from");

 public:
  // For a T& that is T& itself.
  using Result = std::conditional_t<std::is_void_v<T>, void, std::add_lvalue_reference_t<const T>>;

  // Throws UsageError if the task is empty.
  SharedOperationOf(Task<T> task, const char* name)
      : SharedOperation(name), task_(std::move(task)) {
    if (!task_.valid()) throw_usage_error("Shared: this Task was moved from, awaited or started");
  }

  Result result() {
    Strand& strand = require_value();
    if constexpr (std::is_reference_v<T>) {
      return *TaskBlock<T>::value_of(strand);
    } else if constexpr (!std::is_void_v<T>) {
      return TaskBlock<T>::value_of(strand);
    }
  }

 private:
  [[nodiscard]] Frame& first_frame() noexcept override { return *task_.release_for_await(); }

  Task<T> task_;
};

template <class T>
Task<T> shared_task(Task<T> task) noexcept {
  return task;
}
template <class A>
auto shared_task(A awaitable) {
  if constexpr (Awaitable<A>) {
    return await_there<A>(std::move(awaitable));
  } else {
    return call_there<A>(std::move(awaitable));
  }
}

}  // namespace detail

template <AwaitableOrCallable A>
class Shared {
  using T = typename decltype(detail::shared_task(std::declval<A>()))::value_type;
  using Operation = detail::SharedOperationOf<T>;
  class Wait;

 public:
  // The name is shown in the task tree. Requires: it outlives the last copy.
  explicit Shared(A awaitable, const char* name = nullptr)
      : operation_(std::make_shared<Operation>(detail::shared_task(std::move(awaitable)), name)) {}

  auto operator co_await() const { return detail::SyncAwaiter<Wait>(operation_); }

  // It has a result, has failed or was cancelled. As of some moment during the call; any thread.
  [[nodiscard]] bool is_done() const noexcept { return operation_ && operation_->has_ended(); }

 private:
  std::shared_ptr<Operation> operation_;
};

template <AwaitableOrCallable A>
class Shared<A>::Wait : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "co_await on a Shared";

 protected:
  explicit Wait(std::shared_ptr<Operation> operation) noexcept : operation_(std::move(operation)) {}

  bool take() {
    if (!operation_) detail::throw_usage_error("this Shared was moved from");
    return operation_->has_ended();
  }
  bool take_or_wait() noexcept { return !operation_->join(*this); }
  detail::Withdrawn withdraw() noexcept { return operation_->leave(*this); }
  static constexpr void give_back() noexcept {}
  typename Operation::Result result() { return operation_->result(); }
  void introspect(TaskTreeCollector& tree) { operation_->describe_wait(tree, *this); }

 private:
  std::shared_ptr<Operation> operation_;
};

}  // namespace weft::inline v0
