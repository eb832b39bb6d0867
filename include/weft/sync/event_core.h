// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::EventCore, AutoEventCore: whether an event is set and who waits for it; no loops,
// no tasks. Who is to be notified is returned. tests/model/event_test.cc checks this header.
//
// Invariants
//   V1  nobody waits while the event is set.
//   V2  a wait looks with state_mu_ held: so who goes on because of a set() comes after that set()
//       has left it, and may destroy the event. is_set() does not promise that.
#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

// What both have in common.
class EventState {
 public:
  // acquire: what happened before the set(). [pairs with E]
  [[nodiscard]] bool is_set() const noexcept { return set_.load(acquire); }
  void reset() noexcept {
    StateLock lock(state_mu_);
    write(false);
  }
  [[nodiscard]] bool has_waiters() noexcept {
    StateLock lock(state_mu_);
    return !waiters_.empty();
  }
  [[nodiscard]] WaitPlace place_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return place_in(waiters_, node);
  }

 protected:
  EventState() = default;
  ~EventState() = default;

  // All of these require state_mu_. What happened before a set() reaches waits by it, or by the
  // post.
  [[nodiscard]] bool looks_set() const noexcept { return set_.load(relaxed); }
  void write(bool set) noexcept { set_.store(set, release); }  // E
  void wait(WaitNode& node) noexcept {
    node.state = WaitState::waiting;
    waiters_.push_back(node);
  }

  StateMutex state_mu_;  // guards everything, and the steps of N1; set_ may be read without
  WaitList waiters_;

 private:
  Atomic<bool> set_{false};
};

// Manual reset: a set() lets everybody through until the reset().
class EventCore : public EventState {
 public:
  // Returns: true if it is set; false if the node waits.
  [[nodiscard]] bool look_or_wait(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (looks_set()) return true;
    wait(node);
    return false;
  }
  void set(WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    write(true);
    take_all(waiters_, woken);  // V1
  }
  // The wait of this node is cancelled, on its home loop. There is nothing that it could have
  // taken.
  [[nodiscard]] Withdrawn withdraw(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return Withdrawn::passed_on;
    node.unlink();
    return Withdrawn::unlinked;
  }
};

// Auto reset: a set() lets one through.
class AutoEventCore : public EventState {
 public:
  // Returns: true if it was set, and is not any more.
  [[nodiscard]] bool try_take() noexcept {
    StateLock lock(state_mu_);
    return take();
  }
  // The same; or false, and the node waits.
  [[nodiscard]] bool take_or_wait(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (take()) return true;
    wait(node);
    return false;
  }
  // Returns: who is let through, and is to be notified; null if it stays set for the next.
  [[nodiscard]] WaitNode* set() noexcept {
    StateLock lock(state_mu_);
    return signal();
  }
  struct Withdrawal {
    Withdrawn how;
    WaitNode* next;  // as from set()
  };
  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Withdrawal withdraw(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return {Withdrawn::passed_on, signal()};
    node.unlink();
    return {Withdrawn::unlinked, nullptr};
  }

 private:
  bool take() noexcept {
    if (!looks_set()) return false;
    write(false);
    return true;
  }
  WaitNode* signal() noexcept {
    if (!waiters_.empty()) return &take_first(waiters_);
    write(true);
    return nullptr;
  }
};

}  // namespace weft::inline v0::detail
