// SPDX-License-Identifier: MIT
#include "weft/testing/virtual_loop.h"

#include <algorithm>
#include <optional>
#include <string>

#include "weft/core/tree.h"

namespace weft::inline v0::testing {

VirtualLoop::VirtualLoop() : world_(std::make_shared<World>()), timers_(0) {
  world_->loops.push_back(this);
}

VirtualLoop::VirtualLoop(VirtualLoop& beside)
    : Loop(), world_(beside.world_), timers_(world_->now_ns) {
  world_->loops.push_back(this);
}

VirtualLoop::~VirtualLoop() {
  if (!has_no_strands()) {
    stop();
    run_until([&] { return has_no_strands(); });
  }
  close_inbox();  // here, where what was sent can still be run
  std::erase(world_->loops, this);
}

std::chrono::nanoseconds VirtualLoop::elapsed() const noexcept {
  return std::chrono::nanoseconds(world_->now_ns);
}
std::int64_t VirtualLoop::now_ns() const { return world_->now_ns; }

void VirtualLoop::arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) {
  timers_.arm(timer, deadline_ns);
}
void VirtualLoop::disarm_timer(detail::TimerNode& timer) noexcept { timers_.disarm(timer); }

// Returns: true if some loop did something or has something to do.
bool VirtualLoop::step_all(World& world) {
  bool busy = false;
  for (std::size_t i = 0; i < world.loops.size(); ++i) {  // a task may make a loop
    VirtualLoop& loop = *world.loops[i];
    if (loop.timers_.size() > 0) {
      detail::DrivingScope driving(loop);
      loop.timers_.fire_due(world.now_ns, Executor::kTurnBudget);
    }
    std::uint64_t before = loop.entries_run();
    bool more = loop.turn();
    busy = busy || more || loop.entries_run() != before;
  }
  // What was sent to a loop that had its turn already, a kick handed on for instance.
  for (VirtualLoop* loop : world.loops) busy = busy || loop->port().inbox.has_entries();
  return busy;
}

// Returns: false if no timer is armed anywhere.
bool VirtualLoop::advance(World& world) {
  std::optional<std::int64_t> next;
  for (VirtualLoop* loop : world.loops) {
    auto deadline = loop->timers_.next_deadline();
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  if (!next) return false;
  world.now_ns = std::max(world.now_ns, *next);
  return true;
}

void VirtualLoop::run_ready() {
  while (step_all(*world_)) {
  }
}

template <class Over>
bool VirtualLoop::run_until(Over over) {
  World& world = *world_;
  while (!over()) {
    if (!step_all(world) && !over() && !advance(world)) return false;
  }
  return true;
}

void VirtualLoop::drive(detail::RootWaiter& root) {
  // L12: not before its last strand is gone, husks that wait for a kick under way included.
  auto over = [&] { return root.done && has_no_strands(); };
  if (run_until(over)) return;
  TaskTreeCollector tree;
  tree.task(*root.strand);
  cancel_all();
  if (!run_until(over)) {
    detail::abandon(root, "nothing can run, nothing is due, and cancelling does not help");
  }
  throw Stuck("nothing can run and nothing is due, but the task has not ended:\n" + tree.take());
}

}  // namespace weft::inline v0::testing
