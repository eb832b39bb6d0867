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
#include <utility>

#include "weft/base/result.h"
#include "weft/core/interruptible.h"
#include "weft/core/invoked.h"
#include "weft/time/sleep.h"

namespace weft::inline v0 {

namespace detail {

template <class A>
class TimeoutAwaiter final : public Interruptible<A, TimedOut>, private Waker {
  using Base = Interruptible<A, TimedOut>;

 public:
  TimeoutAwaiter(When when, A&& awaitable) : Base(std::forward<A>(awaitable)), when_(when) {}

  bool await_suspend(Continuation waiter) {
    this->waiter_ = waiter;
    if (!this->cancelled_) alarm_.arm(when_.deadline(), Continuation(static_cast<Waker&>(*this)));
    if (!this->start()) return true;
    alarm_.disarm();
    return this->gives_up();
  }
  bool await_cancel(Continuation) noexcept {
    if (this->gave_up_) return true;
    this->cancelled_ = true;
    alarm_.disarm();
    return this->branch_.cancel() && this->end_cancelled();
  }
  void await_introspect(auto& tree) noexcept {
    tree.node(this->interrupted_ ? "timeout, expired" : "timeout");
    tree.child(this->branch_.awaiter());
  }

 private:
  void over(BranchBase&) noexcept override {
    alarm_.disarm();
    this->end();
  }
  // Time has run out.
  void wake() noexcept override {
    if (this->interrupt(reasons::timed_out)) this->waiter_.wake();
  }
  bool cancel_with(const CancelReason&) noexcept override { return false; }
  [[nodiscard]] Strand* waiting() const noexcept override { return Base::waiting(); }

  When when_;
  Alarm alarm_;
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
