// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::OnceCore: whether something was done, and whose turn it is to do it; no loops, no
// tasks. Who is to be notified is returned. tests/model/once_test.cc checks this header.
//
// Invariants
//   O1  running: exactly one has the turn. Others wait only then.
//   O2  whoever has the turn ends it once: done() wakes all, pass_on() gives it to the next, who
//       is notified with it. WaitNode::amount says whether a node was given the turn.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class OnceCore {
 public:
  static constexpr std::uint32_t kDone = 0;
  static constexpr std::uint32_t kTurn = 1;

  // Returns: true, and node.amount says what it has; false if the node waits.
  [[nodiscard]] bool begin_or_wait(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (state_ == State::running) {
      node.state = WaitState::waiting;
      waiters_.push_back(node);
      return false;
    }
    node.amount = state_ == State::done ? kDone : kTurn;
    if (state_ == State::idle) state_ = State::running;
    return true;
  }
  void done(WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    state_ = State::done;
    for (WaitNode& each : waiters_) each.amount = kDone;
    take_all(waiters_, woken);
  }
  // Returns: whose turn it is now, or null if nobody waits.
  [[nodiscard]] WaitNode* pass_on() noexcept {
    StateLock lock(state_mu_);
    return next();
  }
  struct Withdrawal {
    Withdrawn how;
    WaitNode* next;  // as from pass_on()
  };
  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Withdrawal withdraw(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting)
      return {Withdrawn::passed_on, node.amount == kTurn ? next() : nullptr};
    node.unlink();
    return {Withdrawn::unlinked, nullptr};
  }

  [[nodiscard]] bool is_done() noexcept {
    StateLock lock(state_mu_);
    return state_ == State::done;
  }
  [[nodiscard]] bool is_running() noexcept {
    StateLock lock(state_mu_);
    return state_ == State::running;
  }
  [[nodiscard]] WaitPlace place_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return place_in(waiters_, node);
  }

 private:
  enum class State : std::uint8_t { idle, running, done };

  // Requires: state_mu_, and the caller acts for who has the turn.
  WaitNode* next() noexcept {
    if (waiters_.empty()) {
      state_ = State::idle;
      return nullptr;
    }
    WaitNode& first = take_first(waiters_);
    first.amount = kTurn;
    return &first;
  }

  StateMutex state_mu_;  // guards everything, and the steps of N1
  State state_ = State::idle;
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
