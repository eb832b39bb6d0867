// SPDX-License-Identifier: MIT
#include "runtime/weft_child.h"

namespace weft::bench {

Task<void> weft_nothing() { co_return; }

Task<void> weft_sleeper(TimePoint deadline, std::size_t& asleep) {
  ++asleep;
  co_await sleep_until(deadline);
}

}  // namespace weft::bench
