// SPDX-License-Identifier: MIT
#pragma once
// What everything in sync/ says about those who wait for it: in the task tree, and when it is
// destroyed too early.
#include "weft/sync/wait_node.h"

namespace weft::inline v0 {

class TaskTreeCollector;

namespace detail {

struct Waited {
  const char* kind;
  const char* name;
  const char* what = nullptr;              // which of several waits it is
  const char* notified = "just notified";  // of one that waits no more
};
// "Event 'ready', 1 of 4 waiting"; "Channel 'jobs' receive, 1 of 3 waiting"; without a name, "a Channel".
void describe_wait(TaskTreeCollector& tree, Waited waited, WaitPlace at);
// It is destroyed and somebody waits for it: those would wait for ever, at a place that is gone.
[[noreturn]] void abort_awaited(Waited waited) noexcept;

}  // namespace detail

}  // namespace weft::inline v0
