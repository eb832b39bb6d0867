// SPDX-License-Identifier: MIT
// SharedMutexCore: one who has it alone, or some who share it; who enters sees what those did who
// were inside before, nobody is forgotten, and a cancelled waiter takes nothing with it and stands
// in nobody's way, whether it was waiting or inside already.
#include "weft/sync/shared_mutex_core.h"

#include "weft_model.h"

namespace {

using weft::detail::LockMode;
using weft::detail::SharedMutexCore;
using weft::detail::WaitList;
using weft::detail::WaitNode;
using weft::detail::WaitState;
using weft::detail::Withdrawn;

// A thread is a loop with one task.
template <class Self, int kThreads>
struct Room : rl::test_suite<Self, kThreads> {
  SharedMutexCore core;
  WaitNode nodes[kThreads];
  weft_model::Mailbox mail[kThreads];
  weft_model::Plain seat;
  int alone = 0;
  int sharing = 0;

  enum Cancel { stays, cancelled_when_it_waits };
  // How it comes in: a look before the wait makes more of the same interleavings among three.
  enum Entry { waits_at_once, tries_first };

  // Returns: true if it is inside.
  bool lock(unsigned index, LockMode mode, Cancel cancel = stays, Entry entry = tries_first) {
    WaitNode& node = nodes[index];
    node.home = index + 1;
    node.amount = static_cast<unsigned>(mode);
    if (!(entry == tries_first && try_lock(index, mode)) && !core.lock_or_wait(node)) {
      if (cancel == cancelled_when_it_waits) return withdraw(index, mode), false;
      mail[index].take();
      RL_ASSERT(node.state == WaitState::notified);
    }
    enter(index, mode);
    return true;
  }
  bool try_lock(unsigned index, LockMode mode) {
    return mode == LockMode::shared ? core.try_lock_shared() : core.try_lock(index + 1);
  }
  void enter(unsigned index, LockMode mode) {
    ++(mode == LockMode::shared ? sharing : alone);
    RL_ASSERT(alone + (sharing > 0 ? 1 : 0) == 1);
    if (mode == LockMode::exclusive) RL_ASSERT(core.owner() == index + 1);
  }
  // What there is to do inside: looking, or changing.
  void visit(LockMode mode) {
    if (mode == LockMode::shared) {
      static_cast<void>(seat.read());
    } else {
      seat.write(seat.read() + 1);
    }
  }
  void unlock(unsigned index, LockMode mode) {
    --(mode == LockMode::shared ? sharing : alone);
    leave(index, mode);
  }
  void leave(unsigned index, LockMode mode) {
    WaitList admitted;
    bool left = mode == LockMode::shared
                    ? core.unlock_shared(admitted)
                    : core.try_unlock(index + 1) || core.unlock(index + 1, admitted);
    RL_ASSERT(left);
    tell(admitted);
  }
  void withdraw(unsigned index, LockMode mode) {
    WaitList admitted;
    Withdrawn how = core.withdraw(nodes[index], admitted);
    tell(admitted);
    if (how == Withdrawn::passed_on) {
      leave(index, mode);
      mail[index].take();  // N3
    }
    RL_ASSERT(!nodes[index].linked());
  }
  void tell(WaitList& admitted) {
    while (WaitNode* node = admitted.pop_front()) mail[node->home - 1].post();
  }
  void after() {
    RL_ASSERT(alone == 0 && sharing == 0);
    RL_ASSERT(core.is_free());
    for (auto& each : mail) RL_ASSERT(each.empty());
  }
};

// Each comes once, does what it wants to, and leaves; the first kCancelled are cancelled if they
// have to wait.
constexpr LockMode kChanges = LockMode::exclusive;
constexpr LockMode kLooks = LockMode::shared;

template <class Self, int kCancelled, LockMode... kModes>
struct Visits : Room<Self, sizeof...(kModes)> {
  void thread(unsigned index) {
    constexpr LockMode modes[] = {kModes...};
    const bool cancelled = index < static_cast<unsigned>(kCancelled);
    if (!this->lock(index, modes[index], cancelled ? this->cancelled_when_it_waits : this->stays,
                    sizeof...(kModes) == 2 ? this->tries_first : this->waits_at_once)) {
      return;
    }
    this->visit(modes[index]);
    this->unlock(index, modes[index]);
  }
};
struct TwoTakeTurns : Visits<TwoTakeTurns, 0, kChanges, kChanges> {};
struct OneLooksAndOneChanges : Visits<OneLooksAndOneChanges, 0, kLooks, kChanges> {};
struct TwoLook : Visits<TwoLook, 0, kLooks, kLooks> {};
struct WhoLooksIsCancelled : Visits<WhoLooksIsCancelled, 1, kLooks, kChanges> {};
struct WhoChangesIsCancelled : Visits<WhoChangesIsCancelled, 1, kChanges, kLooks> {};
struct TwoLookAndOneChanges : Visits<TwoLookAndOneChanges, 0, kChanges, kLooks, kLooks> {};
struct TwoChangeAndOneLooks : Visits<TwoChangeAndOneLooks, 0, kLooks, kChanges, kChanges> {};
struct WhoLooksIsCancelledBesideTwo
    : Visits<WhoLooksIsCancelledBesideTwo, 1, kLooks, kChanges, kLooks> {};
struct TwoOfThreeAreCancelled : Visits<TwoOfThreeAreCancelled, 2, kChanges, kLooks, kChanges> {};

// One shares it; behind it wait one who wants it alone and one who would share it. The one in the
// middle is cancelled, and both others must be inside at once: neither leaves before the other came.
struct ACancelledChangeLetsThoseBehindItIn : Room<ACancelledChangeLetsThoseBehindItIn, 3> {
  void before() {
    RL_ASSERT(core.try_lock_shared());
    nodes[0].home = 1;
    nodes[0].amount = static_cast<unsigned>(kChanges);
    RL_ASSERT(!core.lock_or_wait(nodes[0]));
    sharing = 1;
  }
  weft_model::Mailbox came;
  void thread(unsigned index) {
    if (index == 0) {
      withdraw(0, kChanges);
    } else if (index == 1) {
      lock(1, kLooks);
      came.post();
      unlock(1, kLooks);
    } else {
      came.take();
      unlock(2, kLooks);
    }
  }
};

// As before, but all three come and go as they like: the cancelled one may have been let in.
struct WhoChangesIsCancelledBesideTwo : Room<WhoChangesIsCancelledBesideTwo, 3> {
  void before() {
    RL_ASSERT(core.try_lock_shared());
    sharing = 1;
  }
  void thread(unsigned index) {
    if (index == 0) {
      if (!lock(0, kChanges, cancelled_when_it_waits, waits_at_once)) return;
      visit(kChanges);
      return unlock(0, kChanges);
    }
    if (index == 2) lock(2, kLooks, stays, waits_at_once);
    visit(kLooks);
    unlock(index, kLooks);
  }
};

// One changes something and leaves while another waits to look; who looks beside that one, without
// having waited, sees it too.
struct WhoComesBesideTheAdmittedSees : Room<WhoComesBesideTheAdmittedSees, 3> {
  void thread(unsigned index) {
    if (index == 0) {
      if (!try_lock(0, kChanges)) return;
      enter(0, kChanges);
      visit(kChanges);
      return unlock(0, kChanges);
    }
    if (index == 1) {
      lock(1, kLooks, stays, waits_at_once);
    } else if (try_lock(2, kLooks)) {
      enter(2, kLooks);
    } else {
      return;
    }
    visit(kLooks);
    unlock(index, kLooks);
  }
};

// Two share it. One leaves past somebody who waits, and that is cancelled; then the other leaves,
// and comes back alone: it has not met the first, but for the word that the cancelled one wrote.
struct AWithdrawnWaitPassesOnWhatOthersDid : Room<AWithdrawnWaitPassesOnWhatOthersDid, 3> {
  void before() {
    RL_ASSERT(core.try_lock_shared());
    RL_ASSERT(core.try_lock_shared());
    sharing = 2;
  }
  void thread(unsigned index) {
    if (index == 1) {
      if (lock(1, kChanges, cancelled_when_it_waits, waits_at_once)) unlock(1, kChanges);
      return;
    }
    if (index == 0) visit(kLooks);
    unlock(index, kLooks);
    if (index == 0 || !try_lock(2, kChanges)) return;
    enter(2, kChanges);
    visit(kChanges);
    unlock(2, kChanges);
  }
};

// The last one out frees it: whoever left before does not touch it any more.
template <class Self, LockMode kFirst, LockMode kLast, bool kWithdrawn>
struct Destroyed : rl::test_suite<Self, 2> {
  weft_model::Block<SharedMutexCore> core;
  WaitNode node;
  weft_model::Mailbox mail;

  void before() {
    core.make();
    RL_ASSERT(kFirst == kLooks ? core->try_lock_shared() : core->try_lock(1));
  }
  void thread(unsigned index) {
    WaitList admitted;
    if (index == 0) {
      RL_ASSERT(leave(1, kFirst, admitted));
      if (admitted.pop_front()) mail.post();
      return;
    }
    node.home = 2;
    node.amount = static_cast<unsigned>(kLast);
    if (!core->lock_or_wait(node)) {
      if (!kWithdrawn) {
        mail.take();
      } else if (core->withdraw(node, admitted) == Withdrawn::passed_on) {
        mail.take();  // N3; it is inside
      } else if (!(kLast == kLooks ? core->try_lock_shared() : core->try_lock(2))) {
        return;
      }
    }
    RL_ASSERT(leave(2, kLast, admitted));
    core.free();
  }
  void after() {
    if (!core.freed()) core.free();
  }
  bool leave(unsigned home, LockMode mode, WaitList& admitted) {
    return mode == kLooks ? core->unlock_shared(admitted)
                          : core->try_unlock(home) || core->unlock(home, admitted);
  }
};
struct AChangeIsTheLast : Destroyed<AChangeIsTheLast, kLooks, kChanges, false> {};
struct ALookIsTheLast : Destroyed<ALookIsTheLast, kChanges, kLooks, false> {};
// It has given up waiting, and comes in without: so who leaves finds nobody at the last moment.
struct AWithdrawnChangeIsTheLast : Destroyed<AWithdrawnChangeIsTheLast, kLooks, kChanges, true> {};
struct AWithdrawnLookIsTheLast : Destroyed<AWithdrawnLookIsTheLast, kChanges, kLooks, true> {};

}  // namespace

int main() {
  using weft_model::every;
  using weft_model::every_reduced;
  weft_model::Report report("SharedMutexModel");
  report.check<TwoTakeTurns>("TwoTakeTurns", every());
  report.check<OneLooksAndOneChanges>("OneLooksAndOneChanges", every());
  report.check<TwoLook>("TwoLook", every());
  report.check<WhoLooksIsCancelled>("WhoLooksIsCancelled", every());
  report.check<WhoChangesIsCancelled>("WhoChangesIsCancelled", every());
  report.check<AChangeIsTheLast>("AChangeIsTheLast", every());
  report.check<ALookIsTheLast>("ALookIsTheLast", every());
  report.check<AWithdrawnChangeIsTheLast>("AWithdrawnChangeIsTheLast", every());
  report.check<AWithdrawnLookIsTheLast>("AWithdrawnLookIsTheLast", every());
  report.check<TwoLookAndOneChanges>("TwoLookAndOneChanges", every_reduced());
  report.check<TwoChangeAndOneLooks>("TwoChangeAndOneLooks", every_reduced());
  report.check<WhoLooksIsCancelledBesideTwo>("WhoLooksIsCancelledBesideTwo", every_reduced());
  report.check<TwoOfThreeAreCancelled>("TwoOfThreeAreCancelled", weft_model::every_reduced());
  report.check<ACancelledChangeLetsThoseBehindItIn>("ACancelledChangeLetsThoseBehindItIn",
                                                    every_reduced());
  report.check<WhoChangesIsCancelledBesideTwo>("WhoChangesIsCancelledBesideTwo", every_reduced());
  report.check<WhoComesBesideTheAdmittedSees>("WhoComesBesideTheAdmittedSees", every_reduced());
  report.check<AWithdrawnWaitPassesOnWhatOthersDid>("AWithdrawnWaitPassesOnWhatOthersDid",
                                                    every_reduced());
  return report.result();
}
