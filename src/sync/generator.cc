// SPDX-License-Identifier: MIT
#include "weft/sync/generator.h"

#include "weft/core/cancellation_runtime.h"

namespace weft::inline v0::detail {

Frame* NextSlot::ask(GeneratorOwner& owner) {
  using State = GeneratorOwner::State;
  switch (owner.state_) {
    case State::alive:
      break;
    case State::ended:
      return nullptr;
    case State::cancelled:
      throw_usage_error(
          "Generator::next(): a next() was cancelled before, and the generator with it");
    case State::empty:
      throw_usage_error("Generator::next(): this Generator is empty, or was moved from");
  }
  if (owner.frame_->is_started())
    throw_usage_error("Generator::next(): one at a time, and another is under way");
  return owner.frame_;
}

void check_ties(Frame& frame) {
  if (!frame.is_untied())
    throw_usage_error(
        "co_yield: a generator rests outside of any task, so it must not have children, leases or "
        "CancelNodes in its own scope, nor ignore cancellation, at a co_yield: use a nursery");
  if (CancellationRuntime::has_errors(frame))
    CancellationRuntime::take_errors(frame, nullptr).rethrow();  // L14
}

}  // namespace weft::inline v0::detail
