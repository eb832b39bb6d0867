// SPDX-License-Identifier: MIT
// MutexCore: one inside at a time who sees what the last one did, nobody forgotten, and a cancelled
// waiter takes nothing with it, whether it was waiting or the owner already.
#include "weft/sync/mutex_core.h"

#include "weft_model.h"

namespace {

using weft::detail::MutexCore;
using weft::detail::WaitNode;
using weft::detail::Withdrawn;

// A thread is a loop with one task. kCancelled of them are cancelled as soon as they wait.
template <class Self, int kThreads, int kCancelled>
struct Room : rl::test_suite<Self, kThreads> {
  MutexCore core;
  WaitNode nodes[kThreads];
  weft_model::Mailbox mail[kThreads];
  weft_model::Plain inside;
  int visits = 0;
  int withdrawn = 0;

  void thread(unsigned index) {
    WaitNode& node = nodes[index];
    node.home = index + 1;
    if (!core.try_lock(node.home) && !core.lock_or_wait(node, 0)) {
      if (index < kCancelled) return cancel(index);
      mail[index].take();
      RL_ASSERT(node.state == weft::detail::WaitState::notified);
    }
    RL_ASSERT(core.owner() == node.home);
    inside.write(inside.read() + 1);
    ++visits;
    if (core.try_unlock(node.home)) return;
    auto [was_owner, next] = core.unlock(node.home, 0);
    RL_ASSERT(was_owner);
    tell(next);
  }
  void cancel(unsigned index) {
    auto [how, next] = core.withdraw(nodes[index], 0);
    tell(next);
    if (how == Withdrawn::passed_on) mail[index].take();  // N3
    RL_ASSERT(!nodes[index].linked());
    ++withdrawn;
  }
  void tell(WaitNode* next) {
    if (next) mail[next->home - 1].post();
  }
  void after() {
    RL_ASSERT(visits + withdrawn == kThreads);
    RL_ASSERT(!core.is_locked());
    for (auto& each : mail) RL_ASSERT(each.empty());
  }
};

struct TwoTakeTurns : Room<TwoTakeTurns, 2, 0> {};
struct ThreeTakeTurns : Room<ThreeTakeTurns, 3, 0> {};
struct OneOfTwoIsCancelled : Room<OneOfTwoIsCancelled, 2, 1> {};
struct OneOfThreeIsCancelled : Room<OneOfThreeIsCancelled, 3, 1> {};
struct TwoOfThreeAreCancelled : Room<TwoOfThreeAreCancelled, 3, 2> {};

}  // namespace

int main() {
  weft_model::Report report("MutexModel");
  report.check<TwoTakeTurns>("TwoTakeTurns", weft_model::every());
  report.check<OneOfTwoIsCancelled>("OneOfTwoIsCancelled", weft_model::every());
  report.check<ThreeTakeTurns>("ThreeTakeTurns", weft_model::every_reduced());
  report.check<OneOfThreeIsCancelled>("OneOfThreeIsCancelled", weft_model::by_chance());
  report.check<TwoOfThreeAreCancelled>("TwoOfThreeAreCancelled", weft_model::by_chance());
  return report.result();
}
