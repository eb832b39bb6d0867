// SPDX-License-Identifier: MIT
#include "weft/core/layout.h"

namespace weft::inline v0::detail {

const char WEFT_LAYOUT = 0;

}  // namespace weft::inline v0::detail
