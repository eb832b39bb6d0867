// SPDX-License-Identifier: MIT
// A timer that expires while others cancel the task that sleeps: exactly one of the two ends the
// sleep, whoever asks, wherever from. The home loop alone touches the timer; what crosses threads is
// the word and the kick.
#include "weft/core/cancellation_state.h"
#include "weft/core/inbox.h"
#include "weft_model.h"

namespace {

using weft::CancellationState;
using weft::detail::Inbox;
using weft::detail::PostEntry;
using weft::detail::PostKind;
using weft::detail::PostNode;

// A strand that sleeps, as far as its home sees it.
template <class Self, int kCancellers>
struct Sleeper : rl::test_suite<Self, kCancellers + 1> {
  CancellationState state{CancellationState::HOMED | CancellationState::SHARED | 1};  // W7
  Inbox inbox;
  PostNode kick_node;
  weft_model::Mailbox wake;
  weft_model::Plain reason;  // written by the first canceller
  weft_model::Plain strand;  // the home's
  int kicks = 0, arrived_kicks = 0;
  bool armed = true, parked = true, husk = false, freed = false;
  int fired = 0, cancelled = 0;

  void thread(unsigned index) {
    if (index == 0) return home();
    if (index == 1) reason.write(7);
    if (!state.request_cancel()) return;
    ++kicks;
    if (inbox.push(PostEntry(kick_node, PostKind::kick)) == Inbox::Pushed::wake_it) wake.post();
  }

  void home() {
    strand.write(1);
    turn();
    expire();
    // The task goes on, or is unwound, and ends.
    RL_ASSERT(fired + cancelled == 1);
    CancellationState::Word before = state.close();
    if (!CancellationState::leaves_husk(before)) return release();
    // A kick is under way, and is waited for.
    husk = true;
    while (husk) {
      turn();
      if (husk && inbox.try_sleep()) wake.take();
    }
  }
  // Kicks go first.
  void turn() {
    weft::detail::PostChain arrived = inbox.take_all();
    while (!arrived.empty()) {
      RL_ASSERT(arrived.pop().kind() == PostKind::kick);
      kick();
    }
  }
  void kick() {
    ++arrived_kicks;
    CancellationState::Word before = state.set_kicked();
    if (kCancellers == 1) RL_ASSERT(reason.read() == 7);  // W6
    if (before & CancellationState::CLOSED) {
      husk = false;
      return release();
    }
    if (!parked) return;  // the timer was first: the request strikes at the next wait
    RL_ASSERT(armed);
    armed = parked = false;
    ++cancelled;
  }
  void expire() {
    if (!armed) return;
    armed = parked = false;
    ++fired;
  }
  void release() {
    RL_ASSERT(!freed);
    freed = true;
    strand.write(0);
  }
  void after() {
    RL_ASSERT(freed && !armed);
    RL_ASSERT(kicks <= 1 && arrived_kicks == kicks);
  }
};
struct ExpiryMeetsACancel : Sleeper<ExpiryMeetsACancel, 1> {};
struct ExpiryMeetsTwoCancels : Sleeper<ExpiryMeetsTwoCancels, 2> {};

}  // namespace

int main() {
  weft_model::Report report("TimerModel");
  report.check<ExpiryMeetsACancel>("ExpiryMeetsACancel", weft_model::every());
  report.check<ExpiryMeetsTwoCancels>("ExpiryMeetsTwoCancels", weft_model::every());
  return report.result();
}
