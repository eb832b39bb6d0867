// SPDX-License-Identifier: MIT
#pragma once
// How a loop's turn enters a strand: what every resumption goes through, inlined into the turn.
#include "this_thread.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/resume.h"

namespace weft::inline v0 {

// Leaves the strand's name in the thread's state: whoever enters many sets it back once.
inline void CancellationRuntime::enter(detail::Strand& strand) {
  detail::ThreadState& thread = detail::this_thread();
  thread.running = &strand;
  detail::Frame* top = strand.top;  // null in a nursery's
  if (top && top->phase_ == Phase::ready) [[likely]] {
    top->phase_ = Phase::running;
    resume(strand, *top);
  } else {
    enter_unusual(strand);
  }
}

inline void CancellationRuntime::resume(detail::Strand& strand, detail::Frame& frame) {
  detail::resume_frame(frame, detail::this_thread());
  // Every end happens here, not on the coroutine's stack, so the strand is still there to be read.
  if (strand.top->phase_ >= Phase::done) leave(strand);
}

}  // namespace weft::inline v0
