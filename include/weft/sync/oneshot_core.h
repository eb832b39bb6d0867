// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::OneshotCore: one value between two halves, and the one who waits for it; no loops, no
// tasks. tests/model/oneshot_test.cc checks this header.
//
// Invariants
//   O1  each half leaves once; the second to leave is told so, and frees the core. Nobody touches it
//       after it has left.
//   O2  somebody waits: there is no item and the sender has not left.
//   O3  whoever takes waiter_ out owes it its notify (N1).
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

template <class T>
class OneshotCore {
  static_assert(
      std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
      "the value is moved under a lock: send a std::unique_ptr of a type whose move may throw");

 public:
  struct Left {
    bool sent;
    bool last;        // the other half has left, too
    WaitNode* woken;  // to be notified; or null
  };
  // The sender leaves its value, if the receiver is still there, and leaves.
  [[nodiscard]] Left send(T&& value) noexcept {
    StateLock lock(state_mu_);
    if (!receiver_left_) item_.emplace(std::move(value));
    return leave_sender(!receiver_left_);
  }
  [[nodiscard]] Left drop_sender() noexcept {
    StateLock lock(state_mu_);
    return leave_sender(false);
  }
  // Returns: true if the sender has left, too.
  [[nodiscard]] bool drop_receiver() noexcept {
    StateLock lock(state_mu_);
    receiver_left_ = true;
    return sender_left_;
  }

  enum class Received : std::uint8_t { item, empty, closed };
  [[nodiscard]] Received receive(std::optional<T>& into) noexcept {
    StateLock lock(state_mu_);
    return take_out(into);
  }
  // Returns: empty if the node waits now. Requires: nobody else does.
  [[nodiscard]] Received receive_or_wait(WaitNode& node, std::optional<T>& into) noexcept {
    StateLock lock(state_mu_);
    const Received how = take_out(into);
    if (how == Received::empty) {
      node.state = WaitState::waiting;
      waiter_ = &node;
    }
    return how;
  }
  // The wait of this node is cancelled, on its home loop.
  [[nodiscard]] Withdrawn withdraw(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return Withdrawn::kept;
    waiter_ = nullptr;
    return Withdrawn::unlinked;
  }

  [[nodiscard]] bool is_awaited() const noexcept {
    StateLock lock(state_mu_);
    return waiter_ != nullptr;
  }
  [[nodiscard]] bool receiver_left() const noexcept {
    StateLock lock(state_mu_);
    return receiver_left_;
  }

 private:
  // Requires, as all that follows: state_mu_.
  Left leave_sender(bool sent) noexcept {
    sender_left_ = true;
    WaitNode* woken = std::exchange(waiter_, nullptr);
    if (woken) woken->state = WaitState::notified;  // O3
    return {sent, receiver_left_, woken};
  }
  Received take_out(std::optional<T>& into) noexcept {
    if (!item_) return sender_left_ ? Received::closed : Received::empty;
    into.emplace(std::move(*item_));
    item_.reset();
    return Received::item;
  }

  mutable StateMutex state_mu_;  // guards all that follows, and the steps of N1
  std::optional<T> item_;
  WaitNode* waiter_ = nullptr;
  bool sender_left_ = false;
  bool receiver_left_ = false;
};

}  // namespace weft::inline v0::detail
