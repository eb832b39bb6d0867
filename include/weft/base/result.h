// SPDX-License-Identifier: MIT
#pragma once
// Result<T>: a value, or the reason why the world said no.
//
// The first of the three roads of failure: the caller decides. A broken rule is WEFT_ASSERT's, a
// cancelled wait is neither value nor error. or_throw() is for the caller to whom an error is an
// exception.
//
// Threads        as its T and E.
// Allocation     none, but what T and E do; a thrown std::system_error owns its message.
#include <exception>
#include <expected>
#include <system_error>
#include <type_traits>
#include <utility>

namespace weft::inline v0 {

template <class T, class E = std::error_code>
using Result = std::expected<T, E>;

// The error of a wait that took too long. Not a cancellation, and not std::errc::timed_out, which
// is what a peer or the kernel says.
struct TimedOut {
  friend constexpr bool operator==(TimedOut, TimedOut) noexcept = default;
};

// Throws what the error says: std::system_error, whose what() is the code's message, for a
// std::error_code; the exception itself for a std::exception_ptr; the error as it is otherwise.
template <class E>
[[noreturn]] void throw_error(E error) {
  if constexpr (std::is_same_v<E, std::error_code>) {
    throw std::system_error(error);
  } else if constexpr (std::is_same_v<E, std::error_condition>) {
    throw std::system_error(error.value(), error.category());
  } else if constexpr (std::is_same_v<E, std::exception_ptr>) {
    std::rethrow_exception(std::move(error));
  } else {
    throw std::move(error);
  }
}

// Returns: the value. Throws: as throw_error().
template <class T, class E>
T or_throw(std::expected<T, E> result) {
  if (!result) throw_error(std::move(result).error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace weft::inline v0
