// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::MutexCore: who owns a Mutex and who waits for it; no loops, no tasks. What is to be
// notified is returned to the caller. tests/model/mutex_test.cc checks this header.
//
// The word is 0 (seed 000: U), or the owner's loop with kLocked (L0), and kWaiters besides while the
// list is not empty (L1). An uncontended lock() and unlock() are one compare-exchange of it each.
//
// Invariants
//   M1  kWaiters is set exactly while waiters_ is not empty, but for the holder of state_mu_.
//   M2  while kWaiters is set, or state_mu_ is held by the owner, nobody else writes the word: try_lock()
//       expects 0, unlock() expects the owner without kWaiters, and the rest needs state_mu_.
//   M3  the word is not 0 while there are waiters: ownership goes from one to the next, and nobody
//       gets in between (first come, first served).
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class MutexCore {
 public:
  using Home = std::uint32_t;
  using Word = std::uint64_t;

  // acquire: what the last owner did. [pairs with U]
  [[nodiscard]] bool try_lock(Home home) noexcept {
    Word expected = kUnlocked;
    return word_.load(relaxed) == kUnlocked &&
           word_.compare_exchange_strong(expected, owned_by(home), acquire, relaxed);
  }

  // Returns: true if it is locked for node.home now; false if the node waits.
  [[nodiscard]] bool lock_or_wait(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    Word word = word_.load(relaxed);
    while (!(word & kWaiters)) {
      bool free = word == kUnlocked;
      // acquire: as try_lock().
      if (word_.compare_exchange_weak(word, free ? owned_by(node.home) : word | kWaiters, acquire,
                                      relaxed)) {
        if (free) return true;
        break;
      }
    }
    node.state = WaitState::waiting;
    waiters_.push_back(node);
    return false;
  }

  // Returns: false if there are waiters, or this loop is not the owner.
  [[nodiscard]] bool try_unlock(Home home) noexcept {
    Word expected = owned_by(home);
    // release: what the owner did, to the next. [U]
    return word_.load(relaxed) == expected &&
           word_.compare_exchange_strong(expected, kUnlocked, release, relaxed);
  }

  struct Unlocked {
    bool was_owner;
    WaitNode* next;  // owns it now, and is to be notified; or null
  };
  // What try_unlock() did not do.
  [[nodiscard]] Unlocked unlock(Home home) noexcept {
    if ((word_.load(relaxed) & ~kWaiters) != owned_by(home)) return {false, nullptr};
    return {true, pass_on(home)};
  }

  struct Withdrawal {
    Withdrawn how;
    WaitNode* next;  // as in Unlocked
  };
  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Withdrawal withdraw(WaitNode& node) noexcept {
    if (unlink_waiting(node)) return {Withdrawn::unlinked, nullptr};
    return {Withdrawn::passed_on, pass_on(node.home)};
  }

  [[nodiscard]] bool is_locked() const noexcept { return word_.load(relaxed) != kUnlocked; }
  // The owner's loop, or 0.
  [[nodiscard]] Home owner() const noexcept {
    return static_cast<Home>(word_.load(relaxed) >> kHomeShift);
  }

  [[nodiscard]] WaitPlace place_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return place_in(waiters_, node);
  }

 private:
  static constexpr Word kUnlocked = 0;
  static constexpr Word kLocked = 1;
  static constexpr Word kWaiters = 2;
  static constexpr int kHomeShift = 2;

  static constexpr Word owned_by(Home home) noexcept { return Word{home} << kHomeShift | kLocked; }

  // Returns: false if it does not wait any more.
  bool unlink_waiting(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return false;
    node.unlink();
    if (waiters_.empty()) word_.store(word_.load(relaxed) & ~kWaiters, relaxed);  // M2
    return true;
  }

  // For the owner. The first waiter owns it at once; without one nobody does, and then that is the
  // last that is done with it here: whoever locks it next may destroy it.
  WaitNode* pass_on(Home home) noexcept {
    do {
      StateLock lock(state_mu_);
      if (!waiters_.empty()) return &notify_first();
    } while (!try_unlock(home));
    return nullptr;
  }

  // Requires: state_mu_; there is one.
  WaitNode& notify_first() noexcept {
    WaitNode& next = take_first(waiters_);
    // relaxed: what the owner did reaches the next by the post that notifies it.
    word_.store(owned_by(next.home) | (waiters_.empty() ? 0 : kWaiters), relaxed);
    return next;
  }

  Atomic<Word> word_{kUnlocked};
  StateMutex state_mu_;  // guards waiters_, and the steps of N1
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
