// SPDX-License-Identifier: MIT
// ChannelCore: every value that was taken is received once, by one who sees what its sender did; every
// other is handed back; nobody is forgotten, whoever is cancelled and whenever it is closed.
#include "weft/sync/channel_core.h"

#include "weft_model.h"

namespace {

using weft::detail::WaitList;
using weft::detail::WaitNode;
using weft::detail::WaitState;
using weft::detail::Withdrawn;
using weft_model::Plain;

// What is sent: a body, which its sender has written. Whoever moves one into the first slot that is used, or out of
// it, touches the witness: so a slot that is used again too early is seen.
struct Item {
  static inline const Item* slot = nullptr;
  static inline Plain* witness = nullptr;

  explicit Item(Plain& its_body) : body(&its_body) {}
  Item(Item&& other) noexcept : body(other.body) {
    if (other.enters_queue && !slot) slot = this;
    if (&other == slot) witness->read();
    if (this == slot) witness->write();
  }
  Plain* body;
  bool enters_queue = false;
};

using Core = weft::detail::ChannelCore<Item>;
using Growing = weft::detail::ItemQueue<Item>::Growing;

constexpr int kValuesMax = 4;

// A thread is a loop with one task. Each names itself by the home of its node.
template <class Self, int kThreads>
struct Room : rl::test_suite<Self, kThreads> {
  Core core{Self::kHow};
  Plain witness;
  weft_model::Mailbox mail[kThreads];
  Plain bodies[kValuesMax];
  int sent = 0;
  int handed_back = 0;
  int received = 0;
  int received_times[kValuesMax] = {};
  bool closed = false;

  Room() {
    Item::slot = nullptr;
    Item::witness = &witness;
  }
  void tell(WaitList& woken) {
    while (WaitNode* node = woken.pop_front()) mail[node->home].post();
  }

  // Returns: false if it was closed or cancelled.
  bool send(unsigned self, int value, bool cancelled = false) {
    Plain* body = &bodies[value];
    body->write(value + 1);
    Item item(*body);
    item.enters_queue = true;
    if (core.capacity() != 0 && core.try_push(std::move(item), self)) {
      ++sent;
      return true;
    }
    item.enters_queue = false;
    std::span<Item> values(&item, 1);
    Core::SendNode node;
    node.home = self;
    node.values = &values;
    WaitList woken;
    Core::Sent how = core.send_or_wait(node, woken);
    tell(woken);
    if (how == Core::Sent::full) {
      if (!await(self, node, cancelled)) {
        ++handed_back;
        RL_ASSERT(!values.empty());
        body->write(0);  // it is its caller's again
        return false;
      }
      how = Core::sent_by(node);
    }
    if (how == Core::Sent::closed) {
      ++handed_back;
      RL_ASSERT(!values.empty());
      body->write(0);
      return false;
    }
    RL_ASSERT(how == Core::Sent::all && values.empty());
    ++sent;
    return true;
  }
  // Returns: false if it was closed or cancelled.
  bool receive(unsigned self, bool cancelled = false) {
    Core::ReceiveNode node;
    node.home = self;
    if (core.capacity() == 0 || !core.try_pop(node.item, self)) {
      WaitList woken;
      Core::Received how = core.receive_or_wait(node, woken);
      tell(woken);
      if (how == Core::Received::empty && !await(self, node, cancelled)) {
        RL_ASSERT(!node.item);
        return false;
      }
    }
    if (!node.item) return false;
    int value = node.item->body->read() - 1;
    RL_ASSERT(value >= 0);
    ++received_times[value];
    ++received;
    return true;
  }
  // Returns: false if it was cancelled with nothing.
  bool await(unsigned self, WaitNode& node, bool cancelled) {
    if (cancelled && core.withdraw(node) == Withdrawn::unlinked) {
      RL_ASSERT(!node.linked());
      return false;
    }
    mail[self].take();
    RL_ASSERT(node.state == WaitState::notified);
    return true;
  }
  void close() {
    WaitList woken;
    core.close(woken);
    tell(woken);
  }

  void drain() {
    WaitList woken;
    std::optional<Item> item;
    while (core.receive(item, woken) == Core::Received::item) {
      ++received_times[item->body->read() - 1];
      ++received;
      tell(woken);
    }
  }
  void after() {
    RL_ASSERT(!core.is_awaited());
    drain();
    RL_ASSERT(sent == received);
    for (int times : received_times) RL_ASSERT(times <= 1);
    for (auto& each : mail) RL_ASSERT(each.empty());
  }
};

// One sends two values, the other receives two.
template <class Self>
struct OneToOne : Room<Self, 2> {
  void thread(unsigned self) {
    for (int i = 0; i < 2; ++i) {
      if (self == 0) RL_ASSERT(this->send(self, i));
      if (self == 1) RL_ASSERT(this->receive(self));
    }
  }
  void after() {
    Room<Self, 2>::after();
    RL_ASSERT(this->received == 2);
  }
};
struct RendezvousOneToOne : OneToOne<RendezvousOneToOne> {
  static constexpr std::size_t kHow = 0;
};
struct OneSlotOneToOne : OneToOne<OneSlotOneToOne> {
  static constexpr std::size_t kHow = 1;
};
struct GrowingOneToOne : OneToOne<GrowingOneToOne> {
  static constexpr Growing kHow{2, 1};
};

// The sender is cancelled while it waits, against a receiver that comes once and a close.
template <class Self>
struct SenderIsCancelled : Room<Self, 2> {
  void thread(unsigned self) {
    if (self == 0) {
      for (int i = 0; i < 2; ++i) this->send(self, i, true);
      this->close();
    } else {
      while (this->receive(self)) {
      }
    }
  }
};
struct RendezvousSenderIsCancelled : SenderIsCancelled<RendezvousSenderIsCancelled> {
  static constexpr std::size_t kHow = 0;
};
struct OneSlotSenderIsCancelled : SenderIsCancelled<OneSlotSenderIsCancelled> {
  static constexpr std::size_t kHow = 1;
};

// The receiver is cancelled while it waits; what was sent and not received stays inside.
template <class Self>
struct ReceiverIsCancelled : Room<Self, 2> {
  void thread(unsigned self) {
    if (self == 0) {
      this->send(self, 0);
      this->close();
    } else {
      this->receive(self, true);
      this->receive(self);
    }
  }
};
struct RendezvousReceiverIsCancelled : ReceiverIsCancelled<RendezvousReceiverIsCancelled> {
  static constexpr std::size_t kHow = 0;
};
struct OneSlotReceiverIsCancelled : ReceiverIsCancelled<OneSlotReceiverIsCancelled> {
  static constexpr std::size_t kHow = 1;
};

// A third closes while one sends two and one receives until the end.
template <class Self>
struct CloseMeetsBoth : Room<Self, 3> {
  void thread(unsigned self) {
    if (self == 0 && this->send(self, 0)) this->send(self, 1);
    if (self == 1) this->receive(self) && this->receive(self);
    if (self == 2) {
      this->close();
      RL_ASSERT(!this->send(self, 2));  // nothing gets in after a close
    }
  }
};
struct RendezvousCloseMeetsBoth : CloseMeetsBoth<RendezvousCloseMeetsBoth> {
  static constexpr std::size_t kHow = 0;
};
struct OneSlotCloseMeetsBoth : CloseMeetsBoth<OneSlotCloseMeetsBoth> {
  static constexpr std::size_t kHow = 1;
};

// Two receivers, one of them cancelled, and one sender.
template <class Self>
struct OneOfTwoReceiversIsCancelled : Room<Self, 3> {
  void thread(unsigned self) {
    if (self == 0) this->send(self, 0) && (this->close(), true);
    if (self == 1) this->receive(self, true);
    if (self == 2) this->receive(self);
  }
  void after() {
    Room<Self, 3>::after();
    RL_ASSERT(this->received == 1);
  }
};
struct RendezvousOneOfTwoReceiversIsCancelled
    : OneOfTwoReceiversIsCancelled<RendezvousOneOfTwoReceiversIsCancelled> {
  static constexpr std::size_t kHow = 0;
};
struct OneSlotOneOfTwoReceiversIsCancelled
    : OneOfTwoReceiversIsCancelled<OneSlotOneOfTwoReceiversIsCancelled> {
  static constexpr std::size_t kHow = 1;
};

// Two senders, one of them cancelled, and one receiver that takes one.
template <class Self>
struct OneOfTwoSendersIsCancelled : Room<Self, 3> {
  void thread(unsigned self) {
    if (self == 0) this->send(self, 0, true);
    if (self == 1) this->send(self, 1);
    if (self == 2) {
      RL_ASSERT(this->receive(self));
      this->close();
    }
  }
};
struct RendezvousOneOfTwoSendersIsCancelled
    : OneOfTwoSendersIsCancelled<RendezvousOneOfTwoSendersIsCancelled> {
  static constexpr std::size_t kHow = 0;
};
struct OneSlotOneOfTwoSendersIsCancelled
    : OneOfTwoSendersIsCancelled<OneSlotOneOfTwoSendersIsCancelled> {
  static constexpr std::size_t kHow = 1;
};

}  // namespace

int main() {
  weft_model::Report report("ChannelModel");
  using weft_model::every_reduced;
  report.check<RendezvousOneToOne>("RendezvousOneToOne", every_reduced());
  report.check<OneSlotOneToOne>("OneSlotOneToOne", every_reduced());
  report.check<GrowingOneToOne>("GrowingOneToOne", every_reduced());
  report.check<RendezvousSenderIsCancelled>("RendezvousSenderIsCancelled", every_reduced());
  report.check<OneSlotSenderIsCancelled>("OneSlotSenderIsCancelled", every_reduced());
  report.check<RendezvousReceiverIsCancelled>("RendezvousReceiverIsCancelled", every_reduced());
  report.check<OneSlotReceiverIsCancelled>("OneSlotReceiverIsCancelled", every_reduced());
  report.check<RendezvousCloseMeetsBoth>("RendezvousCloseMeetsBoth", every_reduced());
  report.check<OneSlotCloseMeetsBoth>("OneSlotCloseMeetsBoth", every_reduced());
  report.check<RendezvousOneOfTwoReceiversIsCancelled>("RendezvousOneOfTwoReceiversIsCancelled",
                                                       every_reduced());
  report.check<OneSlotOneOfTwoReceiversIsCancelled>("OneSlotOneOfTwoReceiversIsCancelled",
                                                    every_reduced());
  report.check<RendezvousOneOfTwoSendersIsCancelled>("RendezvousOneOfTwoSendersIsCancelled",
                                                     every_reduced());
  report.check<OneSlotOneOfTwoSendersIsCancelled>("OneSlotOneOfTwoSendersIsCancelled",
                                                  every_reduced());
  return report.result();
}
