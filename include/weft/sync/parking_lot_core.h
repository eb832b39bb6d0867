// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ParkingLotCore: who is parked; no loops, no tasks. Who is to be notified is
// returned. tests/model/parking_lot_test.cc checks this header.
//
// Invariants
//   K1  an unpark of one belongs to one: if its wait is cancelled before it has gone on, the next
//       that is parked has it. An unpark of all belongs to those who were parked then, and is not
//       passed on. WaitNode::amount says which it was.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class ParkingLotCore {
 public:
  void park(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    node.state = WaitState::waiting;
    waiters_.push_back(node);
  }
  // Returns: who goes on, or null if nobody is parked.
  [[nodiscard]] WaitNode* unpark_one() noexcept {
    StateLock lock(state_mu_);
    return take_one();
  }
  void unpark_all(WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    for (WaitNode& each : waiters_) each.amount = kWithAll;
    take_all(waiters_, woken);
  }
  struct Withdrawal {
    Withdrawn how;
    WaitNode* next;  // as from unpark_one()
  };
  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Withdrawal withdraw(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting)
      return {Withdrawn::passed_on, node.amount == kAlone ? take_one() : nullptr};
    node.unlink();
    return {Withdrawn::unlinked, nullptr};
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
  static constexpr std::uint32_t kAlone = 1;
  static constexpr std::uint32_t kWithAll = 2;

  // Requires: state_mu_.
  WaitNode* take_one() noexcept {
    if (waiters_.empty()) return nullptr;
    WaitNode& first = take_first(waiters_);
    first.amount = kAlone;
    return &first;
  }

  StateMutex state_mu_;  // guards waiters_, and the steps of N1
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
