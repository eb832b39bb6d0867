// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::SharedCore: who waits for an operation that many share, and whether it runs; no
// loops, no tasks. Who is to be notified is returned.
//
// Invariants
//   H1  it is begun once, by the first who joins.
//   H2  while it runs somebody waits: the last of those who wait does not leave. It asks the
//       operation to stop, and is notified of its end like everybody else; so it is the last once.
//   H3  ended is final, and nobody waits then.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class SharedCore {
 public:
  enum class Joined : std::uint8_t { first, waiting, ended };
  // first, waiting: the node waits. first: its owner begins the operation (H1).
  [[nodiscard]] Joined join(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (state_ == State::ended) return Joined::ended;
    node.amount = kStays;
    node.state = WaitState::waiting;
    waiters_.push_back(node);
    if (state_ != State::idle) return Joined::waiting;
    state_ = State::running;
    return Joined::first;
  }

  enum class Left : std::uint8_t {
    left,
    last,   // it still waits, and its owner stops the operation (H2)
    ended,  // the notify() is under way
  };
  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Left leave(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return Left::ended;
    if (&waiters_.front() == &node && &waiters_.back() == &node) {
      node.amount = kAsked;
      return Left::last;
    }
    node.unlink();
    return Left::left;
  }

  // The operation has ended. If it did so because somebody asked, that one's wait ends cancelled: a
  // step of N2 that is made here, under the lock, because the asker waits for it at home.
  void end(bool cancelled, WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    state_ = State::ended;
    for (WaitNode& each : waiters_)
      each.state = cancelled && each.amount == kAsked ? WaitState::cancelled : WaitState::notified;
    woken.splice_back(waiters_);
  }

  [[nodiscard]] bool has_ended() noexcept {
    StateLock lock(state_mu_);
    return state_ == State::ended;
  }
  [[nodiscard]] WaitPlace place_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return place_in(waiters_, node);
  }

 private:
  enum class State : std::uint8_t { idle, running, ended };
  // WaitNode::amount.
  static constexpr std::uint32_t kStays = 0;
  static constexpr std::uint32_t kAsked = 1;

  StateMutex state_mu_;  // guards everything, and the steps of N1
  State state_ = State::idle;
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
