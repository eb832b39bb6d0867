// SPDX-License-Identifier: MIT
// MutexCore: one inside at a time who sees what the last one did, nobody forgotten, and a cancelled
// waiter takes nothing with it, whether it was waiting or the owner already.
#include "weft/sync/mutex_core.h"

#include "weft_model_loops.h"

namespace {

using weft::detail::MutexCore;
using weft_model::WaitNode;

template <class Self, int kThreads>
struct Room : weft_model::Loops<Self, kThreads> {
  MutexCore core;
  weft_model::Plain inside;
  int visits = 0;
  int withdrawn = 0;

  void enter_and_unlock(unsigned index) {
    const unsigned home = this->nodes[index].home;
    RL_ASSERT(core.owner() == home);
    inside.write(inside.read() + 1);
    ++visits;
    if (core.try_unlock(home)) return;
    auto [was_owner, next] = core.unlock(home, 0);
    RL_ASSERT(was_owner);
    this->tell(next);
  }
  void cancel(unsigned index) {
    auto [how, next] = core.withdraw(this->nodes[index], 0);
    this->tell(next);
    this->end_withdrawn(index, how);
    ++withdrawn;
  }
  void after() {
    RL_ASSERT(visits + withdrawn == kThreads);
    RL_ASSERT(!core.is_locked());
    weft_model::Loops<Self, kThreads>::after();
  }
};

// All come at once. kCancelled of them are cancelled as soon as they wait.
template <class Self, int kThreads, int kCancelled>
struct TakeTurns : Room<Self, kThreads> {
  // Among three, a look before the wait would only make more of the same interleavings.
  static constexpr bool kTriesFirst = kThreads == 2;

  void thread(unsigned index) {
    WaitNode& node = this->node_of(index);
    if (!(kTriesFirst && this->core.try_lock(node.home)) && !this->core.lock_or_wait(node, 0)) {
      if (index < kCancelled) return this->cancel(index);
      this->await_notify(index);
    }
    this->enter_and_unlock(index);
  }
};
struct TwoTakeTurns : TakeTurns<TwoTakeTurns, 2, 0> {};
struct ThreeTakeTurns : TakeTurns<ThreeTakeTurns, 3, 0> {};
struct OneOfTwoIsCancelled : TakeTurns<OneOfTwoIsCancelled, 2, 1> {};
struct OneOfThreeIsCancelled : TakeTurns<OneOfThreeIsCancelled, 3, 1> {};
struct TwoOfThreeAreCancelled : TakeTurns<TwoOfThreeAreCancelled, 3, 2> {};

// The same from the middle, where three have few enough interleavings to go through: the first is
// inside and unlocks, the second waits, and the third waits or just comes.
enum Third { comes, comes_and_is_cancelled, waits, waits_and_is_cancelled };
enum Second { stays, is_cancelled };
template <class Self, Second kSecond, Third kThird>
struct FromTheMiddle : Room<Self, 3> {
  static constexpr bool kThirdWaits = kThird == waits || kThird == waits_and_is_cancelled;

  void before() {
    for (unsigned index = 0; index < (kThirdWaits ? 3 : 2); ++index) {
      const bool locked = this->core.lock_or_wait(this->node_of(index), 0);
      RL_ASSERT(locked == (index == 0));
    }
  }
  void thread(unsigned index) {
    if (index == 1 && kSecond == is_cancelled) return this->cancel(1);
    if (index == 1 || (index == 2 && kThird == waits)) this->await_notify(index);
    if (index == 2 && kThird == waits_and_is_cancelled) return this->cancel(2);
    if (index == 2 && !kThirdWaits) {
      WaitNode& node = this->node_of(2);
      if (!this->core.try_lock(node.home) && !this->core.lock_or_wait(node, 0)) {
        if (kThird == comes_and_is_cancelled) return this->cancel(2);
        this->await_notify(2);
      }
    }
    this->enter_and_unlock(index);
  }
};
struct AnUnlockAndALock : FromTheMiddle<AnUnlockAndALock, stays, comes> {};
struct AnUnlockACancelAndALock : FromTheMiddle<AnUnlockACancelAndALock, is_cancelled, comes> {};
struct AnUnlockACancelAndALockThatIsCancelled
    : FromTheMiddle<AnUnlockACancelAndALockThatIsCancelled, is_cancelled, comes_and_is_cancelled> {
};
struct AnUnlockAndALockThatIsCancelled
    : FromTheMiddle<AnUnlockAndALockThatIsCancelled, stays, comes_and_is_cancelled> {};
struct AnUnlockAndACancelOfTheFirst
    : FromTheMiddle<AnUnlockAndACancelOfTheFirst, is_cancelled, waits> {};
struct AnUnlockAndACancelOfTheLast
    : FromTheMiddle<AnUnlockAndACancelOfTheLast, stays, waits_and_is_cancelled> {};
struct AnUnlockAndTwoCancels
    : FromTheMiddle<AnUnlockAndTwoCancels, is_cancelled, waits_and_is_cancelled> {};

}  // namespace

int main() {
  weft_model::Report report("MutexModel");
  report.check<TwoTakeTurns>("TwoTakeTurns", weft_model::every());
  report.check<OneOfTwoIsCancelled>("OneOfTwoIsCancelled", weft_model::every());
  report.check<ThreeTakeTurns>("ThreeTakeTurns", weft_model::every_reduced());
  report.check<OneOfThreeIsCancelled>("OneOfThreeIsCancelled", weft_model::every_reduced());
  report.check<TwoOfThreeAreCancelled>("TwoOfThreeAreCancelled", weft_model::every_reduced());
  report.check<AnUnlockAndACancelOfTheFirst>("AnUnlockAndACancelOfTheFirst",
                                             weft_model::every_reduced());
  report.check<AnUnlockAndACancelOfTheLast>("AnUnlockAndACancelOfTheLast",
                                            weft_model::every_reduced());
  report.check<AnUnlockAndTwoCancels>("AnUnlockAndTwoCancels", weft_model::every_reduced());
  report.check<AnUnlockAndALock>("AnUnlockAndALock", weft_model::every_reduced());
  report.check<AnUnlockAndALockThatIsCancelled>("AnUnlockAndALockThatIsCancelled",
                                                weft_model::every_reduced());
  report.check<AnUnlockACancelAndALock>("AnUnlockACancelAndALock", weft_model::every_reduced());
  report.check<AnUnlockACancelAndALockThatIsCancelled>("AnUnlockACancelAndALockThatIsCancelled",
                                                       weft_model::every_reduced());
  return report.result();
}
