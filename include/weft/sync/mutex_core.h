// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::BasicMutexCore: who owns a Mutex and who waits for it; no loops, no tasks. What is to be
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
//   M4  holder_ is written by the owner, in the same step of its loop in which it becomes that or goes
//       on as that; and by who makes somebody the owner, under state_mu_, to "not known yet". So
//       whoever waits, and looks once before and once after the owner's loop has done something
//       else, has seen the owner.
#include <cstddef>
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/lock_holder.h"
#include "weft/sync/sharing.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

template <class Sharing>
class BasicMutexCore {
  using StateLock = typename Sharing::Lock;

 public:
  using Home = std::uint32_t;
  using Word = std::uint64_t;

  // acquire: what the last owner did. [pairs with U]
  [[nodiscard]] bool try_lock(Home home) noexcept {
    Word expected = kUnlocked;
    return word_.load(relaxed) == kUnlocked &&
           word_.compare_exchange_strong(expected, owned_by(home), acquire, relaxed);
  }

  // Returns: true if it is locked for node.home now; false if the node waits, and it does so from
  // now_ns on.
  [[nodiscard]] bool lock_or_wait(WaitNode& node, std::int64_t now_ns) noexcept {
    StateLock lock(state_mu_);
    Word word = word_.load(relaxed);
    while (!(word & kWaiters)) {
      bool free = word == kUnlocked;
      // acquire: as try_lock().
      if (word_.compare_exchange_weak(word, free ? owned_by(node.home) : word | kWaiters, acquire,
                                      relaxed)) {
        if (free) {
          holder_.forget();  // M4: this may be another loop, or none
          return true;
        }
        stamp({now_ns, false});
        break;
      }
    }
    node.amount = ++tickets_;
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
  [[nodiscard]] Unlocked unlock(Home home, std::int64_t now_ns) noexcept {
    if ((word_.load(relaxed) & ~kWaiters) != owned_by(home)) return {false, nullptr};
    return {true, pass_on(home, now_ns)};
  }

  struct Withdrawal {
    Withdrawn how;
    WaitNode* next;  // as in Unlocked
  };
  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Withdrawal withdraw(WaitNode& node, std::int64_t now_ns) noexcept {
    if (unlink_waiting(node)) return {Withdrawn::unlinked, nullptr};
    return {Withdrawn::passed_on, pass_on(node.home, now_ns)};
  }

  [[nodiscard]] bool is_locked() const noexcept { return word_.load(relaxed) != kUnlocked; }
  // The owner's loop, or 0.
  [[nodiscard]] Home owner() const noexcept {
    return static_cast<Home>(word_.load(relaxed) >> kHomeShift);
  }

  // Who the owner is, for those who wait and wonder; the owner writes it (M4).
  [[nodiscard]] LockHolder& holder() noexcept { return holder_; }
  [[nodiscard]] const LockHolder& holder() const noexcept { return holder_; }

  // What one who waits is told of who is in its way.
  struct Owner {
    Home home;
    LockHolder::Who who;
    HeldSince since;
  };
  // The owner, and those who wait for it on one loop: as many as there are in the first `room` of
  // `nodes`, in order. Who is asked for on its own loop stays where it is meanwhile.
  struct Queue {
    Owner owner;
    std::size_t count;
  };
  [[nodiscard]] Queue waiting_on(Home home, WaitNode** nodes, std::size_t room) noexcept {
    StateLock lock(state_mu_);
    return {owner_now(), detail::waiting_on(waiters_, home, nodes, room)};
  }
  struct Standing {
    Owner owner;      // itself, if it does not wait any more
    WaitPlace place;  // O(n): it is counted
  };
  [[nodiscard]] Standing standing_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return {owner_now(), place_in(waiters_, node)};
  }

 private:
  static constexpr Word kUnlocked = 0;
  static constexpr Word kLocked = 1;
  static constexpr Word kWaiters = 2;
  static constexpr int kHomeShift = 2;

  static constexpr Word owned_by(Home home) noexcept { return Word{home} << kHomeShift | kLocked; }

  // Requires: state_mu_.
  Owner owner_now() const noexcept { return {owner(), holder_.who(), {since_ns_, since_exact_}}; }

  // Requires: state_mu_.
  void stamp(HeldSince since) noexcept {
    since_ns_ = since.ns;
    since_exact_ = since.exact;
  }

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
  WaitNode* pass_on(Home home, std::int64_t now_ns) noexcept {
    do {
      StateLock lock(state_mu_);
      if (!waiters_.empty()) return &notify_first(now_ns);
    } while (!try_unlock(home));
    return nullptr;
  }

  // Requires: state_mu_; there is one.
  WaitNode& notify_first(std::int64_t now_ns) noexcept {
    WaitNode& next = take_first(waiters_);
    holder_.forget();  // M4
    stamp({now_ns, true});
    // relaxed: what the owner did reaches the next by the post that notifies it.
    word_.store(owned_by(next.home) | (waiters_.empty() ? 0 : kWaiters), relaxed);
    return next;
  }

  // In an order that needs few cache lines: each hand-over writes all of it.
  typename Sharing::template Word<Word> word_{kUnlocked};
  [[no_unique_address]]
  typename Sharing::Mutex state_mu_;  // guards the rest but holder_, and the steps of N1
  bool since_exact_ = false;          // as since_ns_
  std::uint32_t tickets_ = 0;         // WaitNode::amount
  LockHolder holder_;
  WaitList waiters_;
  std::int64_t since_ns_ = 0;  // while there are waiters
};

using MutexCore = BasicMutexCore<BetweenLoops>;

}  // namespace weft::inline v0::detail
