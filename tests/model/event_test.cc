// SPDX-License-Identifier: MIT
// EventCore, AutoEventCore: nobody misses a set(), who goes on sees what happened before it and may
// destroy the event, and a signal is neither lost nor doubled by a cancelled wait.
#include "weft/sync/event_core.h"

#include "weft_model_loops.h"

namespace {

using weft::detail::AutoEventCore;
using weft::detail::EventCore;
using weft_model::Loops;
using weft_model::WaitList;
using weft_model::WaitNode;
using weft_model::Withdrawn;

enum Cancel { stays, cancelled_when_it_waits };

// --- Manual reset -------------------------------------------------------------------------------

template <class Self, int kThreads>
struct Manual : Loops<Self, kThreads> {
  weft_model::Block<EventCore> event;
  weft_model::Plain written;

  void before() { event.make(); }
  void after() {
    Loops<Self, kThreads>::after();
    if (!event.freed()) event.free();
  }
  // Returns: true if it was let through.
  bool wait(unsigned index, Cancel cancel = stays) {
    WaitNode& node = this->node_of(index);
    if (event->look_or_wait(node)) return true;
    if (cancel == cancelled_when_it_waits) {
      weft_model::some_time_later();
      this->end_withdrawn(index, event->withdraw(node));
      return false;
    }
    this->await_notify(index);
    return true;
  }
  void set() {
    WaitList woken;
    event->set(woken);
    this->tell(woken);
  }
};

struct WhoGoesOnMayDestroyIt : Manual<WhoGoesOnMayDestroyIt, 2> {
  void thread(unsigned index) {
    if (index == 0) {
      written.write();
      return set();
    }
    wait(1);
    RL_ASSERT(written.read() == 1);
    event.free();
  }
};

struct WhoFindsItSetSeesWhatWasBefore : Manual<WhoFindsItSetSeesWhatWasBefore, 2> {
  void thread(unsigned index) {
    if (index == 0) {
      written.write();
      return set();
    }
    if (event->is_set()) RL_ASSERT(written.read() == 1);
  }
};

template <class Self, Cancel kCancel>
struct TwoWaiters : Manual<Self, 3> {
  void thread(unsigned index) {
    if (index == 0) {
      this->written.write();
      return this->set();
    }
    if (this->wait(index, index == 1 ? kCancel : stays)) RL_ASSERT(this->written.read() == 1);
  }
};
struct ASetWakesAll : TwoWaiters<ASetWakesAll, stays> {};
struct ACancelMeetsASet : TwoWaiters<ACancelMeetsASet, cancelled_when_it_waits> {};

// Whoever waits is woken by the first set() or by the last; the reset() takes nobody's wake-up.
struct AResetBetweenTwoSets : Manual<AResetBetweenTwoSets, 3> {
  void thread(unsigned index) {
    if (index > 0) {
      wait(index);
      return;
    }
    set();
    event->reset();
    set();
  }
};

// --- Auto reset ---------------------------------------------------------------------------------

// One signal, which goes round: whoever is let through sets it for the next. So it is there at the
// end.
template <class Self, int kThreads, int kCancelled>
struct OneSignal : Loops<Self, kThreads> {
  AutoEventCore event;
  weft_model::Plain inside;
  int let_through = 0;
  int cancelled = 0;

  void before() { this->tell(event.set()); }
  void thread(unsigned index) {
    WaitNode& node = this->node_of(index);
    if (!event.take_or_wait(node)) {
      if (index < static_cast<unsigned>(kCancelled)) return cancel(index);
      this->await_notify(index);
    }
    inside.write(inside.read() + 1);
    ++let_through;
    this->tell(event.set());
  }
  void cancel(unsigned index) {
    auto [how, next] = event.withdraw(this->nodes[index]);
    this->tell(next);
    this->end_withdrawn(index, how);
    ++cancelled;
  }
  void after() {
    Loops<Self, kThreads>::after();
    RL_ASSERT(let_through + cancelled == kThreads);
    RL_ASSERT(event.is_set());
  }
};
struct TwoTakeTurns : OneSignal<TwoTakeTurns, 2, 0> {};
struct OneOfTwoIsCancelled : OneSignal<OneOfTwoIsCancelled, 2, 1> {};
struct ThreeTakeTurns : OneSignal<ThreeTakeTurns, 3, 0> {};
struct TwoOfThreeAreCancelled : OneSignal<TwoOfThreeAreCancelled, 3, 2> {};

// Who tries takes it from under the one that waits, or does not; never both.
struct OneSetLetsOneThrough : Loops<OneSetLetsOneThrough, 3> {
  AutoEventCore event;
  weft_model::Plain written;
  int let_through = 0;

  void thread(unsigned index) {
    if (index == 0) {
      written.write();
      return tell(event.set());
    }
    bool mine = false;
    if (index == 1) {
      mine = event.try_take();
    } else {
      mine = event.take_or_wait(node_of(2)) || !cancel();
    }
    if (mine) {
      RL_ASSERT(written.read() == 1);
      ++let_through;
    }
  }
  bool cancel() {
    weft_model::some_time_later();
    auto [how, next] = event.withdraw(nodes[2]);
    tell(next);
    end_withdrawn(2, how);
    return true;
  }
  void after() {
    Loops::after();
    RL_ASSERT(let_through + (event.is_set() ? 1 : 0) == 1);
  }
};

}  // namespace

int main() {
  weft_model::Report manual("EventModel");
  manual.check<WhoGoesOnMayDestroyIt>("WhoGoesOnMayDestroyIt", weft_model::every());
  manual.check<WhoFindsItSetSeesWhatWasBefore>("WhoFindsItSetSeesWhatWasBefore",
                                               weft_model::every());
  manual.check<ASetWakesAll>("ASetWakesAll", weft_model::every_reduced());
  manual.check<ACancelMeetsASet>("ACancelMeetsASet", weft_model::every_reduced());
  manual.check<AResetBetweenTwoSets>("AResetBetweenTwoSets", weft_model::every_reduced());
  weft_model::Report automatic("AutoEventModel");
  automatic.check<TwoTakeTurns>("TwoTakeTurns", weft_model::every());
  automatic.check<OneOfTwoIsCancelled>("OneOfTwoIsCancelled", weft_model::every());
  automatic.check<ThreeTakeTurns>("ThreeTakeTurns", weft_model::every_reduced());
  automatic.check<TwoOfThreeAreCancelled>("TwoOfThreeAreCancelled", weft_model::every_reduced());
  automatic.check<OneSetLetsOneThrough>("OneSetLetsOneThrough", weft_model::every_reduced());
  return manual.result() | automatic.result();
}
