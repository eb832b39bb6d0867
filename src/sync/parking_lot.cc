// SPDX-License-Identifier: MIT
#include "weft/sync/parking_lot.h"

#include "describe.h"

namespace weft::inline v0 {

ParkingLot::~ParkingLot() {
  if (core_.has_waiters()) [[unlikely]]
    detail::abort_awaited({"ParkingLot", name_});
}

void ParkingLot::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  detail::describe_wait(tree, {.kind = "ParkingLot", .name = name_, .notified = "just unparked"},
                        core_.place_of(waiter));
}

}  // namespace weft::inline v0
