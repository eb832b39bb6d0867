// SPDX-License-Identifier: MIT
#include "weft/sync/auto_event.h"

#include "describe.h"

namespace weft::inline v0 {

AutoEvent::~AutoEvent() {
  if (core_.has_waiters()) [[unlikely]]
    detail::abort_awaited({"AutoEvent", name_});
}

void AutoEvent::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  detail::describe_wait(tree, {.kind = "AutoEvent", .name = name_, .notified = "just set"},
                        core_.place_of(waiter));
}

}  // namespace weft::inline v0
