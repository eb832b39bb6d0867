// SPDX-License-Identifier: MIT
#pragma once
// weft::timeout(duration, x), deadline(time_point, x): x, or TimedOut. within(duration, x): the same for
// an x that returns a Result, with std::errc::timed_out among its errors.
//
//     std::expected<Reply, TimedOut> reply = co_await timeout(2s, request());
//     Result<std::size_t> count = co_await within(2s, stream.read_some(buffer));
//
// When time runs out x is cancelled, and the wait ends when x has. If x has a result after all, that
// is delivered: nothing taken is lost. Timed out is not cancelled: only the caller's own
// cancellation cancels the caller.
//
// Cancellation   passed to x.
// Errors         x's pass through.
// Allocation     none.
#include <chrono>
#include <concepts>
#include <system_error>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/interruptible.h"
#include "weft/core/invoked.h"
#include "weft/time/sleep.h"

namespace weft::inline v0 {

namespace detail {

template <class A>
class TimeoutAwaiter : public Interruptible<A, TimedOut>, private Waker {
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

// The time that ran out as one more error of A's.
template <class A>
class WithinAwaiter final : public TimeoutAwaiter<A> {
 public:
  using TimeoutAwaiter<A>::TimeoutAwaiter;
  typename TimeoutAwaiter<A>::Result::value_type await_resume() {
    auto result = TimeoutAwaiter<A>::await_resume();
    if (!result) return std::unexpected(std::make_error_code(std::errc::timed_out));
    return std::move(*result);
  }
};

template <class A, template <class> class AwaiterOf = TimeoutAwaiter>
class Timeout {
 public:
  Timeout(When when, A&& awaitable) : when_(when), awaitable_(std::forward<A>(awaitable)) {}
  AwaiterOf<A> operator co_await() && { return AwaiterOf<A>(when_, std::forward<A>(awaitable_)); }

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
template <class Rep, class Period, AwaitableOrCallable A>
  requires std::same_as<typename AwaitResult<detail::AsAwaitable<A>>::error_type, std::error_code>
[[nodiscard]] auto within(std::chrono::duration<Rep, Period> duration, A&& awaitable) {
  return detail::Timeout<detail::AsAwaitable<A>, detail::WithinAwaiter>(
      detail::When(detail::saturated(duration)), detail::as_awaitable(std::forward<A>(awaitable)));
}
template <AwaitableOrCallable A>
[[nodiscard]] auto deadline(TimePoint when, A&& awaitable) {
  return detail::Timeout<detail::AsAwaitable<A>>(detail::When(when),
                                                 detail::as_awaitable(std::forward<A>(awaitable)));
}

}  // namespace weft::inline v0
