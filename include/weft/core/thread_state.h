// SPDX-License-Identifier: MIT
#pragma once
// What weft keeps per thread: one constant-initialised struct, reached by one function that is
// never inlined, so that no compiler keeps its address across a suspension that might change the
// thread.
#include "weft/core/strand.h"

namespace weft::inline v0 {
class Executor;
}

namespace weft::inline v0::detail {

struct ThreadState {
  Executor* executor = nullptr;  // the loop that this thread drives now
  Strand* running = nullptr;     // the strand on the stack; none in timer and I/O callbacks
  void* transfer = nullptr;      // g++: the frame to continue with (resume.h)
  const CancelReason* kick_reason = nullptr;  // why, while a kick runs
};

[[nodiscard]] ThreadState& thread_state() noexcept;

}  // namespace weft::inline v0::detail
