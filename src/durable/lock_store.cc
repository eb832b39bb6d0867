// SPDX-License-Identifier: MIT
#include "weft/durable/lock_store.h"

#include <time.h>

namespace weft::inline v0::durable {

std::int64_t LockStore::lease_clock() const {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace weft::inline v0::durable
