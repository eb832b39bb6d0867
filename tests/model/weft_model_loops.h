// SPDX-License-Identifier: MIT
#pragma once
// What the models of sync/ share: threads that are loops with one task each.
#include "weft/sync/wait_node.h"
#include "weft_model.h"

namespace weft_model {

using weft::detail::WaitList;
using weft::detail::WaitNode;
using weft::detail::WaitState;
using weft::detail::Withdrawn;

template <class Self, int kThreads>
struct Loops : rl::test_suite<Self, kThreads> {
  WaitNode nodes[kThreads];
  Mailbox mail[kThreads];

  WaitNode& node_of(unsigned index) {
    nodes[index].home = index + 1;
    return nodes[index];
  }
  // Waiter::notify().
  void tell(WaitNode* next) {
    if (next) mail[next->home - 1].post();
  }
  void tell(WaitList& woken) {
    while (WaitNode* node = woken.pop_front()) tell(node);
  }
  // The wait ends when it is notified.
  void await_notify(unsigned index) {
    mail[index].take();
    RL_ASSERT(nodes[index].state == WaitState::notified);
  }
  // The wait was withdrawn. N3: not before the notify() has arrived, if one was owed.
  void end_withdrawn(unsigned index, Withdrawn how) {
    if (how != Withdrawn::unlinked) mail[index].take();
    RL_ASSERT(!nodes[index].linked());
  }
  void after() {
    for (auto& each : mail) RL_ASSERT(each.empty());
    for (auto& each : nodes) RL_ASSERT(!each.linked());
  }
};

}  // namespace weft_model
