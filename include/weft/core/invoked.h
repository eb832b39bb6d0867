// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Invoked: a callable that returns an awaitable, as an awaitable that keeps it alive.
//
// A lambda coroutine refers to its closure. Wherever weft takes an awaitable it takes such a
// callable too, and this is how: the callable moves into the description, then into the awaiter, and
// is called when it is awaited.
#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include "weft/core/concepts.h"
#include "weft/core/forwarded_awaiter.h"

namespace weft::inline v0 {

template <class F>
concept AwaitableCallable =
    std::invocable<std::decay_t<F>&> && Awaitable<std::invoke_result_t<std::decay_t<F>&>>;
template <class A>
concept AwaitableOrCallable = Awaitable<A> || AwaitableCallable<A>;

namespace detail {

// The callable first, then what it returned, then the awaiter of that: each may refer to the one
// before until the very end.
template <class F>
struct KeptCallable {
  explicit KeptCallable(F&& given) : fn(std::move(given)) {}
  F fn;
};
template <class F>
struct KeptAwaitable : KeptCallable<F> {
  explicit KeptAwaitable(F&& given)
      : KeptCallable<F>(std::move(given)), made(std::invoke(KeptCallable<F>::fn)) {}
  std::invoke_result_t<F&> made;
};

template <class F>
class InvokedAwaiter final : private KeptAwaitable<F>,
                             public ForwardedAwaiter<std::invoke_result_t<F&>> {
  using Made = std::invoke_result_t<F&>;

 public:
  explicit InvokedAwaiter(F&& fn)
      : KeptAwaitable<F>(std::move(fn)),
        ForwardedAwaiter<Made>(static_cast<Made&&>(KeptAwaitable<F>::made)) {}
};

template <class F>
class Invoked {
 public:
  explicit Invoked(F fn) : fn_(std::move(fn)) {}
  InvokedAwaiter<F> operator co_await() && { return InvokedAwaiter<F>(std::move(fn_)); }

 private:
  F fn_;
};

// What g++ 12 does to a temporary with captures inside co_await is not survivable; refuse it.
template <class F>
consteval void check_callable() {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
  static_assert(
      std::is_lvalue_reference_v<F> || std::is_trivially_destructible_v<std::decay_t<F>>,
      "weft: name the lambda first: g++ 12 destroys a temporary with captures twice in a co_await");
#endif
}

// How a description keeps the callable that it was given: by value, so that it may be awaited when
// the caller's is gone. A named callable that cannot be copied is referred to, and must outlive it.
template <class F>
using KeptFunction =
    std::conditional_t<std::is_lvalue_reference_v<F> && !std::copy_constructible<std::decay_t<F>>,
                       F, std::decay_t<F>>;

// Awaitables by value (or by reference, if they are lvalues that cannot be copied and can be awaited
// so), callables wrapped.
template <class A>
decltype(auto) as_awaitable_unchecked(A&& awaitable) {
  if constexpr (std::is_lvalue_reference_v<A> && !std::copy_constructible<std::decay_t<A>> &&
                Awaitable<A>) {
    return static_cast<A>(awaitable);
  } else if constexpr (Awaitable<std::decay_t<A>>) {
    return std::decay_t<A>(std::forward<A>(awaitable));
  } else {
    return Invoked<std::decay_t<A>>(std::forward<A>(awaitable));
  }
}
template <class A>
using AsAwaitable = decltype(as_awaitable_unchecked(std::declval<A>()));
// For what may be a temporary inside a co_await expression.
template <class A>
AsAwaitable<A> as_awaitable(A&& awaitable) {
  if constexpr (!Awaitable<std::decay_t<A>>) check_callable<A>();
  return as_awaitable_unchecked(std::forward<A>(awaitable));
}

}  // namespace detail

}  // namespace weft::inline v0
