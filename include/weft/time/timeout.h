// SPDX-License-Identifier: MIT
#pragma once
// weft::timeout(duration, x), deadline(time_point, x): x, or TimedOut.
//
//     std::expected<Reply, TimedOut> reply = co_await timeout(2s, request());
//
// When time runs out x is cancelled, and the wait ends when x has. If x has a result after all, that
// is delivered: nothing taken is lost. Timed out is not cancelled: only the caller's own
// cancellation cancels the caller.
//
// Cancellation   passed to x.
// Errors         x's pass through.
// Allocation     none.
#include <chrono>
#include <expected>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/branch.h"
#include "weft/core/invoked.h"
#include "weft/time/sleep.h"

namespace weft::inline v0 {

namespace detail {

template <class A>
class TimeoutAwaiter final : private BranchOwner, private Waker {
  using Inner = typename Branch<A>::Result;

 public:
  using native_awaiter = void;
  using Result = std::expected<
      std::conditional_t<std::is_reference_v<Inner>, std::add_pointer_t<Inner>, Inner>, TimedOut>;

  TimeoutAwaiter(When when, A&& awaitable) : branch_(std::forward<A>(awaitable)), when_(when) {}

  static constexpr bool await_ready() noexcept { return false; }
  std::conditional_t<kBranchSkippable<A>, std::true_type, std::false_type>
  await_early_cancel() noexcept {
    cancelled_ = true;
    return {};
  }
  bool await_suspend(Continuation waiter) {
    waiter_ = waiter;
    if (!cancelled_) alarm_.arm(when_.deadline(), Continuation(static_cast<Waker&>(*this)));
    if (!branch_.start(*this, cancelled_)) return true;
    alarm_.disarm();
    return gives_up();
  }
  bool await_cancel(Continuation) noexcept {
    if (gave_up_) return true;
    cancelled_ = true;
    alarm_.disarm();
    if (!branch_.cancel()) return false;
    if (!await_must_resume()) return true;
    waiter_.wake();
    return false;
  }
  [[nodiscard]] bool await_must_resume() const noexcept { return branch_.has_result(); }
  Result await_resume() {
    if (branch_.is_cancelled() && timed_out_) return std::unexpected(TimedOut{});
    if constexpr (std::is_void_v<Inner>) {
      branch_.take();
      return {};
    } else if constexpr (std::is_reference_v<Inner>) {
      return std::addressof(branch_.take());
    } else {
      return branch_.take();
    }
  }
  void await_introspect(auto& tree) noexcept {
    tree.node(timed_out_ ? "timeout, expired" : "timeout");
    tree.child(branch_.awaiter());
  }

 private:
  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }
  void over(BranchBase&) noexcept override {
    alarm_.disarm();
    if (!gives_up()) waiter_.wake();
  }
  // x ended cancelled, and neither time nor the caller had asked.
  bool gives_up() noexcept {
    if (branch_.has_result() || cancelled_ || timed_out_ || !branch_.unasked()) return false;
    gave_up_ = true;
    return waiter_.cancel_with(*branch_.unasked());
  }
  // Time has run out.
  void wake() noexcept override {
    timed_out_ = true;
    AmbientCancelReason reason(reasons::timed_out);
    if (branch_.cancel()) waiter_.wake();
  }
  bool cancel_with(const CancelReason&) noexcept override { return false; }

  Branch<A> branch_;
  When when_;
  Alarm alarm_;
  Continuation waiter_;
  bool cancelled_ = false;
  bool timed_out_ = false;
  bool gave_up_ = false;
};

template <class A>
class Timeout {
 public:
  Timeout(When when, A&& awaitable) : when_(when), awaitable_(std::forward<A>(awaitable)) {}
  TimeoutAwaiter<A> operator co_await() && {
    return TimeoutAwaiter<A>(when_, std::forward<A>(awaitable_));
  }

 private:
  When when_;
  A awaitable_;
};

}  // namespace detail

// Counted from the start of the wait.
template <class Rep, class Period, AwaitableOrCallable A>
[[nodiscard]] auto timeout(std::chrono::duration<Rep, Period> duration, A&& awaitable) {
  return detail::Timeout<detail::AsAwaitable<A>>(detail::When(detail::saturated(duration)),
                                                 detail::as_awaitable(std::forward<A>(awaitable)));
}
template <AwaitableOrCallable A>
[[nodiscard]] auto deadline(TimePoint when, A&& awaitable) {
  return detail::Timeout<detail::AsAwaitable<A>>(detail::When(when),
                                                 detail::as_awaitable(std::forward<A>(awaitable)));
}

}  // namespace weft::inline v0
