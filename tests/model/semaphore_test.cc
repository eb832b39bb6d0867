// SPDX-License-Identifier: MIT
// SemaphoreCore: never more inside than there are permits, who enters sees what those did who left,
// nobody is forgotten, and a cancelled waiter takes nothing with it, whether it was waiting or had
// been given its permits already.
#include "weft/sync/semaphore_core.h"

#include "weft_model.h"

namespace {

using weft::detail::SemaphoreCore;
using weft::detail::WaitList;
using weft::detail::WaitNode;
using weft::detail::WaitState;
using weft::detail::Withdrawn;

// A thread is a loop with one task.
template <class Self, int kThreads, unsigned kPermits, unsigned kMax = kPermits>
struct Room : rl::test_suite<Self, kThreads> {
  SemaphoreCore core{{.permits = kPermits, .max = kMax}};
  WaitNode nodes[kThreads];
  weft_model::Mailbox mail[kThreads];
  unsigned inside = 0;

  enum Cancel { stays, cancelled_when_it_waits };
  // Among three, a look before the wait would only make more of the same interleavings.
  static constexpr bool kTriesFirst = kThreads == 2;

  // Returns: true if it has `count` permits.
  bool acquire(unsigned index, unsigned count, Cancel cancel = stays) {
    WaitNode& node = nodes[index];
    node.home = index + 1;
    node.amount = count;
    if (!(kTriesFirst && core.try_take(count)) && !core.take_or_wait(node)) {
      if (cancel == cancelled_when_it_waits) return withdraw(index), false;
      mail[index].take();
      RL_ASSERT(node.state == WaitState::notified);
    }
    inside += count;
    RL_ASSERT(inside <= kMax);
    return true;
  }
  void release(unsigned count) {
    inside -= count;
    add(count);
  }
  void add(unsigned count) {
    WaitList served;
    bool given = core.give(count, served);
    RL_ASSERT(given);
    tell(served);
  }
  void withdraw(unsigned index) {
    WaitList served;
    Withdrawn how = core.withdraw(nodes[index], served);
    tell(served);
    if (how == Withdrawn::passed_on) {
      add(nodes[index].amount);
      mail[index].take();  // N3
    }
    RL_ASSERT(!nodes[index].linked());
  }
  void tell(WaitList& served) {
    while (WaitNode* node = served.pop_front()) mail[node->home - 1].post();
  }
  void after() {
    RL_ASSERT(inside == 0);
    RL_ASSERT(core.free() == kMax);
    RL_ASSERT(!core.has_waiters());
    for (auto& each : mail) RL_ASSERT(each.empty());
  }
};

// One permit each, of one: a mutex.
template <class Self, int kThreads, int kCancelled>
struct OnePermit : Room<Self, kThreads, 1> {
  weft_model::Plain seat;
  void thread(unsigned index) {
    bool cancelled = index < static_cast<unsigned>(kCancelled);
    if (!this->acquire(index, 1, cancelled ? this->cancelled_when_it_waits : this->stays)) return;
    seat.write(seat.read() + 1);
    this->release(1);
  }
};
struct TwoTakeTurns : OnePermit<TwoTakeTurns, 2, 0> {};
struct OneOfTwoIsCancelled : OnePermit<OneOfTwoIsCancelled, 2, 1> {};
struct ThreeTakeTurns : OnePermit<ThreeTakeTurns, 3, 0> {};
struct TwoOfThreeAreCancelled : OnePermit<TwoOfThreeAreCancelled, 3, 2> {};

// One wants both; of the others one has one, and the other wants it.
template <class Self, bool kCancelled>
struct LargeAndSmall : Room<Self, 3, 1, 2> {
  weft_model::Plain seats[2];
  void before() { this->inside = 1; }
  void thread(unsigned index) {
    if (index > 0) {
      if (index == 2) this->acquire(2, 1);
      seats[index - 1].write();
      return this->release(1);
    }
    if (!this->acquire(0, 2, kCancelled ? this->cancelled_when_it_waits : this->stays)) return;
    for (auto& each : seats) each.write();
    this->release(2);
  }
};
struct ALargeOneWaitsForBoth : LargeAndSmall<ALargeOneWaitsForBoth, false> {};
struct ALargeOneIsCancelled : LargeAndSmall<ALargeOneIsCancelled, true> {};

// A gives one, B wanted two and is cancelled, C takes the one: and sees what A did, though B has
// written the word between them.
struct AWithdrawnWaitPassesOnWhatOthersDid : Room<AWithdrawnWaitPassesOnWhatOthersDid, 3, 0, 2> {
  weft_model::Plain written;
  void thread(unsigned index) {
    if (index == 0) {
      written.write();
      add(1);
    } else if (index == 1) {
      if (acquire(1, 2, cancelled_when_it_waits)) release(2);
    } else if (core.try_take(1)) {
      RL_ASSERT(written.read() == 1);
      add(1);
    }
  }
  void after() { RL_ASSERT(core.free() == 1 && !core.has_waiters()); }
};

// Three are given, two of them to one who waited: who takes the third sees what the giver did.
struct WhatIsLeftCarriesWhatItsGiverDid : Room<WhatIsLeftCarriesWhatItsGiverDid, 3, 0, 3> {
  weft_model::Plain written;
  void thread(unsigned index) {
    if (index == 0) {
      written.write();
      return add(3);
    }
    if (index == 1) {
      acquire(1, 2);
    } else if (core.try_take(1)) {
      add(1);
    } else {
      return;
    }
    RL_ASSERT(written.read() == 1);
  }
  void after() { RL_ASSERT(core.free() == 1 && !core.has_waiters()); }
};

// Two give one each; who takes both sees what both did, waited or not.
struct WhoTakesTwoSeesBothGivers : Room<WhoTakesTwoSeesBothGivers, 3, 0, 2> {
  weft_model::Plain written[2];
  void thread(unsigned index) {
    if (index < 2) {
      written[index].write();
      return add(1);
    }
    acquire(2, 2);
    RL_ASSERT(written[0].read() + written[1].read() == 2);
    release(2);
  }
};

}  // namespace

int main() {
  weft_model::Report report("SemaphoreModel");
  report.check<TwoTakeTurns>("TwoTakeTurns", weft_model::every());
  report.check<OneOfTwoIsCancelled>("OneOfTwoIsCancelled", weft_model::every());
  report.check<ThreeTakeTurns>("ThreeTakeTurns", weft_model::every_reduced());
  report.check<TwoOfThreeAreCancelled>("TwoOfThreeAreCancelled", weft_model::every_reduced());
  report.check<ALargeOneWaitsForBoth>("ALargeOneWaitsForBoth", weft_model::every_reduced());
  report.check<ALargeOneIsCancelled>("ALargeOneIsCancelled", weft_model::every_reduced());
  report.check<AWithdrawnWaitPassesOnWhatOthersDid>("AWithdrawnWaitPassesOnWhatOthersDid",
                                                    weft_model::every_reduced());
  report.check<WhatIsLeftCarriesWhatItsGiverDid>("WhatIsLeftCarriesWhatItsGiverDid",
                                                 weft_model::every_reduced());
  report.check<WhoTakesTwoSeesBothGivers>("WhoTakesTwoSeesBothGivers", weft_model::every_reduced());
  return report.result();
}
