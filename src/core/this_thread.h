// SPDX-License-Identifier: MIT
#pragma once
// The thread's state without a call, for core's own sources.
//
// thread_state() is never inlined because a coroutine that is moved to another thread must not go
// on with the address it took before. Nothing in src/core is a coroutine, and by the time a linker
// could inline it into one, coroutines have long been split at their suspensions; so here the
// address may be taken where it is used, which is one instruction.
#include "weft/core/thread_state.h"

namespace weft::inline v0::detail {

// initial-exec: also in a shared library, at the price of a few bytes of the static TLS block.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadState t_state;

[[nodiscard]] inline ThreadState& this_thread() noexcept { return t_state; }

}  // namespace weft::inline v0::detail
