// SPDX-License-Identifier: MIT
// WaiterSlot: an end and the one who waits for it, from two and three threads.
#include "weft/core/waiter_slot.h"

#include "weft_model.h"

namespace {

using weft_model::Mailbox;
using weft_model::Plain;

constexpr int kOutcome = 42;

struct Waiter {
  Plain fields;  // written before attach(), read by whoever publishes
  Mailbox woken;
  bool owed = false;  // attached and not withdrawn
  bool came = false;
};

struct Slot {
  using Attached = weft::detail::WaiterSlot<Waiter>::Attached;

  Plain outcome;
  weft::detail::WaiterSlot<Waiter> slot;
  int wakes = 0;

  void publish() {
    outcome.write(kOutcome);
    if (Waiter* waiter = slot.publish()) {
      waiter->fields.read();
      ++wakes;
      waiter->woken.post();
    }
  }

  // Waits, or changes its mind. Returns: true if it knows the outcome.
  bool wait(Waiter& waiter, bool withdraw) {
    waiter.fields.write();
    Attached attached = slot.attach(waiter);
    RL_ASSERT(attached != Attached::taken);
    if (attached == Attached::waiting) {
      waiter.owed = !(withdraw && slot.withdraw(waiter));
      if (!waiter.owed) {
        waiter.fields.write(2);  // S3: nobody else touches it now
        return false;
      }
      waiter.woken.take();
      waiter.came = true;
      waiter.fields.write(2);
    }
    RL_ASSERT(outcome.read() == kOutcome);
    return true;
  }

  void check(const Waiter& waiter) const {
    RL_ASSERT(waiter.came == waiter.owed);
    RL_ASSERT(waiter.woken.empty());
    RL_ASSERT(slot.done());
  }
};

// S2, S3: woken exactly if it attached and did not withdraw; sees the outcome either way.
struct WaiterIsWokenExactlyIfItStayed : rl::test_suite<WaiterIsWokenExactlyIfItStayed, 2> {
  Slot slot;
  Waiter waiter;

  void thread(unsigned index) {
    if (index == 0) return slot.publish();
    slot.wait(waiter, rl::rand(2));
  }
  void after() {
    slot.check(waiter);
    RL_ASSERT(slot.wakes == waiter.owed);
  }
};

// S1: a second waiter takes the place of one that withdrew, on another thread.
struct PlaceIsFreeAfterWithdraw : rl::test_suite<PlaceIsFreeAfterWithdraw, 3> {
  Slot slot;
  Waiter first, second;
  Mailbox next;

  void thread(unsigned index) {
    switch (index) {
      case 0:
        return slot.publish();
      case 1:
        slot.wait(first, true);
        return next.post();
      default:
        next.take();
        slot.wait(second, false);
    }
  }
  void after() {
    slot.check(first);
    slot.check(second);
    RL_ASSERT(slot.wakes == first.owed + second.owed);
  }
};

// S1: of two waiters at once, one is told that the place is taken.
struct OnlyOneWaits : rl::test_suite<OnlyOneWaits, 2> {
  Slot slot;
  Waiter waiters[2];
  int waiting = 0, taken = 0;

  void thread(unsigned index) {
    waiters[index].fields.write();
    Slot::Attached attached = slot.slot.attach(waiters[index]);
    waiting += attached == Slot::Attached::waiting;
    taken += attached == Slot::Attached::taken;
  }
  void after() { RL_ASSERT(waiting == 1 && taken == 1); }
};

// S2: who sees done() without waiting sees the outcome.
struct DoneMeansTheOutcomeIsVisible : rl::test_suite<DoneMeansTheOutcomeIsVisible, 2> {
  Slot slot;

  void thread(unsigned index) {
    if (index == 0) return slot.publish();
    if (slot.slot.done()) RL_ASSERT(slot.outcome.read() == kOutcome);
  }
};

}  // namespace

int main() {
  weft_model::Report report("WaiterSlotModel");
  report.check<WaiterIsWokenExactlyIfItStayed>("WaiterIsWokenExactlyIfItStayed",
                                               weft_model::every());
  report.check<PlaceIsFreeAfterWithdraw>("PlaceIsFreeAfterWithdraw", weft_model::every());
  report.check<OnlyOneWaits>("OnlyOneWaits", weft_model::every());
  report.check<DoneMeansTheOutcomeIsVisible>("DoneMeansTheOutcomeIsVisible", weft_model::every());
  return report.result();
}
