// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::SharedMutexCore: who is inside of a SharedMutex and who waits for it; no loops, no
// tasks. Who is to be notified is returned in a list. tests/model/shared_mutex_test.cc checks this
// header.
//
// The word is 0, or the owner's loop with kExclusive, or how many share it; and kWaiters besides
// while the list is not empty. Without waiters, entering and leaving are one compare-exchange of it
// each. WaitNode::amount is the LockMode that a node wants, and from kTicket on the ticket of its wait.
//
// Invariants
//   X1  kWaiters is set exactly while waiters_ is not empty, but for the holder of state_mu_.
//   X2  while kWaiters is set, only the holder of state_mu_ writes the word.
//   X3  the first waiter cannot enter: whoever makes that untrue admits it, and those behind it who
//       can enter beside it, before state_mu_ is left. Nobody overtakes: with kWaiters set nobody
//       enters but from the list. So those who share do not starve one who wants it alone.
//   X4  who leaves does not touch *this after others may leave without state_mu_: the last one out
//       may destroy it. Those who were just admitted cannot: a cancel takes state_mu_ first, and
//       they go on only when they are notified.
//   X5  holder_ is as in MutexCore (M4), while one has it alone. While some share it, its place is that
//       of the last who came in, and its task is nobody.
#include <cstddef>
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/lock_holder.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

enum class LockMode : std::uint8_t { exclusive, shared };

class SharedMutexCore {
 public:
  using Home = std::uint32_t;
  using Word = std::uint64_t;

  // acquire: what those did who were inside before. [pairs with U, R, A]
  [[nodiscard]] bool try_lock(Home home) noexcept {
    Word expected = kUnlocked;
    return word_.load(relaxed) == kUnlocked &&
           word_.compare_exchange_strong(expected, owned_by(home), acquire, relaxed);
  }
  [[nodiscard]] bool try_lock_shared() noexcept {
    Word word = word_.load(relaxed);
    while (!(word & (kExclusive | kWaiters))) {
      // acquire: what the last owner did. [pairs with U, A]
      if (word_.compare_exchange_weak(word, word + kSharer, acquire, relaxed)) return true;
    }
    return false;
  }

  // Returns: true if the node is inside now; false if it waits.
  [[nodiscard]] bool lock_or_wait(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    Word word = word_.load(relaxed);
    while (!(word & kWaiters)) {
      bool free = admits(word, node);
      // acquire: as try_lock(); and what those did who have left is handed on by A. [pairs with U, R,
      // A]
      if (word_.compare_exchange_weak(word, free ? entered(word, node) : word | kWaiters, acquire,
                                      relaxed)) {
        if (free) {
          if (!shares(node)) holder_.forget();  // X5: this may be another loop, or none
          return true;
        }
        break;
      }
    }
    node.amount = (node.amount & (kTicket - 1)) | ++tickets_ * kTicket;
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
  // What try_unlock() did not do. Returns: false, and nothing has changed, if this loop is not the
  // owner.
  [[nodiscard]] bool unlock(Home home, WaitList& admitted) noexcept {
    if ((word_.load(relaxed) & ~kWaiters) != owned_by(home)) return false;
    do {
      StateLock lock(state_mu_);
      if (!waiters_.empty()) return admit(0, admitted), true;
    } while (!try_unlock(home));  // X4: not with state_mu_ held
    return true;
  }
  // Returns: false, and nothing has changed, if nobody shares it.
  [[nodiscard]] bool unlock_shared(WaitList& admitted) noexcept {
    Word word = word_.load(relaxed);
    while (sharers_in(word) > 0) {
      if (word & kWaiters) {
        StateLock lock(state_mu_);
        word = word_.load(relaxed);
        if (!(word & kWaiters)) continue;  // X4: not with state_mu_ held
        return admit(sharers_in(word) - 1, admitted), true;
      }
      // release: what this one saw and did, to the next owner. [R]
      if (word_.compare_exchange_weak(word, word - kSharer, release, relaxed)) return true;
    }
    return false;
  }

  // The wait of this node is cancelled, on its home loop. If it was inside already, the caller leaves
  // for it.
  [[nodiscard]] Withdrawn withdraw(WaitNode& node, WaitList& admitted) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return Withdrawn::passed_on;
    node.unlink();
    Word word = word_.load(relaxed);
    if (!(word & kExclusive)) {
      admit(sharers_in(word), admitted);  // X3: it may have stood in the way
    } else if (waiters_.empty()) {
      word_.store(word & ~kWaiters, relaxed);  // X2; the owner knows what was before
    }
    return Withdrawn::unlinked;
  }

  [[nodiscard]] bool is_free() const noexcept { return word_.load(relaxed) == kUnlocked; }
  [[nodiscard]] bool is_exclusive() const noexcept { return word_.load(relaxed) & kExclusive; }
  // How many share it.
  [[nodiscard]] Word sharers() const noexcept { return sharers_in(word_.load(relaxed)); }
  // The loop of who has it alone, or 0.
  [[nodiscard]] Home owner() const noexcept {
    Word word = word_.load(relaxed);
    return word & kExclusive ? static_cast<Home>(word >> kShift) : 0;
  }
  [[nodiscard]] static bool shares(const WaitNode& node) noexcept {
    return (node.amount & (kTicket - 1)) == static_cast<std::uint32_t>(LockMode::shared);
  }

  // Who has it alone, or the last place where it was shared (X5).
  [[nodiscard]] LockHolder& holder() noexcept { return holder_; }
  [[nodiscard]] const LockHolder& holder() const noexcept { return holder_; }

  // What one who waits is told of who is in its way.
  struct Owner {
    Home home;  // 0: nobody has it alone
    LockHolder::Who who;
  };
  // As in MutexCore.
  struct Queue {
    Owner owner;
    std::size_t count;
  };
  [[nodiscard]] Queue waiting_on(Home home, WaitNode** nodes, std::size_t room) noexcept {
    StateLock lock(state_mu_);
    return {owner_now(), detail::waiting_on(waiters_, home, nodes, room)};
  }
  struct Standing {
    Owner owner;
    WaitPlace place;  // O(n): it is counted
  };
  [[nodiscard]] Standing standing_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return {owner_now(), place_in(waiters_, node)};
  }

 private:
  static constexpr std::uint32_t kTicket = 2;  // 2^31 of them
  static constexpr Word kUnlocked = 0;
  static constexpr Word kExclusive = 1;
  static constexpr Word kWaiters = 2;
  static constexpr int kShift = 2;
  static constexpr Word kSharer = Word{1} << kShift;  // 2^62 of them: more than there are bytes

  static constexpr Word owned_by(Home home) noexcept { return Word{home} << kShift | kExclusive; }
  static constexpr Word sharers_in(Word word) noexcept {
    return word & kExclusive ? 0 : word >> kShift;
  }
  static bool admits(Word word, const WaitNode& node) noexcept {
    return shares(node) ? !(word & kExclusive) : word == kUnlocked;
  }
  static Word entered(Word word, const WaitNode& node) noexcept {
    return shares(node) ? word + kSharer : owned_by(node.home);
  }

  // Requires: state_mu_.
  Owner owner_now() const noexcept { return {owner(), holder_.who()}; }

  // Requires: state_mu_, with kWaiters set (X2). So many share it, and nobody has it alone: lets in
  // from the front who can enter now.
  void admit(Word sharers, WaitList& admitted) noexcept {
    Word word = sharers << kShift;
    while (!waiters_.empty() && admits(word, waiters_.front())) {
      WaitNode& first = take_first(waiters_);
      word = entered(word, first);
      if (!shares(first)) holder_.forget();  // X5
      admitted.push_back(first);
    }
    // release: what those did who have left, to who enters or leaves beside state_mu_ next. They are
    // known here: by the acquire of the node that set kWaiters, and by state_mu_ since. [A]
    word_.store(word | (waiters_.empty() ? 0 : kWaiters), release);
  }

  Atomic<Word> word_{kUnlocked};
  StateMutex state_mu_;  // guards waiters_ and tickets_, and the steps of N1
  std::uint32_t tickets_ = 0;
  LockHolder holder_;
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
