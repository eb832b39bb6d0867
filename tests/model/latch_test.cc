// SPDX-License-Identifier: MIT
// LatchCore: nobody misses the last count_down(), who goes on sees what happened before every one of
// them and may destroy the latch, and a cancelled wait leaves nothing behind.
#include "weft/sync/latch_core.h"

#include "weft_model_loops.h"

namespace {

using weft::detail::LatchCore;
using weft_model::WaitList;
using weft_model::Withdrawn;

// The first kCounters threads count down, the others wait.
template <class Self, int kThreads, unsigned kCounters>
struct Counted : weft_model::Loops<Self, kThreads> {
  weft_model::Block<LatchCore> latch;
  weft_model::Plain written[kCounters];
  int went_on = 0;

  void before() { latch.make(kCounters); }
  void after() {
    weft_model::Loops<Self, kThreads>::after();
    if (!latch.freed()) latch.free();
  }
  void count_down(unsigned index) {
    written[index].write();
    WaitList woken;
    const bool counted = latch->count_down(1, woken);
    RL_ASSERT(counted);
    this->tell(woken);
  }
  void wait(unsigned index) {
    if (!latch->look_or_wait(this->node_of(index))) this->await_notify(index);
    go_on();
  }
  void go_on() {
    for (auto& each : written) RL_ASSERT(each.read() == 1);
    ++went_on;
  }
  void wait_and_be_cancelled(unsigned index) {
    if (latch->look_or_wait(this->node_of(index))) return go_on();
    weft_model::some_time_later();
    this->end_withdrawn(index, latch->withdraw(this->nodes[index]));
  }
};

template <class Self, int kThreads>
struct MayDestroy : Counted<Self, kThreads, kThreads - 1> {
  void thread(unsigned index) {
    if (index < kThreads - 1) return this->count_down(index);
    this->wait(index);
    this->latch.free();
  }
};
struct WhoGoesOnMayDestroyIt : MayDestroy<WhoGoesOnMayDestroyIt, 2> {};
struct WhoGoesOnSeesWhatBothDid : MayDestroy<WhoGoesOnSeesWhatBothDid, 3> {};

struct TheLastOneWakesAll : Counted<TheLastOneWakesAll, 3, 1> {
  void thread(unsigned index) { return index == 0 ? count_down(0) : wait(index); }
  void after() {
    Counted::after();
    RL_ASSERT(went_on == 2);
  }
};
struct ACancelMeetsTheLastOne : Counted<ACancelMeetsTheLastOne, 3, 1> {
  void thread(unsigned index) {
    if (index == 0) return count_down(0);
    if (index == 1) return wait_and_be_cancelled(1);
    wait(2);
  }
};

// As arrive_and_wait() does.
struct WhoArrivesWaitsForTheOthers : Counted<WhoArrivesWaitsForTheOthers, 3, 3> {
  void thread(unsigned index) {
    count_down(index);
    wait(index);
  }
  void after() {
    Counted::after();
    RL_ASSERT(went_on == 3);
  }
};

}  // namespace

int main() {
  weft_model::Report report("LatchModel");
  report.check<WhoGoesOnMayDestroyIt>("WhoGoesOnMayDestroyIt", weft_model::every());
  report.check<WhoGoesOnSeesWhatBothDid>("WhoGoesOnSeesWhatBothDid", weft_model::every_reduced());
  report.check<TheLastOneWakesAll>("TheLastOneWakesAll", weft_model::every_reduced());
  report.check<ACancelMeetsTheLastOne>("ACancelMeetsTheLastOne", weft_model::every_reduced());
  report.check<WhoArrivesWaitsForTheOthers>("WhoArrivesWaitsForTheOthers",
                                            weft_model::every_reduced());
  return report.result();
}
