// SPDX-License-Identifier: MIT
// OneshotCore: the value is received by one who sees what its sender did, or handed back, or dies with
// the core; nobody is forgotten, and the core is freed once, by the last half that leaves.
#include "weft/sync/oneshot_core.h"

#include "weft_model.h"

namespace {

using weft::detail::WaitNode;
using weft::detail::WaitState;
using weft::detail::Withdrawn;
using weft_model::Plain;

using Core = weft::detail::OneshotCore<Plain*>;

enum Does { sends, drops, receives, is_cancelled, is_cancelled_and_goes, goes };

template <class Self, Does kSender, Does kReceiver>
struct Pair : rl::test_suite<Self, 2> {
  weft_model::Block<Core> core;
  weft_model::Mailbox mail;
  Plain body;
  int sent = 0, handed_back = 0, received = 0, closed = 0;

  void before() { core.make(); }
  void thread(unsigned self) {
    if (self == 0) {
      sender();
    } else {
      receiver();
    }
  }
  void sender() {
    body.write(1);
    Core::Left left = kSender == sends ? core->send(&body) : core->drop_sender();
    if (left.woken) mail.post();
    if (kSender == sends && !left.sent) {
      ++handed_back;
      body.write(2);  // it is its caller's again
    }
    sent += left.sent;
    if (left.last) core.free();
  }
  void receiver() {
    bool again = kReceiver == is_cancelled;
    if (kReceiver != goes && !receive(kReceiver != receives) && again) receive(false);
    if (core->drop_receiver()) core.free();
  }
  // Returns: false if it was cancelled with nothing.
  bool receive(bool cancelled) {
    WaitNode node;
    std::optional<Plain*> item;
    if (core->receive_or_wait(node, item) == Core::Received::empty) {
      if (cancelled) {
        weft_model::some_time_later();
        if (core->withdraw(node) == Withdrawn::unlinked) return false;
      }
      mail.take();
      RL_ASSERT(node.state == WaitState::notified);
      static_cast<void>(core->receive(item));
    }
    if (item) {
      RL_ASSERT((*item)->read() == 1);
      ++received;
    } else {
      ++closed;
    }
    return true;
  }
  void after() {
    RL_ASSERT(core.freed() && mail.empty());
    RL_ASSERT(received <= sent && sent + handed_back == (kSender == sends));
    if (kReceiver == receives || kReceiver == is_cancelled)
      RL_ASSERT(received == (kSender == sends) && received + closed == 1);
  }
};

struct SendMeetsReceive : Pair<SendMeetsReceive, sends, receives> {};
struct DropMeetsReceive : Pair<DropMeetsReceive, drops, receives> {};
struct SendMeetsCancel : Pair<SendMeetsCancel, sends, is_cancelled> {};
struct DropMeetsCancel : Pair<DropMeetsCancel, drops, is_cancelled> {};
struct SendMeetsCancelAndDrop : Pair<SendMeetsCancelAndDrop, sends, is_cancelled_and_goes> {};
struct SendMeetsDrop : Pair<SendMeetsDrop, sends, goes> {};
struct DropMeetsDrop : Pair<DropMeetsDrop, drops, goes> {};

}  // namespace

int main() {
  weft_model::Report report("OneshotModel");
  report.check<SendMeetsReceive>("SendMeetsReceive", weft_model::every());
  report.check<DropMeetsReceive>("DropMeetsReceive", weft_model::every());
  report.check<SendMeetsCancel>("SendMeetsCancel", weft_model::every());
  report.check<DropMeetsCancel>("DropMeetsCancel", weft_model::every());
  report.check<SendMeetsCancelAndDrop>("SendMeetsCancelAndDrop", weft_model::every());
  report.check<SendMeetsDrop>("SendMeetsDrop", weft_model::every());
  report.check<DropMeetsDrop>("DropMeetsDrop", weft_model::every());
  return report.result();
}
