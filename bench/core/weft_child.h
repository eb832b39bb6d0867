// SPDX-License-Identifier: MIT
#pragma once
// The children of weft's contestant, where the compiler cannot see them from the awaiting side.

#include <weft/weft.h>

#include <cstddef>

namespace weft::bench {

Task<int> weft_child(int value);
Task<void> weft_leaf(std::size_t& ended);
Task<void> weft_parked(std::size_t& parked);

}  // namespace weft::bench
