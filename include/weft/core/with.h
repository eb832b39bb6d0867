// SPDX-License-Identifier: MIT
#pragma once
// weft::with(background, work): runs work with background beside it, and returns work's result.
//
//     auto reply = co_await with(heartbeat(), request());
//
// Background is started first and cancelled when work has ended; if it ends earlier, work goes on.
//
// Cancellation   goes to both. Work's result is delivered if there is one after all.
// Errors         the first error of either cancels the other and is rethrown when both have ended.
// Allocation     none.
#include <utility>

#include "weft/core/combinators.h"

namespace weft::inline v0 {

namespace detail {

template <class B, class W>
class WithAwaiter final
    : public PackAwaiter<Combinator::Kind::until, std::index_sequence<0, 1>, B, W> {
  using Base = PackAwaiter<Combinator::Kind::until, std::index_sequence<0, 1>, B, W>;
  using E = typename CommonError<typename Branch<B>::Result, typename Branch<W>::Result>::type;
  using Result = typename Branch<W>::Result;

 public:
  using Base::Base;
  Result await_resume() {
    this->check_errors();
    if constexpr (!std::is_void_v<E>) {
      if (this->first_failed() == 0) return std::unexpected(PackLeaf<0, B, E>::slot.failure());
    }
    return PackLeaf<1, W, E>::slot.result();
  }
};

template <class B, class W>
class With {
 public:
  With(B&& background, W&& work)
      : background_(std::forward<B>(background)), work_(std::forward<W>(work)) {}
  WithAwaiter<B, W> operator co_await() && {
    return WithAwaiter<B, W>(std::forward<B>(background_), std::forward<W>(work_));
  }

 private:
  B background_;
  W work_;
};

}  // namespace detail

template <AwaitableOrCallable B, AwaitableOrCallable W>
[[nodiscard]] auto with(B&& background, W&& work) {
  return detail::With<detail::AsAwaitable<B>, detail::AsAwaitable<W>>(
      detail::as_awaitable(std::forward<B>(background)),
      detail::as_awaitable(std::forward<W>(work)));
}

}  // namespace weft::inline v0
