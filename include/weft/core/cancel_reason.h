// SPDX-License-Identifier: MIT
#pragma once
// weft::CancelReason: who asked a task to stop, and why.
//
// A reason is a static object; cancelling stores its address, so asking allocates nothing and can
// be done anywhere. Make your own:   constexpr weft::CancelReason kClientLeft{"the client closed
// the connection"};
//
// Reasons compare by address. The first reason to arrive stays.

namespace weft::inline v0 {

struct CancelReason {
  const char* what;
};

namespace reasons {
inline constexpr CancelReason requested{"cancel() was called"};
inline constexpr CancelReason handle_dropped{"its StartedTask was destroyed"};
inline constexpr CancelReason parent_failed{"an exception left its parent"};
inline constexpr CancelReason sibling_failed{"a sibling in its scope failed"};
inline constexpr CancelReason body_cancelled{"the nursery's body returned cancel"};
inline constexpr CancelReason lost_race{"another branch of its combinator finished first"};
inline constexpr CancelReason timed_out{"its time ran out"};
inline constexpr CancelReason loop_stopped{"its event loop was stopped"};
inline constexpr CancelReason context_stopped{"its IOContext was stopped"};
inline constexpr CancelReason loop_full{"its new event loop had no memory to list it as a guest"};
}  // namespace reasons

}  // namespace weft::inline v0
