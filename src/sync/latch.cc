// SPDX-License-Identifier: MIT
#include "weft/sync/latch.h"

#include <string>

#include "describe.h"
#include "weft/base/assert.h"

namespace weft::inline v0 {

Latch::~Latch() {
  if (core_.has_waiters()) [[unlikely]]
    detail::abort_awaited({"Latch", name_});
}

void Latch::refuse(Count by) {
  throw UsageError("count_down(" + std::to_string(by) + ") of " +
                   detail::thing_name("Latch", name_) + ": less is left, " +
                   std::to_string(core_.count()));
}

void Latch::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  const detail::WaitPlace place = core_.place_of(waiter);
  const std::string left = std::to_string(core_.count()) + " left, " + detail::standing(place);
  tree.node(detail::thing_name("Latch", name_) + ", " + (place.place == 0 ? "just done" : left));
}

}  // namespace weft::inline v0
