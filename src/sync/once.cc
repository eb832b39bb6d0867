// SPDX-License-Identifier: MIT
#include "weft/sync/once.h"

#include "describe.h"

namespace weft::inline v0 {

Once::~Once() {
  if (core_.is_running()) [[unlikely]]
    detail::abort_awaited({"Once", name_});
}

void Once::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  detail::describe_wait(tree, {.kind = "Once", .name = name_, .notified = "about to go on"},
                        core_.place_of(waiter));
}

}  // namespace weft::inline v0
