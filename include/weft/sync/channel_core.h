// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ChannelCore: what is in a Channel and who waits for it; no loops, no tasks. Who is to be
// notified is returned to the caller. tests/model/channel_test.cc checks this header.
//
// A value goes from the sender's object into the queue, or past it into a waiting receiver's frame.
// Whoever finds that it can be moved on moves it, also out of the frame of a sender that waits: so a
// wake-up is never a mere "try again", and nobody who comes later gets in between.
//
// While nobody waits, a value goes in under the lock of the queue's tail and out under that of its head.
// Everything else is done under both; whoever waits bars the way that must not pass it by.
//
// Invariants
//   C1  receivers wait: the queue is empty and no sender waits.
//   C2  senders wait: the queue is full and no receiver waits. Its next push needs no chunk.
//   C3  closed: nobody waits, and nothing more is put in.
//   C4  a value is in one place: the sender's object, the queue, or a receiver's node. Every move is made
//       under a lock, and a node that has what it came for is out of its list in the same section.
//   C5  outside of a section, pushes are barred exactly while receivers wait or it is closed, and pops
//       exactly while senders wait.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/sync/item_queue.h"
#include "weft/sync/sharing.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

// Node is WaitNode, or what is derived from it to be notified.
template <class T, class Sharing = BetweenLoops, class Node = WaitNode>
class ChannelCore {
  using Queue = ItemQueue<T, Sharing>;

 public:
  // Values are moved in sections of so many, so that locks are held for a moment only.
  static constexpr unsigned kSectionMax = 64;

  struct SendNode : Node {
    std::span<T>* values = nullptr;  // the first is taken, then the next
  };
  struct ReceiveNode : Node {
    std::optional<T> item;  // empty when it was notified: closed
  };

  template <class How>
  explicit ChannelCore(How how) : queue_(how) {}

  using Home = std::uint32_t;
  // The common case, on the loop `home`: there is room, and nobody waits. Returns: false if nothing was
  // done; send() then.
  [[nodiscard]] bool try_push(T&& value, Home home) noexcept {
    return queue_.try_push(std::move(value), home);
  }
  // The same for receive().
  [[nodiscard]] bool try_pop(std::optional<T>& into, Home home) noexcept {
    return queue_.try_pop(into, home);
  }

  enum class Sent : std::uint8_t { all, full, closed, no_memory };
  // Takes from the front of `values` what can be taken now.
  [[nodiscard]] Sent send(std::span<T>& values, WaitList& woken) noexcept {
    return send(values, nullptr, woken);
  }
  // Returns: full if the node waits now, with what is left of its values.
  [[nodiscard]] Sent send_or_wait(SendNode& node, WaitList& woken) noexcept {
    return send(*node.values, &node, woken);
  }
  // A node that waited was notified because all was taken, or because of close().
  [[nodiscard]] static Sent sent_by(const SendNode& node) noexcept {
    return node.values->empty() ? Sent::all : Sent::closed;
  }

  enum class Received : std::uint8_t { item, empty, closed };
  [[nodiscard]] Received receive(std::optional<T>& into, WaitList& woken) noexcept {
    typename Queue::Chunks retired;  // freed after the lock
    Section section(*this);
    return take_out(into, woken, retired);
  }
  // Returns: empty if the node waits now.
  [[nodiscard]] Received receive_or_wait(ReceiveNode& node, WaitList& woken) noexcept {
    typename Queue::Chunks retired;
    Section section(*this);
    const Received how = take_out(node.item, woken, retired);
    if (how == Received::empty) wait_in(receivers_, node);
    return how;
  }
  // Appends what is in now, until `into` has `size_max`. Requires: it has the capacity for that.
  void receive_some(std::vector<T>& into, std::size_t size_max, WaitList& woken) noexcept {
    typename Queue::Chunks retired;
    for (Received how = Received::item; how == Received::item && into.size() < size_max;) {
      const std::size_t section_end = std::min(size_max, into.size() + kSectionMax);
      Section section(*this);
      for (std::optional<T> item; into.size() < section_end;) {
        how = take_out(item, woken, retired);
        if (how != Received::item) break;
        into.push_back(std::move(*item));
      }
    }
  }

  // Nothing is put in after this. Returns: false if it was closed already.
  bool close(WaitList& woken) noexcept {
    Section section(*this);
    if (std::exchange(closed_, true)) return false;
    take_all(senders_, woken);
    take_all(receivers_, woken);
    return true;
  }

  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Withdrawn withdraw(WaitNode& node) noexcept {
    Section section(*this);
    if (node.state != WaitState::waiting) return Withdrawn::kept;
    node.unlink();
    return Withdrawn::unlinked;
  }

  [[nodiscard]] bool is_closed() const noexcept {
    typename Queue::Both both(queue_);
    return closed_;
  }
  [[nodiscard]] std::size_t size() const noexcept {
    typename Queue::Both both(queue_);
    return queue_.size();
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return queue_.capacity(); }
  [[nodiscard]] bool is_awaited() noexcept {
    Section section(*this);
    return !senders_.empty() || !receivers_.empty();
  }
  [[nodiscard]] WaitPlace place_of(const SendNode& node) noexcept {
    Section section(*this);
    return place_in(senders_, node);
  }
  [[nodiscard]] WaitPlace place_of(const ReceiveNode& node) noexcept {
    Section section(*this);
    return place_in(receivers_, node);
  }

 private:
  // Under both locks. Its end upholds C5.
  class Section {
   public:
    explicit Section(ChannelCore& core) noexcept : core_(core), both_(core.queue_) {}
    ~Section() {
      core_.queue_.bar(core_.closed_ || !core_.receivers_.empty(), !core_.senders_.empty());
    }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    ChannelCore& core_;
    typename Queue::Both both_;
  };

  enum class Put : std::uint8_t { all, full, closed, more, must_grow };

  Sent send(std::span<T>& values, SendNode* node, WaitList& woken) noexcept {
    for (typename Queue::Chunks fresh;;) {  // what is not used is freed after the lock
      {
        Section section(*this);
        if (fresh && queue_.must_grow()) queue_.grow(std::move(fresh));
        switch (put_in(values, woken)) {
          case Put::all:
            return Sent::all;
          case Put::closed:
            return Sent::closed;
          case Put::full:
            if (node) wait_in(senders_, *node);
            return Sent::full;
          case Put::more:
            continue;
          case Put::must_grow:
            break;
        }
      }
      fresh = queue_.make_chunk();
      if (!fresh) return Sent::no_memory;
    }
  }

  // Requires, as all that follows: a Section.
  Put put_in(std::span<T>& values, WaitList& woken) noexcept {
    if (closed_) return Put::closed;  // C3
    for (unsigned left = kSectionMax; !values.empty(); --left) {
      if (left == 0) return Put::more;
      if (!receivers_.empty()) {
        auto& receiver = static_cast<ReceiveNode&>(take_first(receivers_));
        receiver.item.emplace(std::move(values.front()));
        woken.push_back(receiver);
      } else {
        if (queue_.must_grow()) return Put::must_grow;  // before full(): C2
        if (queue_.full()) return Put::full;
        queue_.push(std::move(values.front()));
      }
      values = values.subspan(1);
    }
    return Put::all;
  }

  Received take_out(std::optional<T>& into, WaitList& woken,
                    typename Queue::Chunks& retired) noexcept {
    if (!queue_.empty()) {
      into.emplace(std::move(queue_.front()));
      queue_.pop(retired);
      if (!senders_.empty()) queue_.push(take_from_first_sender(woken));  // C2
      return Received::item;
    }
    if (!senders_.empty()) {  // a rendezvous: the queue is full when it is empty
      into.emplace(take_from_first_sender(woken));
      return Received::item;
    }
    return closed_ ? Received::closed : Received::empty;
  }

  T take_from_first_sender(WaitList& woken) noexcept {
    auto& sender = static_cast<SendNode&>(senders_.front());
    T& value = sender.values->front();
    *sender.values = sender.values->subspan(1);
    if (sender.values->empty()) woken.push_back(take_first(senders_));
    return std::move(value);
  }

  static void wait_in(WaitList& waiters, WaitNode& node) noexcept {
    node.state = WaitState::waiting;
    waiters.push_back(node);
  }

  Queue queue_;
  bool closed_ = false;
  WaitList senders_;
  WaitList receivers_;
};

}  // namespace weft::inline v0::detail
