// SPDX-License-Identifier: MIT
#pragma once
// weft::AnyOfResult<Values>: what any_of gives: the values that there are, and which branch was the first.
//
//     auto first = co_await any_of(jobs.receive(), stopped.wait());
//     if (std::get<0>(first)) work(**std::get<0>(first));    // also if it lost: it was received
//     if (first.index() == 1) co_return;
//
// Values is a std::tuple, or for ranges a std::vector, of std::optional, and this is one of those: it can be
// taken apart by `auto [a, b] = …` like any other.
#include <cstddef>
#include <tuple>
#include <utility>

namespace weft::inline v0 {

template <class Values>
class AnyOfResult : public Values {
 public:
  template <class... V>
  explicit AnyOfResult(std::size_t index, V&&... values)
      : Values(std::forward<V>(values)...), index_(index) {}

  // The branch that had a value first, and ended the race. Others may have one, too, if their cancel came
  // too late. Without branches, 0.
  [[nodiscard]] std::size_t index() const noexcept { return index_; }

 private:
  std::size_t index_;
};

}  // namespace weft::inline v0

template <class... T>
struct std::tuple_size<weft::AnyOfResult<std::tuple<T...>>> : std::tuple_size<std::tuple<T...>> {};
template <std::size_t I, class... T>
struct std::tuple_element<I, weft::AnyOfResult<std::tuple<T...>>>
    : std::tuple_element<I, std::tuple<T...>> {};
