// SPDX-License-Identifier: MIT
#pragma once
// weft::ok(x): the value of x, or the end of this coroutine with x's error.
//
//     Task<Result<int>> twice(Stream& s, std::span<std::byte> b) {
//       auto n = co_await ok(s.read_some(b));        // on error: co_return std::unexpected(error)
//       co_return n * 2;
//     }
//
// The awaiting coroutine returns a std::expected whose error type can be made from x's. On error it
// ends by L9: children are cancelled and joined, then its locals die, then its caller goes on.
//
// Cancellation   as x itself. An error that arrives although x was cancelled ends the coroutine too.
// Errors         exceptions of x pass through.
// Allocation     none. A Task in ok() is a strand of its own.
#include <expected>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/core/branch.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/invoked.h"

namespace weft::inline v0 {

namespace detail {

template <class A, class Promise>
class OkAwaiter final : private BranchOwner {
  using Expected = std::remove_cvref_t<typename Branch<A>::Result>;

 public:
  using native_awaiter = void;
  using ends_its_frame = void;
  OkAwaiter(A&& awaitable, Promise& promise)
      : branch_(std::forward<A>(awaitable)), promise_(promise) {}

  static constexpr bool await_ready() noexcept { return false; }
  std::conditional_t<kBranchSkippable<A>, std::true_type, std::false_type>
  await_early_cancel() noexcept {
    cancelled_ = true;
    return {};
  }
  bool await_suspend(Continuation waiter) {
    waiter_ = waiter;
    if (!branch_.start(*this, cancelled_)) return true;
    if (!branch_.has_result()) return gives_up();
    if (!ends_here()) return false;
    CancellationRuntime::set_exiting(promise_);
    return true;
  }
  bool await_cancel(Continuation) noexcept {
    if (gave_up_) return true;
    cancelled_ = true;
    if (!branch_.cancel()) return false;
    if (!branch_.has_result()) return true;
    over(branch_);
    return false;
  }
  [[nodiscard]] bool await_must_resume() const noexcept { return branch_.has_result(); }
  typename Expected::value_type await_resume() {
    if (error_) error_.rethrow();
    if (!result_) throw TaskCancelled(branch_.unasked() ? *branch_.unasked() : reasons::requested);
    if constexpr (!std::is_void_v<typename Expected::value_type>) return std::move(**result_);
  }
  void await_introspect(auto& tree) noexcept { tree.child(branch_.awaiter()); }

 private:
  // Fetches the result. Returns: true if it is an error, which then is the coroutine's.
  bool ends_here() noexcept {
    try {
      result_.emplace(branch_.take());
      if (result_->has_value()) return false;
      promise_.return_value(std::unexpected(std::move(result_->error())));
      return true;
    } catch (...) {
      error_ = CaughtError::current();
      return false;
    }
  }
  // x ended cancelled, and nobody here had asked. Returns: true if the waiter goes the same way.
  bool gives_up() noexcept {
    if (cancelled_ || !branch_.unasked()) return false;
    gave_up_ = true;
    return waiter_.cancel_with(*branch_.unasked());
  }
  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }
  [[nodiscard]] Strand* needing() const noexcept override { return waiter_.needing(); }
  void over(BranchBase&) noexcept override {
    if (!branch_.has_result()) {
      if (!gives_up()) waiter_.wake();
    } else if (ends_here()) {
      CancellationRuntime::exit_when_ready(promise_);
    } else {
      waiter_.wake();
    }
  }

  Branch<A> branch_;
  Promise& promise_;
  Continuation waiter_;
  std::optional<Expected> result_;
  CaughtError error_;
  bool cancelled_ = false;
  bool gave_up_ = false;
};

template <class A, class Promise>
class OkInFrame {
 public:
  OkInFrame(A&& awaitable, Promise& promise)
      : awaitable_(std::forward<A>(awaitable)), promise_(promise) {}
  OkAwaiter<A, Promise> operator co_await() && {
    return OkAwaiter<A, Promise>(std::forward<A>(awaitable_), promise_);
  }

 private:
  A awaitable_;
  Promise& promise_;
};

template <class A>
class Ok {
 public:
  explicit Ok(A&& awaitable) : awaitable_(std::forward<A>(awaitable)) {}
  // Called by the awaiting Task's promise, whose result the error becomes.
  template <class Promise>
  auto bind(Promise& promise) && {
    return OkInFrame<A, Promise>(std::forward<A>(awaitable_), promise);
  }

 private:
  A awaitable_;
};

}  // namespace detail

template <AwaitableOrCallable A>
[[nodiscard]] auto ok(A&& awaitable) {
  using Result = std::remove_cvref_t<AwaitResult<detail::AsAwaitable<A>>>;
  static_assert(
      requires { typename Result::unexpected_type; },
      "weft: ok() takes an awaitable whose result is a std::expected");
  return detail::Ok<detail::AsAwaitable<A>>(detail::as_awaitable(std::forward<A>(awaitable)));
}

}  // namespace weft::inline v0
