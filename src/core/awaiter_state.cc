// SPDX-License-Identifier: MIT
#include "weft/core/awaiter_state.h"

#include <string>

#include "weft/base/assert.h"
#include "weft/base/log.h"
#include "weft/core/tree.h"

namespace weft::inline v0::detail {

using State = AwaiterState;

const char* name_of(AwaiterState state) noexcept {
  switch (state) {
    case State::initial:
      return "Initial";
    case State::not_ready:
      return "NotReady";
    case State::ready_immediately:
      return "ReadyImmediately";
    case State::initial_cancel_pending:
      return "InitialCxlPend";
    case State::cancel_pending:
      return "CancelPending";
    case State::running:
      return "Running";
    case State::cancelling:
      return "Cancelling";
    case State::ready_after_cancel:
      return "ReadyAfterCancel";
    case State::ready:
      return "Ready";
    case State::done:
      return "Done";
    case State::cancelled:
      return "Cancelled";
  }
  return "?";
}

AwaiterStateMachine::~AwaiterStateMachine() {
  if (state_ == State::initial || state_ == State::done || state_ == State::cancelled) return;
  broken("was destroyed (allowed in Initial, Done and Cancelled)");
}

void AwaiterStateMachine::broken(const char* event) const noexcept {
  std::string message = "awaiter protocol broken: " + type_name(*awaiter_) + " in state " +
                        name_of(state_) + " " + event;
  log(LogLevel::error, message);
  WEFT_ASSERT(false, "an awaiter and its driver follow the state machine of docs/guide/04");
  __builtin_unreachable();
}

void AwaiterStateMachine::ready_answered(bool ready) noexcept {
  switch (state_) {
    case State::initial:
    case State::not_ready:
      state_ = ready ? State::ready_immediately : State::not_ready;
      return;
    case State::ready_immediately:
      if (!ready) broken("answered await_ready() with false after it had answered true");
      return;
    case State::initial_cancel_pending:
    case State::cancel_pending:
      state_ = ready ? State::ready_after_cancel : State::cancel_pending;
      return;
    default:
      broken("was asked await_ready()");
  }
}

void AwaiterStateMachine::early_cancel_answered(bool cancelled) noexcept {
  switch (state_) {
    case State::initial:
      state_ = cancelled ? State::cancelled : State::initial_cancel_pending;
      return;
    case State::not_ready:
      state_ = cancelled ? State::cancelled : State::cancel_pending;
      return;
    case State::ready_immediately:
      state_ = cancelled ? State::cancelled : State::ready_after_cancel;
      return;
    default:
      broken("was asked await_early_cancel()");
  }
}

void AwaiterStateMachine::suspending() noexcept {
  switch (state_) {
    case State::not_ready:
      state_ = State::running;
      return;
    case State::cancel_pending:
      state_ = State::cancelling;
      return;
    default:
      broken("was asked await_suspend()");
  }
}

void AwaiterStateMachine::resumed() noexcept {
  switch (state_) {
    case State::running:
      state_ = State::ready;
      return;
    case State::cancelling:
      state_ = State::ready_after_cancel;
      return;
    default:
      broken("resumed its handle");
  }
}

void AwaiterStateMachine::cancelling() noexcept {
  if (state_ != State::running) broken("was asked await_cancel()");
  state_ = State::cancelling;
}

void AwaiterStateMachine::cancel_answered(bool cancelled) noexcept {
  if (!cancelled) return;  // it may have resumed its handle meanwhile
  if (state_ != State::cancelling) {
    broken("answered await_cancel() with true although it had resumed its handle");
  }
  state_ = State::cancelled;
}

void AwaiterStateMachine::must_resume_answered(bool must) noexcept {
  // Asked again, it must answer the same: wrappers may ask more than once.
  if (state_ == State::ready && must) return;
  if (state_ == State::cancelled && !must) return;
  if (state_ != State::ready_after_cancel) broken("was asked await_must_resume()");
  state_ = must ? State::ready : State::cancelled;
}

void AwaiterStateMachine::resuming() noexcept {
  if (state_ != State::ready && state_ != State::ready_immediately) {
    broken("was asked await_resume()");
  }
  state_ = State::done;
}

}  // namespace weft::inline v0::detail
