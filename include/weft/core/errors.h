// SPDX-License-Identifier: MIT
#pragma once
// Errors that travel: the ones beside the first, the one that says "cancelled" where nothing else
// can, and the one that says that a loop takes no more tasks.
#include <cstddef>
#include <exception>
#include <stdexcept>
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

// A task was to be started on, or moved to, a loop that takes no more: it was stopped, or nobody
// runs it any more. Nothing was started or moved.
class LoopStopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
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
