// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::CaughtError: an error on its way, with the others that belong to it (L14).
//
// When several tasks of one scope fail, what travels is the exception that was first. Wherever weft
// keeps it, in a scope, an outcome or a combinator, the rest travel beside it, behind one pointer
// that is null for a lone error. Where it is thrown, the thread remembers them for other_errors();
// where it is caught again, they are found there by the identity of the first.
//
// Threads        one object, one thread at a time. Copies share the others, which nobody changes
//                while they are shared: whoever adds to them takes a copy first.
// Allocation     none for a lone error; one block for the others. If there is no memory for it,
//                they are logged.
#include <cstddef>
#include <exception>
#include <utility>

#include "weft/core/errors.h"

namespace weft::inline v0::detail {

struct OtherErrorSet;

class [[nodiscard]] CaughtError {
 public:
  CaughtError() = default;
  // With the others that this thread remembers beside it.
  explicit CaughtError(std::exception_ptr error) noexcept;
  [[nodiscard]] static CaughtError current() noexcept {
    return CaughtError(std::current_exception());
  }
  // Without any others.
  [[nodiscard]] static CaughtError alone(std::exception_ptr error) noexcept {
    CaughtError result;
    result.first_ = std::move(error);
    return result;
  }
  CaughtError(const CaughtError& other) noexcept : first_(other.first_), others_(other.others_) {
    if (others_) share(*others_);
  }
  CaughtError(CaughtError&& other) noexcept
      : first_(std::move(other.first_)), others_(std::exchange(other.others_, nullptr)) {}
  CaughtError& operator=(CaughtError other) noexcept {
    std::swap(first_, other.first_);
    std::swap(others_, other.others_);
    return *this;
  }
  ~CaughtError() {
    if (others_) release(others_);
  }

  explicit operator bool() const noexcept { return first_ != nullptr; }
  // The one that is rethrown.
  [[nodiscard]] const std::exception_ptr& first() const noexcept { return first_; }
  [[nodiscard]] bool has_others() const noexcept { return others_ != nullptr; }
  [[nodiscard]] OtherErrors others() const;
  // Appends an error and its others; becomes it, if it was none.
  void add(const CaughtError& later) noexcept;

  // other_errors() answers on this thread while the first is handled.
  void remember() const noexcept {
    if (others_) remember_others();
  }
  // Requires: there is one.
  [[noreturn]] void rethrow() const {
    remember();
    std::rethrow_exception(first_);
  }

 private:
  static void share(OtherErrorSet& set) noexcept;
  static void release(OtherErrorSet* set) noexcept;
  void remember_others() const noexcept;
  OtherErrorSet& writable();

  std::exception_ptr first_;
  OtherErrorSet* others_ = nullptr;
};

// The last resort for an error that nobody is left to read.
void report_unread_error(const CaughtError& error) noexcept;

}  // namespace weft::inline v0::detail
