// SPDX-License-Identifier: MIT
// SharedCore: the operation is begun once; it is asked to stop at most once, and only when nobody
// else waits; whoever waits is told of its end, and sees what it did; nobody leaves it behind
// running.
#include "weft/sync/shared_core.h"

#include "weft_model.h"

namespace {

using weft::detail::SharedCore;
using weft::detail::WaitList;
using weft::detail::WaitNode;
using weft::detail::WaitState;
using weft_model::Plain;

enum Does { stays, is_cancelled };

struct Awaiter : WaitNode {
  weft_model::Mailbox mail;
};

// Two who await it, each on a loop of its own, and the loop that the operation runs on.
template <class Self, Does kFirst, Does kSecond>
struct Group : rl::test_suite<Self, 3> {
  static constexpr int kStart = 1, kStop = 2, kOver = 3;

  SharedCore core;
  weft_model::Mailbox operation;  // start, stop; over: nobody will send more
  Awaiter awaiters[2];
  Plain done;
  bool cancelled = false;  // how it ended; written before it has
  int begun = 0, asked = 0, ended = 0, got = 0, told = 0, left = 0;

  void thread(unsigned self) {
    if (self == 2) {
      run();
    } else {
      await(awaiters[self], (self == 0 ? kFirst : kSecond) == is_cancelled);
      operation.post(kOver);
    }
  }

  void run() {
    int awaiting = 2;
    bool runs = false;
    while (awaiting > 0) {
      switch (operation.take()) {
        case kStart:
          ++begun;
          runs = true;
          // It may be done at once, or be asked to stop before.
          if (rl::rand(2) == 0) end(false), runs = false;
          break;
        case kStop:
          ++asked;
          if (runs) end(true);
          runs = false;
          break;
        default:
          --awaiting;
          break;
      }
      // Whoever stays waits for an end.
      if (runs && operation.empty() && rl::rand(2) == 0) end(false), runs = false;
      if (runs && operation.empty() && kFirst == stays) end(false), runs = false;
      if (runs && operation.empty() && kSecond == stays) end(false), runs = false;
    }
    RL_ASSERT(!runs);  // H2
  }
  void end(bool as_cancelled) {
    done.write(1);
    cancelled = as_cancelled;
    ++ended;
    WaitList woken;
    core.end(as_cancelled, woken);
    while (WaitNode* node = woken.pop_front()) static_cast<Awaiter*>(node)->mail.post();
  }

  void await(Awaiter& self, bool cancel) {
    switch (core.join(self)) {
      case SharedCore::Joined::ended:
        return outcome(self, false);
      case SharedCore::Joined::first:
        operation.post(kStart);
        break;
      case SharedCore::Joined::waiting:
        break;
    }
    bool last = false;
    if (cancel) {
      switch (core.leave(self)) {
        case SharedCore::Left::left:
          ++left;
          return;
        case SharedCore::Left::last:
          operation.post(kStop);
          last = true;
          break;
        case SharedCore::Left::ended:
          break;
      }
    }
    self.mail.take();
    outcome(self, last);
  }
  void outcome(Awaiter& self, bool asked_for_it) {
    RL_ASSERT(done.read() == 1);  // what the operation did is seen
    RL_ASSERT(core.has_ended());
    if (cancelled && asked_for_it) {
      RL_ASSERT(self.state == WaitState::cancelled);
      ++left;
    } else if (cancelled) {
      RL_ASSERT(self.state != WaitState::cancelled);
      ++told;
    } else {
      RL_ASSERT(self.state != WaitState::cancelled);
      ++got;
    }
  }

  void after() {
    RL_ASSERT(begun == 1 && ended == 1 && asked <= 1);  // H1, H2
    RL_ASSERT(got + told + left == 2);
    RL_ASSERT(kFirst == is_cancelled || kSecond == is_cancelled || got == 2);
    RL_ASSERT(operation.empty() && awaiters[0].mail.empty() && awaiters[1].mail.empty());
  }
};

struct BothStay : Group<BothStay, stays, stays> {};
struct OneIsCancelled : Group<OneIsCancelled, is_cancelled, stays> {};
struct BothAreCancelled : Group<BothAreCancelled, is_cancelled, is_cancelled> {};

}  // namespace

int main() {
  weft_model::Report report("SharedModel");
  report.check<BothStay>("BothStay", weft_model::every_reduced());
  report.check<OneIsCancelled>("OneIsCancelled", weft_model::every_reduced());
  report.check<BothAreCancelled>("BothAreCancelled", weft_model::every_reduced());
  return report.result();
}
