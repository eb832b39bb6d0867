// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::LatchCore: how much is left to count down, and who waits for the end of it; no
// loops, no tasks. Who is to be notified is returned in a list.
// tests/model/latch_test.cc checks this header.
//
// Invariants
//   A1  nobody waits once the count is 0, and it stays 0.
//   A2  a wait looks with state_mu_ held: so who goes on comes after the last count_down() has left
//       it, and may destroy the latch.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class LatchCore {
 public:
  using Count = std::uint32_t;

  explicit LatchCore(Count count) noexcept : count_(count) {}

  // Returns: false, and nothing has changed, if less is left.
  [[nodiscard]] bool count_down(Count by, WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    if (by > count_) return false;
    count_ -= by;
    if (count_ == 0) take_all(waiters_, woken);  // A1
    return true;
  }
  // Returns: true if nothing is left; false if the node waits.
  [[nodiscard]] bool look_or_wait(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (count_ == 0) return true;
    node.state = WaitState::waiting;
    waiters_.push_back(node);
    return false;
  }
  // The wait of this node is cancelled, on its home loop. There is nothing that it could have
  // taken.
  [[nodiscard]] Withdrawn withdraw(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return Withdrawn::passed_on;
    node.unlink();
    return Withdrawn::unlinked;
  }

  [[nodiscard]] Count count() noexcept {
    StateLock lock(state_mu_);
    return count_;
  }
  [[nodiscard]] bool has_waiters() noexcept {
    StateLock lock(state_mu_);
    return !waiters_.empty();
  }
  [[nodiscard]] WaitPlace place_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return place_in(waiters_, node);
  }

 private:
  StateMutex state_mu_;  // guards everything, and the steps of N1
  Count count_;
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
