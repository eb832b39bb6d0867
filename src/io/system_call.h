// SPDX-License-Identifier: MIT
#pragma once
// The system call that an operation stands for.
#include "weft/io/operation.h"

namespace weft::inline v0::detail {

// Makes it. Returns: what it returned, or -errno; EINTR is tried again, EWOULDBLOCK is EAGAIN.
[[nodiscard]] int perform(IoOperation& operation) noexcept;
// Whether the result tells that the descriptor has no more to give, or to take, now.
[[nodiscard]] bool is_short(const IoOperation& operation) noexcept;
// Who it is that operation.result, accepted ahead of its accept(), is connected to. One that was
// reset since has no peer any more: its length is 0 then.
void tell_peer(IoOperation& operation) noexcept;
// A name for the task tree.
[[nodiscard]] const char* name_of(IoCode code) noexcept;

}  // namespace weft::inline v0::detail
