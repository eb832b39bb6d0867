// SPDX-License-Identifier: MIT
// Inbox: producers against a loop that takes, sleeps and closes.
#include "weft/core/inbox.h"

#include "weft_model.h"

namespace {

using weft::detail::Inbox;
using weft::detail::PostChain;
using weft::detail::PostEntry;
using weft::detail::PostKind;
using weft::detail::PostNode;
using weft_model::Mailbox;
using weft_model::Plain;

constexpr int kEntriesMax = 2;  // per producer

struct Entry : PostNode {
  Plain content;  // what the entry stands for
  int producer;
  int number;
};

struct Box {
  Inbox inbox;
  Mailbox wake;
  Entry entries[2][kEntriesMax];
  int next[2] = {0, 0};  // what the loop expects of each producer
  int accepted = 0, taken = 0, sleeps = 0, wakes = 0;

  // Returns: false if the inbox was closed.
  bool send(int producer, int number) {
    Entry& entry = entries[producer][number];
    entry.producer = producer;
    entry.number = number;
    entry.content.write(number + 1);
    switch (inbox.push(PostEntry(entry, PostKind::ready))) {
      case Inbox::Pushed::closed:
        entry.content.write(0);  // not taken: still the producer's
        return false;
      case Inbox::Pushed::wake_it:
        ++wakes;
        wake.post();
        break;
      case Inbox::Pushed::quietly:
        break;
    }
    ++accepted;
    return true;
  }

  void receive(PostChain chain) {
    while (!chain.empty()) {
      PostEntry next_entry = chain.pop();
      RL_ASSERT(next_entry.kind() == PostKind::ready);
      auto& entry = static_cast<Entry&>(next_entry.node());
      RL_ASSERT(entry.number == next[entry.producer]);  // FIFO per producer, and each once
      ++next[entry.producer];
      RL_ASSERT(entry.content.read() == entry.number + 1);
      entry.content.write(0);  // I4: it is the loop's now
      ++taken;
    }
  }
};

// I2: a loop that sleeps whenever nothing is there receives everything, and is woken once per sleep.
template <class Self, int kThreads, int kFirstSends>
struct Sleeping : rl::test_suite<Self, kThreads> {
  static constexpr int kTotal = kFirstSends + kThreads - 2;
  Box box;

  void thread(unsigned index) {
    if (index > 0) {
      int count = index == 1 ? kFirstSends : 1;
      for (int number = 0; number < count; ++number) {
        RL_ASSERT(box.send(static_cast<int>(index) - 1, number));
      }
      return;
    }
    for (;;) {
      box.receive(box.inbox.take_all());
      if (box.taken == kTotal) return;
      if (box.inbox.try_sleep()) {
        ++box.sleeps;
        box.wake.take();
      }
    }
  }
  void after() {
    RL_ASSERT(box.wakes == box.sleeps);
    RL_ASSERT(box.wake.empty());
  }
};
struct NoWakeIsLost : Sleeping<NoWakeIsLost, 2, 2> {};
struct NoWakeIsLostAmongProducers : Sleeping<NoWakeIsLostAmongProducers, 3, 1> {};

// A sleep that ended by itself (a timer) may be followed by the wake that was meant for it, never by
// more.
struct TimedOutSleepIsWokenAtMostOnce : rl::test_suite<TimedOutSleepIsWokenAtMostOnce, 2> {
  Box box;

  void thread(unsigned index) {
    if (index == 1) {
      RL_ASSERT(box.send(0, 0));
      RL_ASSERT(box.send(0, 1));
      return;
    }
    for (int turn = 0; turn < 2; ++turn) {
      if (box.inbox.try_sleep()) ++box.sleeps;
      box.receive(box.inbox.take_all());
    }
  }
  void after() {
    box.receive(box.inbox.take_all());
    RL_ASSERT(box.taken == 2);
    RL_ASSERT(box.wakes <= box.sleeps);
  }
};

// I3: what was accepted before the end is handed out by close(); afterwards nothing is accepted.
template <class Self, int kThreads>
struct Closing : rl::test_suite<Self, kThreads> {
  Box box;
  bool closed = false;

  void thread(unsigned index) {
    if (index == 0) {
      box.receive(box.inbox.take_all());
      box.receive(box.inbox.close());
      closed = true;
      return;
    }
    bool late = closed;
    bool sent = box.send(static_cast<int>(index) - 1, 0);
    RL_ASSERT(!(late && sent));
    if (index == 1 && sent) box.send(0, 1);
  }
  void after() {
    RL_ASSERT(box.taken == box.accepted);
    RL_ASSERT(box.wakes == 0);
  }
};
struct NothingIsAcceptedAfterClose : Closing<NothingIsAcceptedAfterClose, 2> {};
struct NothingIsAcceptedAfterCloseByAny : Closing<NothingIsAcceptedAfterCloseByAny, 3> {};

// A port that is recycled: what comes too late for one owner is refused or goes to the next.
struct ReopenedInboxLosesNothing : rl::test_suite<ReopenedInboxLosesNothing, 2> {
  Box box;

  void thread(unsigned index) {
    if (index == 0) {
      box.receive(box.inbox.close());
      box.inbox.reopen();
      box.receive(box.inbox.close());
      return;
    }
    if (box.send(0, 0)) box.send(0, 1);
  }
  void after() { RL_ASSERT(box.taken == box.accepted); }
};

}  // namespace

int main() {
  weft_model::Report report("InboxModel");
  report.check<NoWakeIsLost>("NoWakeIsLost", weft_model::every());
  report.check<NoWakeIsLostAmongProducers>("NoWakeIsLostAmongProducers", weft_model::every());
  report.check<TimedOutSleepIsWokenAtMostOnce>("TimedOutSleepIsWokenAtMostOnce",
                                               weft_model::every());
  report.check<NothingIsAcceptedAfterClose>("NothingIsAcceptedAfterClose", weft_model::every());
  report.check<NothingIsAcceptedAfterCloseByAny>("NothingIsAcceptedAfterCloseByAny",
                                                 weft_model::every());
  report.check<ReopenedInboxLosesNothing>("ReopenedInboxLosesNothing", weft_model::every());
  return report.result();
}
