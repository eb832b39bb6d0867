// SPDX-License-Identifier: MIT
// A Condition over a Mutex, as src/sync/condition.cc puts ParkingLotCore and MutexCore together:
// no notify is lost between unlocking and waiting, one that a cancelled wait had is another's, and
// whoever goes on or unwinds owns the lock.
#include "weft/sync/mutex_core.h"
#include "weft/sync/parking_lot_core.h"
#include "weft_model.h"

namespace {

using weft::detail::MutexCore;
using weft::detail::ParkingLotCore;
using weft::detail::WaitList;
using weft::detail::WaitNode;
using weft::detail::Withdrawn;

// A thread is a loop with one task. The last one changes what the others wait for; the first
// kCancelled of those are cancelled as soon as they wait.
template <class Self, int kThreads, int kCancelled, bool kAll>
struct Room : rl::test_suite<Self, kThreads> {
  ParkingLotCore queue;
  MutexCore lock;
  WaitNode places[kThreads];  // in queue
  WaitNode nodes[kThreads];   // in lock
  weft_model::Mailbox mail[kThreads];
  weft_model::Plain changed;  // guarded by the lock

  void thread(unsigned index) {
    nodes[index].home = index + 1;
    if (!relock(index)) mail[index].take();
    if (index + 1 < kThreads) {
      wait(index);
    } else {
      changed.write();
      notify();
    }
    owns(index);
    unlock(index);
  }
  void wait(unsigned index) {
    while (changed.read() == 0) {
      owns(index);
      queue.park(places[index]);
      unlock(index);
      if (index < static_cast<unsigned>(kCancelled)) return cancel(index);
      mail[index].take();
    }
  }
  // await_cancel(), and the arrival of the lock.
  void cancel(unsigned index) {
    auto [how, next] = queue.withdraw(places[index]);
    if (how == Withdrawn::unlinked) {
      if (!relock(index)) mail[index].take();
    } else {
      if (next) lock_again(*next);
      mail[index].take();
    }
    static_cast<void>(changed.read());
  }
  void notify() {
    if (!kAll) {
      if (WaitNode* place = queue.unpark_one()) lock_again(*place);
      return;
    }
    WaitList woken;
    queue.unpark_all(woken);
    while (WaitNode* place = woken.pop_front()) lock_again(*place);
  }
  void lock_again(WaitNode& place) {
    unsigned index = static_cast<unsigned>(&place - places);
    if (relock(index)) mail[index].post();
  }
  bool relock(unsigned index) { return lock.lock_or_wait(nodes[index], 0); }
  void unlock(unsigned index) {
    if (lock.try_unlock(index + 1)) return;
    auto [was_owner, next] = lock.unlock(index + 1, 0);
    RL_ASSERT(was_owner);
    if (next) mail[next->home - 1].post();
  }
  void owns(unsigned index) { RL_ASSERT(lock.owner() == index + 1); }
  void after() {
    RL_ASSERT(!lock.is_locked());
    for (auto& each : mail) RL_ASSERT(each.empty());
  }
};

struct ANotifyIsNotLost : Room<ANotifyIsNotLost, 2, 0, false> {};
struct ACancelledWaitOwnsTheLock : Room<ACancelledWaitOwnsTheLock, 2, 1, false> {};
// One notify for two: the one who is cancelled passes it on.
struct ANotifyIsPassedOn : Room<ANotifyIsPassedOn, 3, 1, false> {};
struct AllAreNotified : Room<AllAreNotified, 3, 0, true> {};

}  // namespace

int main() {
  weft_model::Report report("ConditionModel");
  report.check<ANotifyIsNotLost>("ANotifyIsNotLost", weft_model::every_reduced());
  report.check<ACancelledWaitOwnsTheLock>("ACancelledWaitOwnsTheLock", weft_model::every_reduced());
  report.check<ANotifyIsPassedOn>("ANotifyIsPassedOn", weft_model::every_reduced());
  report.check<AllAreNotified>("AllAreNotified", weft_model::every_reduced());
  return report.result();
}
