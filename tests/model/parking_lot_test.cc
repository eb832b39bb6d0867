// SPDX-License-Identifier: MIT
// ParkingLotCore: an unpark of one lets one go on, also if the first whom it meets is cancelled; an
// unpark of all lets those go on who are parked; and who goes on sees what happened before.
#include "weft/sync/parking_lot_core.h"

#include "weft_model_loops.h"

namespace {

using weft::detail::ParkingLotCore;
using weft_model::WaitList;
using weft_model::Withdrawn;

enum Unpark { one, all };

// Thread 0 unparks; the others have parked before.
template <class Self, int kThreads>
struct Parked : weft_model::Loops<Self, kThreads> {
  ParkingLotCore lot;
  weft_model::Plain written;
  int went_on = 0;

  void before() {
    for (unsigned index = 1; index < kThreads; ++index) lot.park(this->node_of(index));
  }
  void unpark(Unpark how) {
    written.write();
    if (how == one) return this->tell(lot.unpark_one());
    WaitList woken;
    lot.unpark_all(woken);
    this->tell(woken);
  }
  void go_on(unsigned index) {
    this->await_notify(index);
    RL_ASSERT(written.read() == 1);
    ++went_on;
  }
  void cancel(unsigned index) {
    auto [how, next] = lot.withdraw(this->nodes[index]);
    this->tell(next);
    this->end_withdrawn(index, how);
  }
  void after() {
    weft_model::Loops<Self, kThreads>::after();
    RL_ASSERT(!lot.has_waiters());
  }
};

template <class Self, Unpark kHow>
struct FirstIsCancelled : Parked<Self, 3> {
  void thread(unsigned index) {
    if (index == 0) return this->unpark(kHow);
    if (index == 1) return this->cancel(1);
    this->go_on(2);
  }
};
struct AnUnparkOfOneIsPassedOn : FirstIsCancelled<AnUnparkOfOneIsPassedOn, one> {};
struct AnUnparkOfAllMeetsACancel : FirstIsCancelled<AnUnparkOfAllMeetsACancel, all> {};

// Both are cancelled: the unpark goes from one to the other, and is gone.
struct AnUnparkOfOneMeetsTwoCancels : Parked<AnUnparkOfOneMeetsTwoCancels, 3> {
  void thread(unsigned index) { return index == 0 ? unpark(one) : cancel(index); }
};

// An unpark of all is not passed on: who parks after it stays until the next.
struct AnUnparkOfAllIsNotPassedOn : Parked<AnUnparkOfAllIsNotPassedOn, 2> {
  weft::detail::WaitNode late;

  void thread(unsigned index) {
    if (index == 1) return cancel(1);
    unpark(all);
    late.home = 1;
    lot.park(late);
  }
  void after() {
    RL_ASSERT(mail[0].empty());
    RL_ASSERT(lot.unpark_one() == &late);
    Parked::after();
  }
};

// Two unparks let both go on, or the second finds nobody because one was cancelled.
struct TwoUnparksAndACancel : Parked<TwoUnparksAndACancel, 3> {
  void thread(unsigned index) {
    if (index == 0) {
      unpark(one);
      return unpark_again();
    }
    if (index == 1) return cancel(1);
    go_on(2);
  }
  void unpark_again() { this->tell(lot.unpark_one()); }
};

// The unpark finds it, or remembers nothing; then the cancel ends the wait.
template <class Self, Unpark kHow>
struct ParkMeetsUnpark : Parked<Self, 2> {
  void before() {}
  void thread(unsigned index) {
    if (index == 0) return this->unpark(kHow);
    this->lot.park(this->node_of(1));
    weft_model::some_time_later();
    this->cancel(1);
  }
};
struct AParkMeetsAnUnparkOfOne : ParkMeetsUnpark<AParkMeetsAnUnparkOfOne, one> {};
struct AParkMeetsAnUnparkOfAll : ParkMeetsUnpark<AParkMeetsAnUnparkOfAll, all> {};

}  // namespace

int main() {
  weft_model::Report report("ParkingLotModel");
  report.check<AnUnparkOfAllIsNotPassedOn>("AnUnparkOfAllIsNotPassedOn", weft_model::every());
  report.check<AParkMeetsAnUnparkOfOne>("AParkMeetsAnUnparkOfOne", weft_model::every());
  report.check<AParkMeetsAnUnparkOfAll>("AParkMeetsAnUnparkOfAll", weft_model::every());
  report.check<AnUnparkOfOneIsPassedOn>("AnUnparkOfOneIsPassedOn", weft_model::every_reduced());
  report.check<AnUnparkOfAllMeetsACancel>("AnUnparkOfAllMeetsACancel", weft_model::every_reduced());
  report.check<AnUnparkOfOneMeetsTwoCancels>("AnUnparkOfOneMeetsTwoCancels",
                                             weft_model::every_reduced());
  report.check<TwoUnparksAndACancel>("TwoUnparksAndACancel", weft_model::every_reduced());
  return report.result();
}
