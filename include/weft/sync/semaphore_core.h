// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::SemaphoreCore: how many permits of a Semaphore are free and who waits for some; no
// loops, no tasks. Who is to be notified is returned in a list. tests/model/semaphore_test.cc
// checks this header.
//
// The word is the number of free permits, and kWaiters besides while the list is not empty. Without
// waiters, taking and giving are one compare-exchange of it each. WaitNode::amount is what a node
// wants.
//
// Invariants
//   S1  kWaiters is set exactly while waiters_ is not empty, but for the holder of state_mu_.
//   S2  while kWaiters is set, only the holder of state_mu_ writes the word.
//   S3  the first waiter wants more than is free: whoever makes that untrue serves it, and those
//       behind it, before state_mu_ is left. Nobody overtakes: with kWaiters set nothing is taken.
//   S4  free permits never exceed max().
//   S5  give() does not touch *this after permits that somebody may take without state_mu_: who
//       takes the last one may destroy it.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class SemaphoreCore {
 public:
  using Count = std::uint32_t;
  using Word = std::uint64_t;

  struct Limits {
    Count permits;  // free at the start
    Count max;
  };
  explicit SemaphoreCore(Limits limits) noexcept
      : word_(word_of(limits.permits)), max_(limits.max) {}

  [[nodiscard]] bool try_take(Count count) noexcept {
    Word word = word_.load(relaxed);
    while (!(word & kWaiters) && free_in(word) >= count) {
      // acquire: what those did who gave the permits. [pairs with G, S]
      if (word_.compare_exchange_weak(word, word - word_of(count), acquire, relaxed)) return true;
    }
    return false;
  }

  // Returns: true if it has taken node.amount; false if the node waits.
  [[nodiscard]] bool take_or_wait(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    Word word = word_.load(relaxed);
    while (!(word & kWaiters)) {
      bool enough = free_in(word) >= node.amount;
      // acquire: as try_take(); and what is free now may be this node's part later. [pairs with G,
      // S]
      if (word_.compare_exchange_weak(word, enough ? word - word_of(node.amount) : word | kWaiters,
                                      acquire, relaxed)) {
        if (enough) return true;
        break;
      }
    }
    node.state = WaitState::waiting;
    waiters_.push_back(node);
    return false;
  }

  // Returns: false, and nothing has changed, if more than max() would be free.
  [[nodiscard]] bool give(Count count, WaitList& served) noexcept {
    Word word = word_.load(relaxed);
    for (;;) {
      if (free_in(word) + count > max_) return false;
      if (word & kWaiters) {
        StateLock lock(state_mu_);
        word = word_.load(relaxed);
        if (!(word & kWaiters)) continue;  // S5: not with state_mu_ held
        if (free_in(word) + count > max_) return false;
        serve(free_in(word) + count, served);
        return true;
      }
      // release: what the giver did, to who takes them. [G]
      if (word_.compare_exchange_weak(word, word + word_of(count), release, relaxed)) return true;
    }
  }

  // The wait of this node is cancelled, on its home loop. If it was given its permits, the caller
  // gives them back.
  [[nodiscard]] Withdrawn withdraw(WaitNode& node, WaitList& served) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return Withdrawn::passed_on;
    node.unlink();
    serve(free_in(word_.load(relaxed)), served);  // S3: a large request may have stood in the way
    return Withdrawn::unlinked;
  }

  [[nodiscard]] Count free() const noexcept {
    return static_cast<Count>(free_in(word_.load(relaxed)));
  }
  [[nodiscard]] bool has_waiters() const noexcept { return word_.load(relaxed) & kWaiters; }
  [[nodiscard]] Count max() const noexcept { return max_; }
  [[nodiscard]] WaitPlace place_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return place_in(waiters_, node);
  }

 private:
  static constexpr Word kWaiters = 1;
  static constexpr int kCountShift = 1;

  static constexpr Word word_of(Word count) noexcept { return count << kCountShift; }
  static constexpr Word free_in(Word word) noexcept { return word >> kCountShift; }

  // Requires: state_mu_, with kWaiters set (S2). So many are free: hands them out from the front.
  void serve(Word free, WaitList& served) noexcept {
    while (!waiters_.empty() && waiters_.front().amount <= free) {
      WaitNode& first = take_first(waiters_);
      free -= first.amount;
      served.push_back(first);
    }
    // release: what those did who gave what is left. They are known here: by the acquire of the
    // node that set kWaiters, and by state_mu_ since. [S]
    word_.store(word_of(free) | (waiters_.empty() ? 0 : kWaiters), release);
  }

  Atomic<Word> word_;
  const Count max_;
  StateMutex state_mu_;  // guards waiters_, and the steps of N1
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
