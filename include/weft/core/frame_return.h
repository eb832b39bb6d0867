// SPDX-License-Identifier: MIT
#pragma once
// How a frame's block finds its way back to the thread that made it, also when that thread is gone.
//
// Two small lock-free pieces of the frame pool (frame_pool.h), in a header of their own so that a
// model checker can run exactly this code. docs/design/frames.md tells the whole story.
//
// Threads        FrameReturns: push() from any thread; take() and close() from the owner only.
//                FrameDebt: settle() once, by the owner; repay() from any thread.
// Allocation     none: a released block is its own list node.
#include <cstdint>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

// The first bytes of a block that nobody uses.
struct FrameBlock {
  FrameBlock* next;
};

// A stack of returned blocks: many push chains, the owner takes everything at once. Because nothing
// but the whole stack is ever taken, there is no ABA.
//
// Invariants
//   I1  from close() on, head_ is closed(), forever; before, it heads the blocks pushed and not
//       yet taken.
//   I2  every chain is either the owner's to take (push() said true) or still the pusher's (it
//       said false).
//   I3  push() does not touch *this after its successful exchange: the owner may then settle and
//       free it.
class FrameReturns {
 public:
  // Requires: first … last are linked by `next`; the pusher owns at least these blocks of the pool.
  // Returns:  false if the owner has closed; the chain is then still the caller's, but for
  //           last->next, which may have been written.
  [[nodiscard]] bool push(FrameBlock* first, FrameBlock* last) noexcept {
    // relaxed: a guess for the exchange, or `closed`, after which FrameDebt carries the order.
    FrameBlock* head = head_.load(relaxed);
    do {
      if (head == closed()) return false;
      last->next = head;
      // release: publishes the chain, and all that was done with its blocks, to A and B.
    } while (!head_.compare_exchange_weak(head, first, release, relaxed));
    return true;
  }

  // Returns: all blocks pushed since the last call, newest first, or nullptr.
  [[nodiscard]] FrameBlock* take() noexcept {
    // Spares the owner an RMW; a push that it does not see is taken next time.
    if (head_.load(relaxed) == nullptr) return nullptr;
    return head_.exchange(nullptr, acquire);  // A: pairs with the release in push()
  }

  // Returns: as take(); from here on push() says false.
  [[nodiscard]] FrameBlock* close() noexcept {
    return head_.exchange(closed(), acquire);  // B: pairs with the release in push()
  }

 private:
  // Never dereferenced, never the address of a block.
  FrameBlock* closed() noexcept { return reinterpret_cast<FrameBlock*>(this); }

  Atomic<FrameBlock*> head_{nullptr};
};

// How many returns are still owed, when the returners may come before the number is known.
//
// Invariants
//   I1  before settle() the count is minus the number already repaid: never positive.
//   I2  after settle() it is the number still owed: never negative.
//   I3  exactly one call, over the whole life, says true: the one that leaves the count at zero,
//       settle() included or behind it. All other calls happen before that one returns, so its
//       caller may free what the debt was about.
class FrameDebt {
 public:
  // Requires: called once. Returns: true if nothing is owed any more.
  [[nodiscard]] bool settle(std::int32_t owed) noexcept {
    // acq_rel: acquires what earlier repay()ers did, publishes the owner's last accesses to the
    // later ones.
    return owed_.fetch_add(owed, acq_rel) + owed == 0;
  }

  // Returns: true if this was the last return owed.
  [[nodiscard]] bool repay() noexcept {
    return owed_.fetch_sub(1, acq_rel) ==
           1;  // acq_rel: pairs with settle() and with every other repay()
  }

 private:
  Atomic<std::int32_t> owed_{0};
};

}  // namespace weft::inline v0::detail
