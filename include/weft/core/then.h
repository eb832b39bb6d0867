// SPDX-License-Identifier: MIT
#pragma once
// weft::then: one awaitable after another, without a coroutine frame for it.
//
//     co_await (connect() | then([](Socket& s) { return handshake(s); }));
//
// The first result lives until the second awaitable has ended, so it may be taken by reference.
//
// Cancellation   goes to the stage that runs. If the first completes although it was cancelled, f is
//                called and the second starts cancelled: nothing taken is lost.
// Errors         the first stage's, f's own and the second's pass through.
// Allocation     none.
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/core/branch.h"
#include "weft/core/invoked.h"

namespace weft::inline v0 {

namespace detail {

template <class F, class R>
auto call_with(F& fn, Storable<R>& value) -> decltype(auto) {
  if constexpr (std::is_void_v<R>) {
    return std::invoke(fn);
  } else if constexpr (std::is_reference_v<R>) {
    return std::invoke(fn, static_cast<R>(*value));
  } else if constexpr (std::invocable<F&, R&>) {
    return std::invoke(fn, value);
  } else {
    return std::invoke(fn, std::move(value));
  }
}

template <class A, class F>
class ThenAwaiter final : private BranchOwner {
  using First = typename Branch<A>::Result;
  using Next = decltype(call_with<F, First>(std::declval<F&>(), std::declval<Storable<First>&>()));
  static_assert(Awaitable<Next>, "weft: the function given to then() must return an awaitable");

 public:
  using native_awaiter = void;
  ThenAwaiter(A&& first, F&& fn) : first_(std::forward<A>(first)), fn_(std::move(fn)) {}

  static constexpr bool await_ready() noexcept { return false; }
  std::conditional_t<kBranchSkippable<A>, std::true_type, std::false_type>
  await_early_cancel() noexcept {
    cancelled_ = true;
    return {};
  }
  bool await_suspend(Continuation waiter) noexcept {
    waiter_ = waiter;
    return !first_.start(*this, cancelled_) || !advance() || gives_up();
  }
  bool await_cancel(Continuation) noexcept {
    if (gave_up_) return true;
    cancelled_ = true;
    BranchBase& now = second_ ? static_cast<BranchBase&>(*second_) : first_;
    if (!now.cancel()) return false;
    if (!second_ && first_.has_result() && !advance()) return false;
    if (!await_must_resume()) return true;
    waiter_.wake();
    return false;
  }
  [[nodiscard]] bool await_must_resume() const noexcept {
    return static_cast<bool>(error_) || (second_ && second_->has_result());
  }
  typename Branch<Next>::Result await_resume() {
    if (error_) error_.rethrow();
    if (!second_) throw TaskCancelled(unasked() ? *unasked() : reasons::requested);
    return second_->take();
  }
  void await_introspect(auto& tree) noexcept {
    tree.node("then");
    if (second_) {
      tree.child(second_->awaiter());
    } else {
      tree.child(first_.awaiter());
    }
  }

 private:
  // The first stage is over. Returns: true if that is the end of it all.
  bool advance() noexcept {
    if (!first_.has_result()) return true;
    try {
      value_.emplace(store<First>([&]() -> decltype(auto) { return first_.take(); }));
      second_.emplace([&]() -> Next { return call_with<F, First>(fn_, *value_); });
    } catch (...) {
      error_ = CaughtError::current();
      return true;
    }
    return second_->start(*this, cancelled_);
  }
  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }
  [[nodiscard]] Strand* needing() const noexcept override { return waiter_.needing(); }
  void over(BranchBase& branch) noexcept override {
    if (&branch == &first_ && !advance()) return;
    if (!gives_up()) waiter_.wake();
  }
  [[nodiscard]] const CancelReason* unasked() const noexcept {
    return second_ ? second_->unasked() : first_.unasked();
  }
  // A stage ended cancelled, and nobody here had asked. Returns: true if the waiter goes the same way.
  bool gives_up() noexcept {
    if (await_must_resume() || cancelled_ || !unasked()) return false;
    gave_up_ = true;
    return waiter_.cancel_with(*unasked());
  }

  Branch<A> first_;
  F fn_;
  std::optional<Storable<First>> value_;
  LaterBranch<Next> second_;
  Continuation waiter_;
  CaughtError error_;
  bool cancelled_ = false;
  bool gave_up_ = false;
};

template <class F>
class Then {
 public:
  explicit Then(F fn) : fn_(std::move(fn)) {}
  F take() && { return std::move(fn_); }

 private:
  F fn_;
};

template <class A, class F>
class Chained {
 public:
  Chained(A&& first, F&& fn) : first_(std::forward<A>(first)), fn_(std::move(fn)) {}
  ThenAwaiter<A, F> operator co_await() && {
    return ThenAwaiter<A, F>(std::forward<A>(first_), std::move(fn_));
  }

 private:
  A first_;
  F fn_;
};

template <AwaitableOrCallable A, class F>
auto operator|(A&& first, Then<F>&& next) {
  return Chained<AsAwaitable<A>, F>(as_awaitable(std::forward<A>(first)), std::move(next).take());
}

}  // namespace detail

template <class F>
[[nodiscard]] auto then(F&& fn) {
  detail::check_callable<F>();
  return detail::Then<std::decay_t<F>>(std::forward<F>(fn));
}

}  // namespace weft::inline v0
