// SPDX-License-Identifier: MIT
#include "weft/sync/event.h"

#include "describe.h"

namespace weft::inline v0 {

Event::~Event() {
  if (core_.has_waiters()) [[unlikely]]
    detail::abort_awaited({"Event", name_});
}

void Event::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  detail::describe_wait(tree, {.kind = "Event", .name = name_, .notified = "just set"},
                        core_.place_of(waiter));
}

}  // namespace weft::inline v0
