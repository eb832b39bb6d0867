// SPDX-License-Identifier: MIT
#pragma once
// What everything in sync/ says about those who wait for it: in the task tree, and when it is
// destroyed too early.
#include "weft/sync/wait_node.h"

namespace weft::inline v0 {

class TaskTreeCollector;

namespace detail {

// "Channel 'jobs' receive, 1 of 3 waiting"; without a name, "a Channel".
struct Waited {
  const char* kind;
  const char* name;
};
void describe_wait(TaskTreeCollector& tree, Waited waited, const char* what, WaitPlace at);
[[noreturn]] void abort_destroyed_while_awaited(Waited waited) noexcept;

}  // namespace detail

}  // namespace weft::inline v0
