// SPDX-License-Identifier: MIT
#pragma once
// Bytes that were read ahead lie with their descriptor, in entry.kept. How operations take them.
#include "weft/io/operation.h"

namespace weft::inline v0::detail {

// Whether it asks for the next bytes of the stream, or for whether there are any. Urgent data and the
// queue of errors lie beside the stream.
[[nodiscard]] bool takes_stream(const IoOperation& operation) noexcept;

// Gives a reader what was read ahead, or else the error that came after it, as its result. Returns:
// false if there is neither, or it takes something else.
[[nodiscard]] bool take_kept(IoOperation& operation) noexcept;

}  // namespace weft::inline v0::detail
