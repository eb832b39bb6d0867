// SPDX-License-Identifier: MIT
#pragma once
// The children of weft's contestant, where the compiler cannot see them from the awaiting side.

#include <weft/weft.h>

#include <cstddef>

namespace weft::bench {

Task<void> weft_nothing();
// Counts itself, and sleeps.
Task<void> weft_sleeper(TimePoint deadline, std::size_t& asleep);

}  // namespace weft::bench
