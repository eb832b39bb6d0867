// SPDX-License-Identifier: MIT
#include "weft/sync/once.h"

#include "describe.h"

namespace weft::inline v0 {

Once::~Once() {
  if (core_.is_running()) [[unlikely]]
    detail::abort_awaited("Once", name_);
}

void Once::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  detail::describe_wait(tree, "Once", name_, core_.place_of(waiter), "about to go on");
}

}  // namespace weft::inline v0
