// SPDX-License-Identifier: MIT
#pragma once
// weft::Nursery: a scope of its own, opened for a stretch of code. Children are joined while the
// caller's locals live.
//
//     co_await with_nursery([&](Nursery& n) -> Task<NurseryEnd> {
//       n.start(fetch(1));
//       n.start(fetch(2));
//       co_return join;      // wait for them; `cancel` would cancel them first
//     });
//
// Threads        every member, the nursery's home loop only (UsageError elsewhere). From other
//                threads: lease() and cancel_handle(), which may travel.
// Cancellation   cancelling the awaiting task cancels the nursery: its body and every child, in
//                start order, before any task runs. cancel() does so without touching the awaiting
//                task. Starting after that is allowed: the child runs to its first cancellable
//                await.
// Errors         the first error of the body or a child cancels the rest and is rethrown by
//                with_nursery once all have ended; other_errors() has the others.
// Allocation     none; start(lambda) makes one frame for the lambda and one for its task.
//
// Invariants
//   N1  it completes when the body, every child and every lease are gone, and no kick is under way.
//   N2  the body is the first child, and a strand of its own.
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/core/cancellation_runtime.h"
#include "weft/core/task.h"

namespace weft::inline v0 {

// What the body wants done with the children that still run.
enum class NurseryEnd { join, cancel };
inline constexpr NurseryEnd join = NurseryEnd::join;
inline constexpr NurseryEnd cancel = NurseryEnd::cancel;

namespace detail {

// Keeps a callable and its arguments alive while the task that it made runs.
template <class Fn, class... Args>
Task<void> run_callable(Fn fn, Args... args) {
  co_await std::invoke(fn, std::move(args)...);
}

template <class T>
class StartAwaiterBase;

template <class Fn, class... Args>
concept ReturnsAwaitable =
    std::invocable<Fn, Args...> && Awaitable<std::invoke_result_t<Fn, Args...>>;

}  // namespace detail

template <class T = void>
class TaskStarted;

class Nursery : public Scope {
 public:
  void start(Task<void> task) {
    CancellationRuntime::require_home(*this, "Nursery::start()");
    CancellationRuntime::start_here(*task.release_for_await(), this, {});
  }
  // A callable that returns a Task (or any awaitable), and its arguments, by value. Its result is
  // dropped.
  template <class Fn, class... Args>
    requires detail::ReturnsAwaitable<std::decay_t<Fn>&, std::decay_t<Args>...>
  void start(Fn&& fn, Args&&... args) {
    start(detail::run_callable<std::decay_t<Fn>, std::decay_t<Args>...>(
        std::forward<Fn>(fn), std::forward<Args>(args)...));
  }

  // The same, on another loop. The child is this nursery's like any other: joined, cancelled, and
  // its error ends the rest; but it lives there. LoopStopped, and nothing is started, if that loop
  // takes no more tasks; see core/moving.h.
  void start_on(Executor& loop, Task<void> task);
  template <class Fn, class... Args>
    requires detail::ReturnsAwaitable<std::decay_t<Fn>&, std::decay_t<Args>...>
  void start_on(Executor& loop, Fn&& fn, Args&&... args) {
    start_on(loop, detail::run_callable<std::decay_t<Fn>, std::decay_t<Args>...>(
                       std::forward<Fn>(fn), std::forward<Args>(args)...));
  }

  // The same, on whichever worker of this loop's IOContext has time for it first (run/io_context.h).
  // UsageError on a loop that is nobody's worker.
  void schedule(Task<void> task);
  template <class Fn, class... Args>
    requires detail::ReturnsAwaitable<std::decay_t<Fn>&, std::decay_t<Args>...>
  void schedule(Fn&& fn, Args&&... args) {
    schedule(detail::run_callable<std::decay_t<Fn>, std::decay_t<Args>...>(
        std::forward<Fn>(fn), std::forward<Args>(args)...));
  }

  // A child that says when it is ready: its last parameter is a TaskStarted<T>. Await the result: it
  // is what the child reported. Until then the child belongs to the awaiting task, and is cancelled
  // with it; from then on it belongs to the nursery. If it ends without a report, its error is
  // rethrown here, or UsageError says so.
  //     int port = co_await n.start<int>(serve, address);   // Task<> serve(Address, TaskStarted<int>)
  template <class T, class Fn, class... Args>
    requires std::invocable<std::decay_t<Fn>&, std::decay_t<Args>..., TaskStarted<T>>
  [[nodiscard]] auto start(Fn&& fn, Args&&... args);

  // Children that have not ended, the body included.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Cancels this nursery; may travel to other threads. Counts as a lease: the nursery stays open
  // until it is dropped.
  [[nodiscard]] PromiseChildLease cancel_handle() { return lease(); }

 protected:
  Nursery() noexcept;
  ~Nursery();

  void open(detail::Continuation waiter);
  [[nodiscard]] detail::Strand& strand() noexcept { return strand_; }
  // Instead of what an error of a child does otherwise. Home loop.
  using ChildError = void (*)(Nursery&, const detail::CaughtError&) noexcept;
  void on_child_error(ChildError handler) noexcept { on_child_error_ = handler; }
  [[nodiscard]] bool any_cancelled() const noexcept { return any_cancelled_; }

 private:
  template <class>
  friend class detail::StartAwaiterBase;
  friend struct CancellationRuntime;

  // It may have become empty.
  void progress() noexcept;

  detail::Strand strand_;
  detail::Continuation waiter_;
  void (*on_settled_)(Nursery&) noexcept = nullptr;  // before the waiter is woken
  ChildError on_child_error_ = nullptr;
  std::size_t size_ = 0;
  bool any_cancelled_ = false;  // a child ended as cancelled
  bool completed_ = false;
};

namespace detail {

template <class Fn>
class NurseryAwaiter final : private Nursery {
 public:
  using native_awaiter = void;
  explicit NurseryAwaiter(Fn&& body) : body_(std::forward<Fn>(body)), end_(*this) {}

  static constexpr bool await_ready() noexcept { return false; }
  std::false_type await_early_cancel() noexcept {
    early_ = &ambient_cancel_reason();
    return {};
  }
  void await_suspend(Continuation waiter) {
    Task<NurseryEnd> body = std::invoke(body_, static_cast<Nursery&>(*this));
    open(waiter);
    if (early_) await_cancel(waiter);
    end_.home = thread_state().executor->home();
    end_.strand =
        &CancellationRuntime::start_here(*body.release_for_await(), this, {.waiter = &end_});
  }
  bool await_cancel(Continuation) noexcept {
    asked_ = true;
    CancellationRuntime::cancel(strand(), early_ ? *early_ : ambient_cancel_reason());
    return false;
  }
  [[nodiscard]] bool await_must_resume() const noexcept {
    return !asked_ || CancellationRuntime::has_errors(*this) || !any_cancelled();
  }
  void await_resume() {
    if (CaughtError error = CancellationRuntime::take_errors(*this, nullptr)) error.rethrow();
  }
  void await_introspect(auto& tree) noexcept {
    tree.node("nursery");
    tree.children(*this);
  }

 private:
  // Hears what the body returned.
  struct BodyEnd : JoinWaiter {
    explicit BodyEnd(NurseryAwaiter& of) noexcept : JoinWaiter(&on_done), nursery(&of) {
      tells_parent = true;
    }
    static void on_done(Runnable& work) noexcept {
      auto& self = static_cast<BodyEnd&>(work);
      Strand& body = *self.strand;
      if (body.ended().kind == OutcomeKind::value &&
          TaskBlock<NurseryEnd>::value_of(body) == NurseryEnd::cancel) {
        CancellationRuntime::cancel(self.nursery->strand(), reasons::body_cancelled);
      }
      if (self.elsewhere) CancellationRuntime::child_ended_elsewhere(body);
    }
    NurseryAwaiter* nursery;
    Strand* strand = nullptr;
  };

  Fn body_;
  BodyEnd end_;
  const CancelReason* early_ = nullptr;
  bool asked_ = false;
};

template <class Fn>
class NurseryAwaitable {
 public:
  explicit NurseryAwaitable(Fn&& body) : body_(std::forward<Fn>(body)) {}
  NurseryAwaiter<Fn> operator co_await() && { return NurseryAwaiter<Fn>(std::forward<Fn>(body_)); }

 private:
  Fn body_;
};

template <class T>
class StartAwaiterBase : private Nursery {
 public:
  using native_awaiter = void;

  static constexpr bool await_ready() noexcept { return false; }
  std::false_type await_early_cancel() noexcept {
    early_ = &ambient_cancel_reason();
    return {};
  }
  bool await_cancel(Continuation) noexcept {
    asked_ = true;
    CancellationRuntime::cancel(strand(), early_ ? *early_ : ambient_cancel_reason());
    return false;
  }
  [[nodiscard]] bool await_must_resume() const noexcept {
    return reported_ || !asked_ || CancellationRuntime::has_errors(*this) || !any_cancelled();
  }
  T await_resume() {
    if (reported_) return give<T>(*reported_);
    if (CaughtError error = CancellationRuntime::take_errors(*this, nullptr)) error.rethrow();
    throw_usage_error("a child given a TaskStarted ended without calling it");
  }
  void await_introspect(auto& tree) noexcept {
    tree.node("start");
    tree.children(*this);
  }

 protected:
  explicit StartAwaiterBase(Nursery& target) noexcept : target_(target) {}
  ~StartAwaiterBase() = default;

  void begin(Continuation waiter, Task<void> child) {
    CancellationRuntime::require_home(target_, "Nursery::start()");
    open(waiter);
    if (early_) await_cancel(waiter);
    CancellationRuntime::add_lease(target_);  // the nursery waits for a start under way
    child_ = &CancellationRuntime::start_here(*child.release_for_await(), this, {});
    on_settled_ = [](Nursery& self) noexcept {
      CancellationRuntime::drop_lease_at_home(static_cast<StartAwaiterBase&>(self).target_);
    };
  }

 private:
  friend class TaskStarted<T>;

  template <class... Value>
  void report(Value&&... value) {
    if (reported_) throw_usage_error("a TaskStarted is called once");
    CancellationRuntime::require_home(target_, "a TaskStarted");
    reported_.emplace(std::forward<Value>(value)...);
    CancellationRuntime::move_child(*child_, target_);
  }

  Nursery& target_;
  Strand* child_ = nullptr;
  std::optional<Kept<T>> reported_;
  const CancelReason* early_ = nullptr;
  bool asked_ = false;
};

template <class T, class Fn, class... Args>
class StartAwaiter final : public StartAwaiterBase<T> {
 public:
  StartAwaiter(Nursery& target, Fn&& fn, std::tuple<Args...>&& args)
      : StartAwaiterBase<T>(target), fn_(std::move(fn)), args_(std::move(args)) {}

  void await_suspend(Continuation waiter) {
    this->begin(waiter, std::apply(
                            [&](Args&... each) {
                              return run_callable<Fn, Args..., TaskStarted<T>>(
                                  std::move(fn_), std::move(each)..., TaskStarted<T>(*this));
                            },
                            args_));
  }

 private:
  Fn fn_;
  std::tuple<Args...> args_;
};

template <class T, class Fn, class... Args>
class StartDescription {
 public:
  StartDescription(Nursery& target, Fn fn, Args... args)
      : target_(target), fn_(std::move(fn)), args_(std::move(args)...) {}
  StartAwaiter<T, Fn, Args...> operator co_await() && {
    return StartAwaiter<T, Fn, Args...>(target_, std::move(fn_), std::move(args_));
  }

 private:
  Nursery& target_;
  Fn fn_;
  std::tuple<Args...> args_;
};

}  // namespace detail

// Requires: body is called with a Nursery& and returns Task<NurseryEnd>. It is kept alive until all
// have ended: moved or copied into the description. (A named one that cannot be copied is referred
// to, and must outlive it.)
template <class Fn>
  requires std::same_as<std::invoke_result_t<Fn&, Nursery&>, Task<NurseryEnd>>
[[nodiscard]] auto with_nursery(Fn&& body) {
  detail::check_callable<Fn>();
  using Kept = detail::KeptFunction<Fn>;
  return detail::NurseryAwaitable<Kept>(static_cast<Kept>(std::forward<Fn>(body)));
}

// What a child reports by when it is ready. Move-only; belongs to the child's task.
template <class T>
class TaskStarted {
 public:
  TaskStarted(TaskStarted&& other) noexcept : starter_(std::exchange(other.starter_, nullptr)) {}
  TaskStarted& operator=(TaskStarted&& other) noexcept {
    std::swap(starter_, other.starter_);
    return *this;
  }

  // Once, on the child's home loop. The starter goes on with the value.
  template <class... Value>
    requires(std::is_void_v<T> ? sizeof...(Value) == 0 : sizeof...(Value) == 1)
  void operator()(Value&&... value) {
    if (!starter_) detail::throw_usage_error("a TaskStarted is called once");
    std::exchange(starter_, nullptr)->report(std::forward<Value>(value)...);
  }

 private:
  template <class, class, class...>
  friend class detail::StartAwaiter;
  explicit TaskStarted(detail::StartAwaiterBase<T>& starter) noexcept : starter_(&starter) {}

  detail::StartAwaiterBase<T>* starter_;
};

template <class T, class Fn, class... Args>
  requires std::invocable<std::decay_t<Fn>&, std::decay_t<Args>..., TaskStarted<T>>
auto Nursery::start(Fn&& fn, Args&&... args) {
  return detail::StartDescription<T, std::decay_t<Fn>, std::decay_t<Args>...>(
      *this, std::forward<Fn>(fn), std::forward<Args>(args)...);
}

// For objects that own a nursery: opens one, points `nursery` to it, reports, and keeps it open until
// cancelled. `nursery` is null again when every child has ended.
//     co_await outer.start<void>(open_nursery, std::ref(nursery_));
Task<void> open_nursery(Nursery*& nursery, TaskStarted<void> started);

}  // namespace weft::inline v0
