// SPDX-License-Identifier: MIT
#pragma once
// weft::noncancellable, disposable, until_cancelled_and: how an awaitable meets cancellation.
//
//   noncancellable(x)        x runs to its end. Cancellation strikes at the next co_await after it.
//   disposable(x)            x's result may be dropped: a cancelled wait ends cancelled even if x
//                            finished after all.
//   until_cancelled_and(x)   waits until cancelled, then runs x, shielded, and ends cancelled. For
//                            goodbyes: send a last message, delete the temporary file.
//
// Errors         x's pass through, also those of until_cancelled_and's x. An error that disposable()
//                drops is logged (L14).
// Allocation     none. A Task under a shield is a strand of its own, with a clean word.
#include <type_traits>
#include <utility>

#include "weft/core/branch.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/forwarded_awaiter.h"
#include "weft/core/invoked.h"

namespace weft::inline v0 {

namespace detail {

template <class A>
class NoncancellableAwaiter final : private BranchOwner {
 public:
  using native_awaiter = void;
  explicit NoncancellableAwaiter(A&& awaitable) : branch_(std::forward<A>(awaitable)) {}

  static constexpr bool await_ready() noexcept { return false; }
  bool await_suspend(Continuation waiter) noexcept {
    waiter_ = waiter;
    return !branch_.start(*this, false);
  }
  decltype(auto) await_resume() { return branch_.take(); }
  static constexpr std::false_type await_early_cancel() noexcept { return {}; }
  static constexpr std::false_type await_cancel(Continuation) noexcept { return {}; }
  static constexpr std::true_type await_must_resume() noexcept { return {}; }
  void await_introspect(auto& tree) noexcept {
    tree.node("noncancellable");
    tree.child(branch_.awaiter());
  }

 private:
  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }
  [[nodiscard]] Strand* needing() const noexcept override { return waiter_.needing(); }
  void over(BranchBase&) noexcept override { waiter_.wake(); }

  Branch<A> branch_;
  Continuation waiter_;
};

template <class A>
class DisposableAwaiter final : public ForwardedAwaiter<A> {
 public:
  using ForwardedAwaiter<A>::ForwardedAwaiter;
  // A result that came after all is taken, as the protocol wants, and dropped; an error is logged.
  [[nodiscard]] std::false_type await_must_resume() const noexcept {
    auto& inner = const_cast<DisposableAwaiter&>(*this).inner();
    if (!call_must_resume(inner)) return {};
    try {
      static_cast<void>(inner.await_resume());
    } catch (...) {
      report_unread_error(CaughtError::current());
    }
    return {};
  }
};

template <class A>
class UntilCancelledAndAwaiter final : private BranchOwner {
 public:
  using native_awaiter = void;
  explicit UntilCancelledAndAwaiter(A&& awaitable) : branch_(std::forward<A>(awaitable)) {}

  static constexpr bool await_ready() noexcept { return false; }
  std::false_type await_early_cancel() noexcept {
    early_ = true;
    return {};
  }
  bool await_suspend(Continuation waiter) noexcept {
    waiter_ = waiter;
    return !early_ || !begin();
  }
  // Returns: true if x is over already and left nothing to throw.
  bool await_cancel(Continuation) noexcept {
    if (!begin()) return false;
    if (!error_) return true;
    waiter_.wake();
    return false;
  }
  [[nodiscard]] bool await_must_resume() const noexcept { return static_cast<bool>(error_); }
  void await_resume() { error_.rethrow(); }
  void await_introspect(auto& tree) noexcept {
    tree.node("until_cancelled_and");
    tree.child(branch_.awaiter());
  }

 private:
  bool begin() noexcept {
    if (!branch_.start(*this, false)) return false;
    collect();
    return true;
  }
  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }
  [[nodiscard]] Strand* needing() const noexcept override { return waiter_.needing(); }
  void over(BranchBase&) noexcept override {
    collect();
    waiter_.wake();
  }
  void collect() noexcept {
    try {
      static_cast<void>(branch_.take());
    } catch (const TaskCancelled&) {  // x itself ended cancelled: nothing to tell
    } catch (...) {
      error_ = CaughtError::current();
    }
  }

  Branch<A> branch_;
  Continuation waiter_;
  CaughtError error_;
  bool early_ = false;
};

}  // namespace detail

template <AwaitableOrCallable A>
[[nodiscard]] auto noncancellable(A&& awaitable) {
  return detail::Wrapped<detail::NoncancellableAwaiter, detail::AsAwaitable<A>>(
      detail::as_awaitable(std::forward<A>(awaitable)));
}
template <AwaitableOrCallable A>
[[nodiscard]] auto disposable(A&& awaitable) {
  return detail::Wrapped<detail::DisposableAwaiter, detail::AsAwaitable<A>>(
      detail::as_awaitable(std::forward<A>(awaitable)));
}
template <AwaitableOrCallable A>
[[nodiscard]] auto until_cancelled_and(A&& awaitable) {
  return detail::Wrapped<detail::UntilCancelledAndAwaiter, detail::AsAwaitable<A>>(
      detail::as_awaitable(std::forward<A>(awaitable)));
}

}  // namespace weft::inline v0
