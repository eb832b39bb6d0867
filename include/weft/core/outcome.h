// SPDX-License-Identifier: MIT
#pragma once
// weft::Outcome<T>: how a task ended: with a value, with an error, or cancelled. The third is
// neither of the others (L3).
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/assert.h"
#include "weft/core/cancel_reason.h"
#include "weft/core/caught_error.h"
#include "weft/core/errors.h"

namespace weft::inline v0 {

namespace detail {
template <class T>
struct OutcomeValue {
  using type = T;
};
template <class T>
  requires std::is_reference_v<T>
struct OutcomeValue<T> {
  using type = std::remove_reference_t<T>*;
};
template <>
struct OutcomeValue<void> {
  using type = std::monostate;
};
}  // namespace detail

template <class T>
class [[nodiscard]] Outcome {
 public:
  using Stored = typename detail::OutcomeValue<T>::type;

  static Outcome value(Stored stored) { return Outcome(std::in_place_index<0>, std::move(stored)); }
  static Outcome error(std::exception_ptr error) {
    return Outcome(std::in_place_index<1>, detail::CaughtError::alone(std::move(error)));
  }
  static Outcome error(detail::CaughtError error) {
    return Outcome(std::in_place_index<1>, std::move(error));
  }
  static Outcome cancelled(const CancelReason& reason) {
    return Outcome(std::in_place_index<2>, &reason);
  }

  [[nodiscard]] bool has_value() const noexcept { return how_.index() == 0; }
  [[nodiscard]] bool has_error() const noexcept { return how_.index() == 1; }
  [[nodiscard]] bool is_cancelled() const noexcept { return how_.index() == 2; }

  // The value, or the error rethrown, or TaskCancelled.
  T get() && {
    if (has_error()) std::get<1>(how_).rethrow();
    if (is_cancelled()) throw TaskCancelled(reason());
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(*std::get<0>(how_));
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(std::get<0>(how_));
    }
  }
  // Requires: has_error().
  [[nodiscard]] const std::exception_ptr& error() const { return std::get<1>(how_).first(); }
  // The errors beside it, if its task had several (L14); none for a value or a cancellation.
  [[nodiscard]] OtherErrors other_errors() const {
    return has_error() ? std::get<1>(how_).others() : OtherErrors();
  }
  // Requires: is_cancelled().
  [[nodiscard]] const CancelReason& reason() const { return *std::get<2>(how_); }

 private:
  template <std::size_t I, class U>
  Outcome(std::in_place_index_t<I> index, U&& what) : how_(index, std::forward<U>(what)) {}

  std::variant<Stored, detail::CaughtError, const CancelReason*> how_;
};

}  // namespace weft::inline v0
