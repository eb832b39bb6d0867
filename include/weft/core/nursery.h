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

template <class Fn, class... Args>
concept ReturnsAwaitable =
    std::invocable<Fn, Args...> && Awaitable<std::invoke_result_t<Fn, Args...>>;

}  // namespace detail

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
  [[nodiscard]] bool any_cancelled() const noexcept { return any_cancelled_; }

 private:
  friend struct CancellationRuntime;

  // It may have become empty.
  void progress() noexcept;

  detail::Strand strand_;
  detail::Continuation waiter_;
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
    if (std::exception_ptr error = CancellationRuntime::take_errors(*this, nullptr))
      std::rethrow_exception(error);
  }
  void await_introspect(auto& tree) noexcept {
    tree.node("nursery");
    tree.children(*this);
  }

 private:
  // Hears what the body returned.
  struct BodyEnd : JoinWaiter {
    explicit BodyEnd(NurseryAwaiter& of) noexcept : JoinWaiter(&on_done), nursery(&of) {}
    static void on_done(Runnable& work) noexcept {
      auto& self = static_cast<BodyEnd&>(work);
      if (self.strand->ended().kind != OutcomeKind::value) return;
      if (TaskBlock<NurseryEnd>::value_of(*self.strand) == NurseryEnd::cancel) {
        CancellationRuntime::cancel(self.nursery->strand(), reasons::body_cancelled);
      }
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

}  // namespace detail

// Requires: body is called with a Nursery& and returns Task<NurseryEnd>. It is kept alive until all
// have ended.
template <class Fn>
  requires std::same_as<std::invoke_result_t<Fn&, Nursery&>, Task<NurseryEnd>>
[[nodiscard]] auto with_nursery(Fn&& body) {
  return detail::NurseryAwaitable<Fn>(std::forward<Fn>(body));
}

}  // namespace weft::inline v0
