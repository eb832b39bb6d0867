// SPDX-License-Identifier: MIT
#pragma once
// Errors that travel: the ones beside the first, and the one that says "cancelled" where nothing
// else can.
#include <cstddef>
#include <exception>
#include <vector>

#include "weft/core/cancel_reason.h"

namespace weft::inline v0 {

// Thrown where a task's cancellation meets code that cannot be cancelled with it: run() of a
// cancelled task, or a handle awaited under a shield.
class TaskCancelled : public std::exception {
 public:
  explicit TaskCancelled(const CancelReason& reason) noexcept : reason_(&reason) {}
  [[nodiscard]] const char* what() const noexcept override { return reason_->what; }
  [[nodiscard]] const CancelReason& reason() const noexcept { return *reason_; }

 private:
  const CancelReason* reason_;
};

// How many errors are kept beside the first; the rest are only counted.
inline constexpr std::size_t kErrorsKept = 8;

// When several tasks of one scope fail, the first error is rethrown unchanged. These are the rest
// (L14), in the order in which they came.
struct OtherErrors {
  std::vector<std::exception_ptr> kept;  // up to kErrorsKept
  std::size_t count = 0;                 // all of them
};

// Call it in the catch block that handles the first error, on the thread that caught it. For a task
// that was started, Outcome::other_errors() answers the same at any time.
[[nodiscard]] OtherErrors other_errors();

}  // namespace weft::inline v0
