// SPDX-License-Identifier: MIT
#pragma once
// weft::StartedTask<T>: the handle of a task that runs. weft::PromiseChildLease: the right to start
// children elsewhere.
//
//     StartedTask<int> s = compute().start(scope);
//     int n = co_await std::move(s);              // its value, or its error rethrown
//     Outcome<int> how = co_await s.outcome();    // value, error or cancelled; never throws
//
// Threads        cancel(), detach(), cancel_handle(), moving and dropping: any thread. Awaiting:
//                any loop; one waiter at a time.
// Cancellation   the destructor cancels the task; it does not wait: the task's scope does. Awaiting
//                the handle is a cancel point that cancels the task and waits for it; outcome()
//                withdraws the wait only. If the task ends cancelled unasked, its waiter is
//                cancelled with the same reason, or gets TaskCancelled where it is shielded.
// Errors         an error is owed to the handle while one exists; a handle dropped with an unread
//                error logs it (L14). If there were several, the outcome has them all, and awaiting
//                the handle rethrows the first: other_errors().
#include <utility>

#include "weft/core/cancellation_runtime.h"
#include "weft/core/outcome.h"
#include "weft/core/task.h"

namespace weft::inline v0 {

// Holds a scope open from any thread. Copies are leases too.
class [[nodiscard]] PromiseChildLease {
 public:
  PromiseChildLease() = default;
  PromiseChildLease(const PromiseChildLease& other) noexcept;
  PromiseChildLease(PromiseChildLease&& other) noexcept
      : scope_(std::exchange(other.scope_, nullptr)) {}
  PromiseChildLease& operator=(PromiseChildLease other) noexcept {
    std::swap(scope_, other.scope_);
    return *this;
  }
  ~PromiseChildLease() { reset(); }

  [[nodiscard]] explicit operator bool() const noexcept { return scope_ != nullptr; }
  void reset() noexcept {
    if (scope_) CancellationRuntime::drop_lease(*std::exchange(scope_, nullptr));
  }

  // Starts a child in the scope, on the scope's home loop. Its errors belong to the scope. The
  // lease stays.
  void start(Task<void> task) const;
  // Asks the scope to stop: for a frame's scope, the task that it belongs to.
  void cancel(const CancelReason& reason = reasons::requested) const noexcept;
  [[nodiscard]] bool is_cancelled() const noexcept;

 private:
  friend class Scope;
  template <class>
  friend class Task;
  explicit PromiseChildLease(Scope& scope) noexcept : scope_(&scope) {}
  // UsageError if it is empty. Asked before anything is taken from a Task, so that nothing leaks.
  const PromiseChildLease& require() const;
  // The count goes to the child. Requires: not empty.
  Scope& consume() noexcept { return *std::exchange(scope_, nullptr); }

  Scope* scope_ = nullptr;
};

[[nodiscard]] inline PromiseChildLease make_promise_child_lease(Scope& scope) {
  return scope.lease();
}

// Cancels one task; may outlive it. Any thread.
class [[nodiscard]] CancelHandle {
 public:
  CancelHandle() = default;
  CancelHandle(const CancelHandle& other) noexcept : strand_(other.strand_) {
    if (strand_) strand_->state.add_ref();
  }
  CancelHandle(CancelHandle&& other) noexcept : strand_(std::exchange(other.strand_, nullptr)) {}
  CancelHandle& operator=(CancelHandle other) noexcept {
    std::swap(strand_, other.strand_);
    return *this;
  }
  ~CancelHandle() {
    if (strand_) CancellationRuntime::drop_ref(*strand_);
  }
  void cancel(const CancelReason& reason = reasons::requested) const noexcept {
    if (strand_) CancellationRuntime::cancel(*strand_, reason);
  }

 private:
  template <class>
  friend class StartedTask;
  explicit CancelHandle(detail::Strand& strand) noexcept : strand_(&strand) {
    strand.state.add_ref();
  }
  detail::Strand* strand_ = nullptr;
};

namespace detail {

template <class T>
T take_value(Strand& strand) {
  Ended& ended = strand.ended();
  ended.read = true;
  if (ended.kind == OutcomeKind::error) ended.error.rethrow();
  if (ended.kind == OutcomeKind::cancelled) throw TaskCancelled(strand.why());
  if constexpr (!std::is_void_v<T>) return give<T>(TaskBlock<T>::value_of(strand));
}

// Waiting for a strand, whoever owns it.
class JoinAwaiterBase : protected JoinWaiter {
 public:
  using native_awaiter = void;
  JoinAwaiterBase(const JoinAwaiterBase&) = delete;
  JoinAwaiterBase& operator=(const JoinAwaiterBase&) = delete;

  [[nodiscard]] bool await_must_resume() const noexcept {
    return strand_->ended().kind != OutcomeKind::cancelled;
  }
  // The strand that waits by it, if it is one of these.
  [[nodiscard]] static Strand* waiting_by(JoinWaiter& waiter) noexcept {
    return waiter.is_awaiter ? static_cast<JoinAwaiterBase&>(waiter).waiter_.strand() : nullptr;
  }
  // The same, if it cannot go on before that: Waker::needing().
  [[nodiscard]] static Strand* needing_by(JoinWaiter& waiter) noexcept {
    return waiter.is_awaiter ? static_cast<JoinAwaiterBase&>(waiter).waiter_.needing() : nullptr;
  }
  void await_introspect(auto& tree) noexcept {
    tree.node("task");
    if (strand_ && !done_) tree.task(*strand_);
  }

 protected:
  JoinAwaiterBase() noexcept : JoinWaiter(&on_done) { is_awaiter = true; }
  ~JoinAwaiterBase() = default;

  // Waits for `strand`, which was just started with this waiter.
  void wait_for(Strand& strand, Continuation waiter) noexcept;
  // Returns: false if it has ended already. UsageError if someone else waits.
  bool attach(Strand& strand, Continuation waiter);
  // Cancels what is awaited. Returns: true if it ended cancelled by itself before.
  bool cancel_awaited() noexcept;

  Strand* strand_ = nullptr;
  Continuation waiter_;
  bool asked_ = false;
  bool done_ = false;

 private:
  static void on_done(Runnable& work) noexcept;
};

// A Task as a branch: started when the wait begins, a strand of its own.
template <class T>
class TaskAwaiter final : public JoinAwaiterBase {
 public:
  explicit TaskAwaiter(Frame* frame) noexcept : frame_(frame) {}
  ~TaskAwaiter() {
    if (frame_) frame_->handle().destroy();
    if (strand_) CancellationRuntime::drop_ref(*strand_);
  }

  static constexpr bool await_ready() noexcept { return false; }
  // A Task is entered although it is cancelled, and runs to its first cancellable await.
  std::false_type await_early_cancel() noexcept {
    asked_ = true;
    reason_ = &ambient_cancel_reason();
    return {};
  }
  void await_suspend(Continuation waiter) {
    takes_strand = true;
    home = thread_state().executor->home();
    Frame& first = *std::exchange(frame_, nullptr);
    wait_for(
        CancellationRuntime::start_here(first, nullptr, {.waiter = this, .cancelled = reason_}),
        waiter);
  }
  bool await_cancel(Continuation) noexcept { return cancel_awaited(); }
  T await_resume() { return take_value<T>(*strand_); }

 private:
  Frame* frame_;
  const CancelReason* reason_ = nullptr;
};

}  // namespace detail

template <class T>
class [[nodiscard("a dropped handle cancels its task; detach() lets it run")]] StartedTask {
 public:
  StartedTask() = default;
  StartedTask(StartedTask&& other) noexcept : strand_(std::exchange(other.strand_, nullptr)) {}
  StartedTask& operator=(StartedTask&& other) noexcept {
    StartedTask(std::move(other)).swap(*this);
    return *this;
  }
  ~StartedTask() {
    if (!strand_) return;
    CancellationRuntime::cancel(*strand_, reasons::handle_dropped);
    drop();
  }
  void swap(StartedTask& other) noexcept { std::swap(strand_, other.strand_); }

  [[nodiscard]] bool valid() const noexcept { return strand_ != nullptr; }
  [[nodiscard]] bool is_done() const noexcept { return !strand_ || strand_->waiter.done(); }

  void cancel(const CancelReason& reason = reasons::requested) noexcept {
    if (strand_) CancellationRuntime::cancel(*strand_, reason);
  }
  // Lets go without cancelling. The task stays a child of its scope.
  void detach() noexcept {
    if (strand_) drop();
  }
  [[nodiscard]] CancelHandle cancel_handle() const { return CancelHandle(require()); }

  auto operator co_await() && { return Join(std::move(*this)); }
  // The handle must outlive the wait.
  [[nodiscard]] auto outcome() & { return OutcomeWait(require()); }

 private:
  template <class>
  friend class Task;
  explicit StartedTask(detail::Strand& strand) noexcept : strand_(&strand) {}

  detail::Strand& require() const {
    if (!strand_)
      detail::throw_usage_error(
          "this StartedTask is empty: it was moved from, awaited or detached");
    return *strand_;
  }
  void drop() noexcept {
    detail::Strand& strand = *std::exchange(strand_, nullptr);
    strand.state.clear_handle();
    CancellationRuntime::drop_ref(strand);
  }

  class Join final : public detail::JoinAwaiterBase {
   public:
    explicit Join(StartedTask&& task) : task_(std::move(task)) { strand_ = &task_.require(); }
    bool await_ready() const noexcept {
      return strand_->waiter.done() && strand_->ended().kind != detail::OutcomeKind::cancelled;
    }
    std::false_type await_early_cancel() noexcept {
      asked_ = true;
      task_.cancel(detail::ambient_cancel_reason());
      return {};
    }
    bool await_suspend(detail::Continuation waiter) { return attach(*strand_, waiter); }
    bool await_cancel(detail::Continuation) noexcept { return cancel_awaited(); }
    T await_resume() { return detail::take_value<T>(*strand_); }

   private:
    StartedTask task_;
  };

  class OutcomeOf final : public detail::JoinAwaiterBase {
   public:
    explicit OutcomeOf(detail::Strand& strand) noexcept { strand_ = &strand; }
    bool await_ready() const noexcept { return strand_->waiter.done(); }
    bool await_suspend(detail::Continuation waiter) {
      asked_ = true;  // cancelled is an outcome like the others
      return attach(*strand_, waiter);
    }
    bool await_cancel(detail::Continuation) noexcept { return strand_->waiter.withdraw(*this); }
    // It ended before the wait could be withdrawn; the handle still holds the outcome.
    static constexpr std::false_type await_must_resume() noexcept { return {}; }
    Outcome<T> await_resume() {
      detail::Ended& ended = strand_->ended();
      ended.read = true;
      if (ended.kind == detail::OutcomeKind::error) return Outcome<T>::error(ended.error);
      if (ended.kind == detail::OutcomeKind::cancelled)
        return Outcome<T>::cancelled(strand_->why());
      if constexpr (std::is_void_v<T>) {
        return Outcome<T>::value({});
      } else {
        return Outcome<T>::value(std::move(detail::TaskBlock<T>::value_of(*strand_)));
      }
    }
  };

  // A description, so that combinators can take it: the awaiter itself does not move.
  class OutcomeWait {
   public:
    explicit OutcomeWait(detail::Strand& strand) noexcept : strand_(&strand) {}
    OutcomeOf operator co_await() const noexcept { return OutcomeOf(*strand_); }

   private:
    detail::Strand* strand_;
  };

  detail::Strand* strand_ = nullptr;
};

namespace detail {
// The scope of the innermost frame that runs now, or UsageError.
[[nodiscard]] Scope& running_scope(const char* what);
}  // namespace detail

template <class T>
StartedTask<T> Task<T>::start(Scope& scope) && {
  CancellationRuntime::require_home(scope, "Task::start()");
  return StartedTask<T>(
      CancellationRuntime::start_here(*release_for_await(), &scope, {.with_handle = true}));
}
template <class T>
StartedTask<T> Task<T>::start_immediate(Scope& scope) && {
  CancellationRuntime::require_home(scope, "Task::start_immediate()");
  return StartedTask<T>(CancellationRuntime::start_now(*release_for_await(), scope));
}
template <class T>
StartedTask<T> Task<T>::start_in_current_scope() && {
  return std::move(*this).start(detail::running_scope("start_in_current_scope()"));
}
template <class T>
StartedTask<T> Task<T>::start_immediate_in_current_scope() && {
  return std::move(*this).start_immediate(
      detail::running_scope("start_immediate_in_current_scope()"));
}
template <class T>
StartedTask<T> Task<T>::start_with_parent_scope(PromiseChildLease lease) && {
  lease.require();
  detail::Frame* first = release_for_await();
  return StartedTask<T>(CancellationRuntime::start_leased(*first, lease.consume(), true));
}
template <class T>
StartedTask<T> Task<T>::start_immediate_with_parent_scope(PromiseChildLease lease) && {
  static_cast<void>(Executor::current("start_immediate_with_parent_scope()"));
  lease.require();
  detail::Frame* first = release_for_await();
  return StartedTask<T>(CancellationRuntime::start_leased_now(*first, lease.consume()));
}

}  // namespace weft::inline v0
