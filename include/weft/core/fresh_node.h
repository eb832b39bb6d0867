// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::FreshNode: by which a task that was scheduled, and has no home yet, stands in a queue
// (run/task_queue.h).
#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

struct FreshNode {
  Atomic<FreshNode*> next;
};

}  // namespace weft::inline v0::detail
