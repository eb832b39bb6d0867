// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::CaughtError: an error on its way, with the others that belong to it (L14).
//
// When several tasks of one scope fail, what travels is the exception that was first. Wherever weft
// keeps it, in a scope, an outcome or a combinator, the rest travel beside it, behind one pointer
// that is null for a lone error. Where it is thrown, the thread remembers them for other_errors(),
// and for which frame; where weft catches it again, they are found there by the identity of the
// first, and taken out.
//
// One exception object may be thrown many times (a cached exception_ptr), each time with others of
// its own or with none:
//   O1  the thread remembers at most one set for one object: that of its last throw by weft.
//   O2  what is remembered for one frame is no other's, not even of one that lies in its place
//       later (Frame::was_thrown_into()).
//   O3  other_errors() only looks: whoever reads the others and throws on passes them on.
// What cannot be told apart: a frame that catches an error with others and then throws the same
// object itself throws it on.
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

class Frame;
struct OtherErrorSet;

class [[nodiscard]] CaughtError {
 public:
  CaughtError() = default;
  // The exception that is handled, with the others that this thread remembers beside it for the
  // frame that runs, and remembers no more.
  [[nodiscard]] static CaughtError current() noexcept;
  // The same, of an exception that `frame` throws.
  [[nodiscard]] static CaughtError taken(std::exception_ptr error, Frame& frame) noexcept;
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

  // For an error that is about to be thrown into `frame`, or taken() from it.
  void remember(Frame& frame) const noexcept { remember_for(&frame); }
  // Into the frame that runs: there other_errors() answers, on this thread, while the first is
  // handled. Requires: there is one.
  [[noreturn, gnu::cold]] void rethrow() const;

 private:
  static void share(OtherErrorSet& set) noexcept;
  static void release(OtherErrorSet* set) noexcept;
  static CaughtError taken_for(std::exception_ptr error, const Frame* frame) noexcept;
  void remember_for(Frame* frame) const noexcept;
  OtherErrorSet& writable();

  std::exception_ptr first_;
  OtherErrorSet* others_ = nullptr;
};

// An exception leaves a run() inside of a frame: what was remembered outside of all frames is that
// one's.
void hand_remembered_errors_to(Frame& frame) noexcept;

// The last resort for an error that nobody is left to read.
void report_unread_error(const CaughtError& error) noexcept;

}  // namespace weft::inline v0::detail
