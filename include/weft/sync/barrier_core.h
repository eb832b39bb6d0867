// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::BarrierCore: who is missing in the phase of a Barrier, and who waits for them; no
// loops, no tasks. Who is to be notified is returned in a list.
// tests/model/barrier_test.cc checks this header.
//
// Invariants
//   R1  waiters_ are those who have arrived in this phase; they and missing_ make up parties_.
//   R2  missing_ > 0 while there are parties: whoever makes it 0 ends the phase, takes all waiters,
//       and begins the next.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/base/assert.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class BarrierCore {
 public:
  using Count = std::uint32_t;

  explicit BarrierCore(Count parties) noexcept : parties_(parties), missing_(parties) {}

  // Returns: true if it was the last, and the phase is over; false if the node waits for the
  // others.
  [[nodiscard]] bool arrive_or_wait(WaitNode& node, WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    WEFT_ASSERT(missing_ > 0, "nobody arrives at a Barrier that all parties have dropped");
    if (arrive(woken)) return true;
    node.state = WaitState::waiting;
    waiters_.push_back(node);
    return false;
  }
  // Returns: false, and nothing has changed, if all have dropped already.
  [[nodiscard]] bool drop(WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    if (parties_ == 0) return false;
    --parties_;
    arrive(woken);
    return true;
  }
  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Withdrawn withdraw(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return Withdrawn::kept;
    node.unlink();
    ++missing_;
    return Withdrawn::unlinked;
  }

  [[nodiscard]] Count parties() noexcept {
    StateLock lock(state_mu_);
    return parties_;
  }
  [[nodiscard]] Count missing() noexcept {
    StateLock lock(state_mu_);
    return missing_;
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
  // Requires: state_mu_. Returns: true if the phase is over.
  bool arrive(WaitList& woken) noexcept {
    if (--missing_ > 0) return false;
    missing_ = parties_;
    take_all(waiters_, woken);
    return true;
  }

  StateMutex state_mu_;  // guards everything, and the steps of N1
  Count parties_;
  Count missing_;
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
