// SPDX-License-Identifier: MIT
#include "weft/core/run.h"

#include "weft/base/assert.h"

namespace weft::inline v0 {

RunGuard::RunGuard(Loop& loop) : loop_(loop) {
  if (loop.running_) {
    detail::throw_usage_error(
        "this loop runs already: inside a task, await instead of calling run() on its own loop");
  }
  loop.running_ = true;
}

}  // namespace weft::inline v0
