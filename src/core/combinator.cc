// SPDX-License-Identifier: MIT
#include "weft/core/combinator.h"

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

bool Combinator::start(Continuation waiter, bool cancelled) noexcept {
  waiter_ = waiter;
  asked_ = settled_ = cancelled;
  pending_ = count();
  starting_ = true;
  for (std::size_t i = 0; i < count(); ++i) {
    if (at(i).start(*this, settled_, i)) branch_over(i);
  }
  starting_ = false;
  if (settled_) cancel_rest();
  return pending_ > 0 || finish();
}

bool Combinator::cancel() noexcept {
  if (gave_up_) return true;
  asked_ = settled_ = true;
  cancel_rest();
  if (pending_ > 0) return false;
  if (!deliverable()) return true;
  waiter_.wake();
  return false;
}

bool Combinator::deliverable() const noexcept {
  if (first_error_ != kNone || first_failed_ != kNone) return true;
  switch (kind_) {
    case Kind::all:
      return values_ == count();
    case Kind::until:
      return last_has_result();
    default:
      return values_ > 0 || count() == 0;
  }
}

bool Combinator::last_has_result() const noexcept {
  return const_cast<Combinator&>(*this).at(count() - 1).has_result();
}

void Combinator::over(BranchBase& branch) noexcept {
  branch_over(branch.index());
  if (starting_ || cancelling_) return;
  if (settled_) cancel_rest();
  if (pending_ == 0 && !finish()) waiter_.wake();
}

void Combinator::branch_over(std::size_t index) noexcept {
  --pending_;
  BranchBase& branch = at(index);
  if (branch.has_result()) {
    switch (collect(index)) {
      case Collected::value:
        if (values_++ == 0) winner_ = index;
        if (kind_ == Kind::any || (kind_ == Kind::until && index + 1 == count())) settled_ = true;
        break;
      case Collected::failed_value:
        if (first_failed_ == kNone) first_failed_ = index;
        settled_ = true;
        break;
      case Collected::error:
        if (first_error_ == kNone) first_error_ = index;
        settled_ = true;
        break;
    }
    return;
  }
  if (branch.unasked() && !unasked_) unasked_ = branch.unasked();
  // A value that will never come: all_of and with() have nothing to wait for.
  if (kind_ == Kind::all || (kind_ == Kind::until && index + 1 == count())) settled_ = true;
}

void Combinator::cancel_rest() noexcept {
  if (cancelling_) return;
  cancelling_ = true;
  AmbientCancelReason reason(asked_ ? ambient_cancel_reason() : reasons::lost_race);
  for (std::size_t i = 0; i < count(); ++i) {
    if (at(i).cancel()) branch_over(i);
  }
  cancelling_ = false;
}

bool Combinator::finish() noexcept {
  if (deliverable() || asked_) return false;
  // Nothing to deliver, and nobody asked: what became of the branch becomes of the waiter.
  gave_up_ = true;
  return waiter_.cancel_with(unasked_ ? *unasked_ : reasons::requested);
}

void Combinator::check_errors() {
  if (first_error_ != kNone) {
    CaughtError first = error_at(first_error_);
    for (std::size_t i = 0; i < count(); ++i) {
      if (i != first_error_) first.add(error_at(i));
    }
    first.rethrow();
  }
  if (!deliverable()) throw TaskCancelled(unasked_ ? *unasked_ : reasons::requested);
}

}  // namespace weft::inline v0::detail
