// SPDX-License-Identifier: MIT
#include "weft/core/run.h"

#include <string>

#include "weft/base/assert.h"
#include "weft/base/log.h"
#include "weft/core/tree.h"

namespace weft::inline v0 {

RunGuard::RunGuard(Loop& loop) : loop_(loop) {
  if (loop.running_) {
    detail::throw_usage_error(
        "this loop runs already: inside a task, await instead of calling run() on its own loop");
  }
  loop.running_ = true;
}

namespace detail {

void abandon(RootWaiter& root, const char* why) noexcept {
  TaskTreeCollector tree;
  tree.task(*root.strand);
  log(LogLevel::error, std::string(why) + "; the tasks that are left:\n" + tree.take());
  WEFT_ASSERT(false, "L12: a run() ends after every task that it started");
}

}  // namespace detail

}  // namespace weft::inline v0
