// SPDX-License-Identifier: MIT
#include "weft/core/branch.h"

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

bool BranchBase::start(BranchOwner& owner, bool cancelled, std::size_t index) noexcept {
  owner_ = &owner;
  index_ = index;
  try {
    if (cancelled && early_cancel()) {
      state_ = State::cancelled;
      return true;
    }
    state_ = cancelled ? State::cancelling : State::running;
    if (ready()) {
      settle();
      return true;
    }
    inside_ = true;
    bool suspended = suspend();
    inside_ = false;
    if (!suspended) settle();
  } catch (...) {
    inside_ = false;
    start_error_ = std::current_exception();
    state_ = State::result;
  }
  return !is_running();
}

bool BranchBase::cancel() noexcept {
  if (state_ != State::running || !can_cancel()) return false;
  state_ = State::cancelling;
  inside_ = true;
  bool confirmed = ask();
  inside_ = false;
  if (confirmed) {
    WEFT_ASSERT(state_ == State::cancelling,
                "await_cancel() that resumed its handle returns false");
    state_ = State::cancelled;
  }
  return !is_running();
}

void BranchBase::settle() noexcept {
  state_ = state_ == State::running || must_resume() ? State::result : State::cancelled;
}

void BranchBase::wake() noexcept {
  WEFT_ASSERT(is_running(), "L6: a wait is resumed exactly once");
  settle();
  if (!inside_) owner_->over(*this);
}

bool BranchBase::cancel_with(const CancelReason& reason) noexcept {
  // What it awaits is over and will say so to await_cancel().
  unasked_ = &reason;
  state_ = State::cancelling;
  if (!ask()) return false;
  state_ = State::cancelled;
  if (!inside_) owner_->over(*this);
  return true;
}

}  // namespace weft::inline v0::detail
