// SPDX-License-Identifier: MIT
#include "weft/core/continuation.h"

#include <utility>

#include "this_thread.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/resume.h"

namespace weft::inline v0::detail {

void Continuation::wake_other() const noexcept {
  auto* target = reinterpret_cast<void*>(bits_ & ~kTags);
  if (bits_ & kWaker) {
    static_cast<Waker*>(target)->wake();
  } else {
    resume_foreign(std::coroutine_handle<>::from_address(target));
  }
}

void Continuation::enter_other() const noexcept {
  if (!(bits_ & kWaker)) return wake_other();
  reinterpret_cast<Waker*>(bits_ & ~kTags)->enter();
}

bool Continuation::cancel_with(const CancelReason& reason) const noexcept {
  auto* target = reinterpret_cast<void*>(bits_ & ~kTags);
  switch (bits_ & kTags) {
    case kWaker:
      return static_cast<Waker*>(target)->cancel_with(reason);
    case kHandle:
      return false;
    default:
      break;
  }
  auto& strand = *static_cast<Strand*>(target);
  if (strand.state.load() & CancellationState::IGNORED) return false;
  CancellationRuntime::cancel(strand, reason);
  return true;
}

Strand* Continuation::strand() const noexcept {
  auto* target = reinterpret_cast<void*>(bits_ & ~kTags);
  if (bits_ & kHandle) return nullptr;
  return bits_ & kWaker ? static_cast<Waker*>(target)->waiting() : static_cast<Strand*>(target);
}

Strand* Continuation::needing() const noexcept {
  auto* target = reinterpret_cast<void*>(bits_ & ~kTags);
  if (bits_ & kHandle) return nullptr;
  return bits_ & kWaker ? static_cast<Waker*>(target)->needing() : static_cast<Strand*>(target);
}

const CancelReason& ambient_cancel_reason() noexcept {
  const CancelReason* reason = this_thread().kick_reason;
  return reason ? *reason : reasons::requested;
}

AmbientCancelReason::AmbientCancelReason(const CancelReason& reason) noexcept
    : outer_(std::exchange(this_thread().kick_reason, &reason)) {}
AmbientCancelReason::~AmbientCancelReason() { this_thread().kick_reason = outer_; }

}  // namespace weft::inline v0::detail
