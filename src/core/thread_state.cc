// SPDX-License-Identifier: MIT
#include "weft/core/thread_state.h"

#include "this_thread.h"

namespace weft::inline v0::detail {

constinit thread_local ThreadState t_state;

[[gnu::noinline]] ThreadState& thread_state() noexcept { return t_state; }

}  // namespace weft::inline v0::detail
