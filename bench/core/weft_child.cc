// SPDX-License-Identifier: MIT
#include "core/weft_child.h"

namespace weft::bench {

Task<int> weft_child(int value) { co_return value + 1; }

Task<void> weft_leaf(std::size_t& ended) {
  ++ended;
  co_return;
}

Task<void> weft_parked(std::size_t& parked) {
  ++parked;
  co_await suspend_forever();
}

}  // namespace weft::bench
