// SPDX-License-Identifier: MIT
// The child, where the compiler cannot see it from the awaiting side.
#include "core/floor_task.h"

namespace weft::bench {

FloorTask floor_child(int value) { co_return value + 1; }

}  // namespace weft::bench
