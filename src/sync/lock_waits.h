// SPDX-License-Identifier: MIT
#pragma once
// What locks tell those who look for deadlocks: LockEntry::Collect.
#include <vector>

#include "weft/sync/lock_book.h"
#include "weft/sync/lock_waiter.h"

namespace weft::inline v0::detail {

// Those who wait for it on this thread's loop, whose number is `home`. Returns: its owner.
template <class Core>
auto list_waiting(Core& core, HomeIndex home, std::vector<WaitNode*>& nodes) {
  auto queue = core.waiting_on(home, nullptr, 0);
  while (queue.count > nodes.size()) {  // it may grow while there is made room for it
    nodes.resize(queue.count);
    queue = core.waiting_on(home, nodes.data(), nodes.size());
  }
  nodes.resize(queue.count);
  return queue.owner;
}

// Somebody who is in the way. home: its loop, or 0 for one who may be anywhere.
struct InTheWay {
  LockHolder::Who who;
  HomeIndex home;
};

// `report` has what all waits for the lock have in common.
inline void add_wait(LockReport report, const WaitNode& node, const InTheWay& holder,
                     std::vector<LockReport>& waits) {
  const auto& wait = static_cast<const LockWaiter&>(node);
  report.ticket = node.amount;
  report.waiter = wait.needing();
  report.wanted_at = wait.at();
  report.holder = holder.who.task;
  report.holder_home = holder.home;
  report.held_at = holder.who.at;
  waits.push_back(report);
}

}  // namespace weft::inline v0::detail
