// SPDX-License-Identifier: MIT
// OnceCore: one has the turn at a time, it is done once, everyone who finds it done sees what was
// done, and the turn is not lost with one who fails or is cancelled.
#include "weft/sync/once_core.h"

#include "weft_model_loops.h"

namespace {

using weft::detail::OnceCore;
using weft_model::WaitList;
using weft_model::WaitNode;
using weft_model::Withdrawn;

enum Does { calls, fails, is_cancelled };

template <class Self, int kThreads, Does kFirst, Does kSecond = calls>
struct Callers : weft_model::Loops<Self, kThreads> {
  OnceCore once;
  weft_model::Plain work;
  int runs = 0, done = 0, seen = 0, given_up = 0;

  void thread(unsigned index) {
    const Does what = index == 0 ? kFirst : index == 1 ? kSecond : calls;
    WaitNode& node = this->node_of(index);
    if (!once.begin_or_wait(node)) {
      if (what == is_cancelled) return cancel(index);
      this->await_notify(index);
    }
    if (node.amount == OnceCore::kDone) {
      RL_ASSERT(work.read() == runs);
      ++seen;
      return;
    }
    work.write(work.read() + 1);
    ++runs;
    if (what == fails) {
      ++given_up;
      return this->tell(once.pass_on());
    }
    ++done;
    WaitList woken;
    once.done(woken);
    this->tell(woken);
  }
  void cancel(unsigned index) {
    weft_model::some_time_later();
    auto [how, next] = once.withdraw(this->nodes[index]);
    this->tell(next);
    this->end_withdrawn(index, how);
    ++given_up;
  }
  void after() {
    weft_model::Loops<Self, kThreads>::after();
    RL_ASSERT(done + seen + given_up == kThreads);
    RL_ASSERT(done == 1 || (done == 0 && given_up == kThreads));
    RL_ASSERT(once.is_done() == (done == 1) && !once.is_running());
  }
};
struct OneOfTwoDoesIt : Callers<OneOfTwoDoesIt, 2, calls> {};
struct OneOfThreeDoesIt : Callers<OneOfThreeDoesIt, 3, calls> {};
struct OneOfTwoFails : Callers<OneOfTwoFails, 2, fails> {};
struct TwoOfThreeFail : Callers<TwoOfThreeFail, 3, fails, fails> {};
struct OneOfThreeIsCancelled : Callers<OneOfThreeIsCancelled, 3, is_cancelled> {};
struct OneFailsAndOneIsCancelled : Callers<OneFailsAndOneIsCancelled, 3, fails, is_cancelled> {};
struct BothGiveUp : Callers<BothGiveUp, 2, fails, is_cancelled> {};

}  // namespace

int main() {
  weft_model::Report report("OnceModel");
  report.check<OneOfTwoDoesIt>("OneOfTwoDoesIt", weft_model::every());
  report.check<OneOfTwoFails>("OneOfTwoFails", weft_model::every());
  report.check<BothGiveUp>("BothGiveUp", weft_model::every());
  report.check<OneOfThreeDoesIt>("OneOfThreeDoesIt", weft_model::every_reduced());
  report.check<TwoOfThreeFail>("TwoOfThreeFail", weft_model::every_reduced());
  report.check<OneOfThreeIsCancelled>("OneOfThreeIsCancelled", weft_model::every_reduced());
  report.check<OneFailsAndOneIsCancelled>("OneFailsAndOneIsCancelled", weft_model::every_reduced());
  return report.result();
}
