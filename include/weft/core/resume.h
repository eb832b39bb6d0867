// SPDX-License-Identifier: MIT
#pragma once
// All resumption goes through this header; a test refuses resume() anywhere else.
//
// From one frame to the next weft transfers symmetrically: no stack is used, however deep a chain
// is (L10). clang makes that a tail call at every optimisation level. g++ does so only at -O2
// without sanitizers, and no macro tells, so there the next frame goes through a slot to a
// trampoline: always, so that one program behaves one way.
#include <coroutine>

#include "weft/core/frame.h"
#include "weft/core/thread_state.h"

namespace weft::inline v0::detail {

#if defined(__clang__)

using Transfer = std::coroutine_handle<>;
inline Transfer transfer_to(Frame& next) noexcept { return next.handle(); }
inline Transfer transfer_to_loop() noexcept { return std::noop_coroutine(); }

inline void resume_frame(Frame& frame, ThreadState&) { frame.handle().resume(); }

#else

using Transfer = void;
inline Transfer transfer_to(Frame& next) noexcept {
  thread_state().transfer = next.handle().address();
}
inline Transfer transfer_to_loop() noexcept {}

inline void resume_frame(Frame& frame, ThreadState& thread) {
  std::coroutine_handle<> next = frame.handle();
  do {
    thread.transfer = nullptr;
    next.resume();
    next = std::coroutine_handle<>::from_address(thread.transfer);
  } while (thread.transfer);
}

#endif

// A coroutine of another library, or a forged frame, that was given to weft as a continuation.
inline void resume_foreign(std::coroutine_handle<> handle) { handle.resume(); }

}  // namespace weft::inline v0::detail
