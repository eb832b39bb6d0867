// SPDX-License-Identifier: MIT
#pragma once
// weft::make_awaitable<Awaiter>(args…): a movable description of an awaiter that cannot move.
//
// Most awaiters must stay where they are once they wait, because somebody will call them back at
// that address; combinators need something to move around first. The description keeps the
// arguments and builds the awaiter in place when it is awaited.
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/core/concepts.h"

namespace weft::inline v0 {

template <class Aw, class... Args>
class AwaiterDescription {
 public:
  explicit AwaiterDescription(Args&&... args) : args_(std::forward<Args>(args)...) {}
  Aw operator co_await() && {
    return std::apply([](auto&&... each) { return Aw(std::forward<decltype(each)>(each)...); },
                      std::move(args_));
  }

 protected:
  std::tuple<Args...> args_;
};

// The arguments are kept by value; std::ref() keeps a reference.
template <Awaiter Aw, class... Args>
[[nodiscard]] auto make_awaitable(Args&&... args) {
  return AwaiterDescription<Aw, std::unwrap_ref_decay_t<Args>...>(
      static_cast<std::unwrap_ref_decay_t<Args>>(std::forward<Args>(args))...);
}

}  // namespace weft::inline v0
