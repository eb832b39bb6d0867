// SPDX-License-Identifier: MIT
// BarrierCore: nobody goes on before all have arrived, one of them is the last, who goes on sees what
// the others did before, and a cancelled arrival is taken back or counts, never both.
#include "weft/sync/barrier_core.h"

#include "weft_model_loops.h"

namespace {

using weft::detail::BarrierCore;
using weft_model::WaitList;
using weft_model::Withdrawn;

template <class Self, int kThreads, unsigned kParties>
struct Meeting : weft_model::Loops<Self, kThreads> {
  BarrierCore barrier{kParties};
  weft_model::Plain written[kThreads];
  int lasts = 0;

  // Returns: true if it waits now.
  bool comes(unsigned index) {
    WaitList woken;
    if (!barrier.arrive_or_wait(this->node_of(index), woken)) return true;
    this->tell(woken);
    ++lasts;
    return false;
  }
  void arrive(unsigned index) {
    if (comes(index)) this->await_notify(index);
  }
  // Returns: false if the arrival was taken back.
  bool arrive_and_be_cancelled(unsigned index) {
    if (!comes(index)) return true;
    weft_model::some_time_later();
    const Withdrawn how = barrier.withdraw(this->nodes[index]);
    this->end_withdrawn(index, how);
    return how == Withdrawn::kept;
  }
  void drop() {
    WaitList woken;
    const bool dropped = barrier.drop(woken);
    RL_ASSERT(dropped);
    this->tell(woken);
  }
  void after() {
    weft_model::Loops<Self, kThreads>::after();
    RL_ASSERT(barrier.missing() == barrier.parties());
  }
};

// In each phase every party writes, and after it sees what the others wrote.
template <class Self, int kParties, int kPhases>
struct InStep : Meeting<Self, kParties, kParties> {
  void thread(unsigned index) {
    for (int phase = 1; phase <= kPhases; ++phase) {
      this->written[index].write(phase);
      this->arrive(index);
      for (auto& each : this->written) RL_ASSERT(each.read() == phase);
      if (phase < kPhases) this->arrive(index);  // all have looked
    }
  }
  void after() {
    Meeting<Self, kParties, kParties>::after();
    RL_ASSERT(this->lasts == 2 * kPhases - 1);
  }
};
struct ThreeMeetOnce : InStep<ThreeMeetOnce, 3, 1> {};
struct TwoMeetAgainAndAgain : InStep<TwoMeetAgainAndAgain, 2, 2> {};

// Two are enough, and three come. If the first has met one of the others it comes again, for the third.
struct ACancelMeetsTheLastArrival : Meeting<ACancelMeetsTheLastArrival, 3, 2> {
  int met = 0;
  void thread(unsigned index) {
    if (index > 0) return arrive(index);
    if (!arrive_and_be_cancelled(0)) return;
    ++met;
    arrive(0);
  }
  void after() {
    Meeting::after();
    RL_ASSERT(lasts == 1 + met);
  }
};

struct ADropEndsThePhase : Meeting<ADropEndsThePhase, 3, 3> {
  void thread(unsigned index) {
    written[index].write();
    if (index == 0) return drop();
    arrive(index);
    for (auto& each : written) RL_ASSERT(each.read() == 1);
  }
  void after() {
    Meeting::after();
    RL_ASSERT(barrier.parties() == 2);
  }
};
// One of three drops, one is cancelled; the last waits for a second, if that one took it back.
struct ADropMeetsACancel : Meeting<ADropMeetsACancel, 3, 3> {
  void thread(unsigned index) {
    if (index == 0) return drop();
    if (index == 2) return arrive(2);
    if (!arrive_and_be_cancelled(1)) arrive(1);
  }
};

}  // namespace

int main() {
  weft_model::Report report("BarrierModel");
  report.check<TwoMeetAgainAndAgain>("TwoMeetAgainAndAgain", weft_model::every());
  report.check<ThreeMeetOnce>("ThreeMeetOnce", weft_model::every_reduced());
  report.check<ACancelMeetsTheLastArrival>("ACancelMeetsTheLastArrival",
                                           weft_model::every_reduced());
  report.check<ADropEndsThePhase>("ADropEndsThePhase", weft_model::every_reduced());
  report.check<ADropMeetsACancel>("ADropMeetsACancel", weft_model::every_reduced());
  return report.result();
}
