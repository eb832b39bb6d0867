// SPDX-License-Identifier: MIT
#pragma once
// weft::TaskQueue: fresh tasks that wait for a worker, first in, first out. Each worker of an
// IOContext has one; any thread adds to it, its worker takes from it, and idle workers do, too.
//
// Adding is one exchange and one store, whoever adds (D. Vyukov's intrusive MPSC queue: every node
// links to the next newer one, and one that is its own, the stub, keeps the queue from ever being
// without a node). Taking is for one thread at a time; that is settled by a flag that nobody waits
// for: who finds it set has the next queue to look at.
//
// Threads        push(), take(), looks_empty(): any thread.
// Allocation     none: the node lies in the task.
//
// Invariants
//   Q1  tail_ is the newest node, or the stub. head_ is the oldest, or the stub.
//   Q2  every node but tail_ links to the next newer one, or will: between a push()'s exchange and
//       its store nothing behind that gap can be taken. Whoever pushes there is awake.
//   Q3  head_ and the links are read by who holds taking_ alone.
//   Q4  tail_ and head_ are both the stub exactly while nothing is in the queue. Who sees that, in
//       this order, sees it empty; who pushed something and then found no worker to wake knows that
//       every worker that falls asleep looks after that (IdleWorkers).
#include <cstddef>

#include "weft/atomic/atomic.h"
#include "weft/core/fresh_node.h"

namespace weft::inline v0 {

class TaskQueue {
 public:
  using Node = detail::FreshNode;
  enum class Taken {
    some,   // at least one
    none,   // there was nothing
    later,  // someone else takes, or a push is half done: look again
  };

  TaskQueue() noexcept : tail_(&stub_), head_(&stub_) {
    stub_.next.store(nullptr, detail::relaxed);
  }
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  void push(Node& node) noexcept {
    node.next.store(nullptr, detail::relaxed);
    // seq_cst: this, then the look at who is idle; there, the word that a worker is idle, then its
    // look at this (Q4). acq_rel besides: the node to whoever links to it.
    Node* before = tail_.exchange(&node, detail::seq_cst);  // P
    // release: the task, to the taker. [pairs with N]
    before->next.store(&node, detail::release);
  }

  // Takes up to `most` nodes, oldest first, and gives each to fn.
  template <class Fn>
  Taken take(std::size_t most, Fn&& fn) {
    if (looks_empty()) return Taken::none;
    if (!begin_taking()) return Taken::later;
    std::size_t taken = 0;
    while (taken < most) {
      Node* node = pop();
      if (!node) break;
      ++taken;
      fn(*node);
    }
    bool empty = looks_empty();
    end_taking();
    if (taken > 0) return Taken::some;
    return empty ? Taken::none : Taken::later;
  }

  // Q4. seq_cst: as P.
  [[nodiscard]] bool looks_empty() const noexcept {
    return tail_.load(detail::seq_cst) == &stub_ && head_.load(detail::relaxed) == &stub_;
  }

  // The oldest node, as a name that changes when something is taken. Not to be followed.
  [[nodiscard]] const void* oldest() const noexcept { return head_.load(detail::relaxed); }

  // Returns: how many there are, up to `most`. O(most); for statistics.
  [[nodiscard]] std::size_t count_to(std::size_t most) noexcept {
    if (!begin_taking()) return 0;
    std::size_t count = 0;
    for (Node* node = head_.load(detail::relaxed); node && count < most; node = after(*node)) {
      if (node != &stub_) ++count;
    }
    end_taking();
    return count;
  }

 private:
  // acquire: head_ and the links as the last taker left them. [pairs with U]
  bool begin_taking() noexcept { return !taking_.exchange(true, detail::acquire); }
  void end_taking() noexcept { taking_.store(false, detail::release); }  // U
  // acquire: the task. [pairs with push()]
  static Node* after(Node& node) noexcept { return node.next.load(detail::acquire); }  // N

  // Requires: taking_.
  Node* pop() noexcept {
    Node* head = head_.load(detail::relaxed);
    Node* next = after(*head);
    if (head == &stub_) {
      if (!next) return nullptr;
      head_.store(next, detail::relaxed);
      head = next;
      next = after(*head);
    }
    if (!next) {
      // The last one. Its successor is to be the stub, unless a push comes between.
      if (tail_.load(detail::relaxed) != head) return nullptr;  // Q2
      push(stub_);
      next = after(*head);
      if (!next) return nullptr;  // Q2
    }
    head_.store(next, detail::relaxed);
    return head;
  }

  detail::Atomic<Node*> tail_;
  // What the taker writes lies apart from what producers write.
  alignas(64) detail::Atomic<Node*> head_;
  detail::Atomic<bool> taking_{false};
  Node stub_;
};

}  // namespace weft::inline v0
