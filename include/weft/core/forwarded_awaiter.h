// SPDX-License-Identifier: MIT
#pragma once
// weft::ForwardedAwaiter: the base for wrappers. It holds the awaiter of some awaitable and answers
// every hook as that one would, with the same static types.
//
//     template <class A>
//     struct Logged : weft::ForwardedAwaiter<A> {
//       using weft::ForwardedAwaiter<A>::ForwardedAwaiter;
//       decltype(auto) await_resume() { log("done"); return this->inner().await_resume(); }
//     };
//
// Override what differs; leave the rest. The awaiter inside is built in place and may be immovable.
#include <concepts>
#include <type_traits>
#include <utility>

#include "weft/core/concepts.h"
#include "weft/core/foreign_awaiter.h"

namespace weft::inline v0 {

template <class A>
class ForwardedAwaiter {
 public:
  using Inner = std::remove_reference_t<detail::Hosted<A>>;
  using native_awaiter = void;

  explicit ForwardedAwaiter(A&& awaitable) : awaiter_(detail::host(std::forward<A>(awaitable))) {}
  ForwardedAwaiter(const ForwardedAwaiter&) = delete;
  ForwardedAwaiter& operator=(const ForwardedAwaiter&) = delete;

  bool await_ready() { return awaiter_.await_ready(); }
  auto await_suspend(detail::Continuation waiter) { return awaiter_.await_suspend(waiter); }
  decltype(auto) await_resume() { return awaiter_.await_resume(); }

  detail::EarlyCancelType<Inner> await_early_cancel() noexcept {
    if constexpr (std::same_as<detail::EarlyCancelType<Inner>, bool>) {
      return awaiter_.await_early_cancel();
    } else {
      if constexpr (detail::HasEarlyCancel<Inner>) awaiter_.await_early_cancel();
      return {};
    }
  }
  detail::CancelType<Inner> await_cancel(detail::Continuation waiter) noexcept {
    if constexpr (std::same_as<detail::CancelType<Inner>, bool>) {
      return awaiter_.await_cancel(waiter);
    } else {
      if constexpr (detail::HasCancel<Inner>) awaiter_.await_cancel(waiter);
      return {};
    }
  }
  [[nodiscard]] auto await_must_resume() const noexcept {
    if constexpr (detail::HasMustResume<Inner>) {
      return awaiter_.await_must_resume();
    } else if constexpr (detail::kSkippable<Inner> && detail::kAbortable<Inner>) {
      return std::false_type{};
    } else {
      return std::true_type{};
    }
  }
  void await_set_executor(Executor* executor) noexcept {
    if constexpr (detail::HasSetExecutor<Inner>) awaiter_.await_set_executor(executor);
  }
  void await_introspect(auto& tree) noexcept { tree.child(awaiter_); }

 protected:
  [[nodiscard]] Inner& inner() noexcept { return awaiter_; }

 private:
  detail::Hosted<A> awaiter_;
};

namespace detail {

// The description of a wrapper: an awaitable, and what else the wrapper's constructor takes.
template <template <class> class Wrapper, class A>
class Wrapped {
 public:
  explicit Wrapped(A&& awaitable) : awaitable_(std::forward<A>(awaitable)) {}
  Wrapper<A> operator co_await() && { return Wrapper<A>(std::forward<A>(awaitable_)); }

 private:
  A awaitable_;
};

}  // namespace detail

}  // namespace weft::inline v0
