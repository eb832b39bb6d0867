// SPDX-License-Identifier: MIT
#include "weft/sync/condition.h"

#include "describe.h"
#include "weft/core/errors.h"

namespace weft::inline v0 {

Condition::~Condition() {
  if (core_.has_waiters()) [[unlikely]]
    detail::abort_awaited({"Condition", name_});
}

void Condition::notify_one() noexcept {
  if (detail::WaitNode* place = core_.unpark_one()) Wait::lock_again(*place);
}

void Condition::notify_all() noexcept {
  detail::WaitList woken;
  core_.unpark_all(woken);
  while (detail::WaitNode* place = woken.pop_front()) Wait::lock_again(*place);
}

void Condition::refuse_empty_guard() const {
  throw UsageError("wait() of " + detail::thing_name("Condition", name_) +
                   " with a guard that holds no lock");
}

// C1. It may be gone after this.
void Condition::Wait::lock_again(detail::WaitNode& place) noexcept {
  Wait& wait = static_cast<Place&>(place).wait;
  if (wait.relock()) wait.notify();
}

bool Condition::Wait::await_suspend(detail::Continuation waiter) noexcept {
  waiter_ = waiter;
  begin_wait(detail::Continuation(static_cast<detail::Waker&>(*this)));
  wait_unlocked();
  return true;
}

// In this order: a notify that comes in between finds it, and puts it into the lock's queue.
void Condition::Wait::wait_unlocked() noexcept {
  condition_.core_.park(place_);
  unlock();
}

bool Condition::Wait::await_cancel(detail::Continuation) noexcept {
  cancelled_ = true;
  const auto [how, next] = condition_.core_.withdraw(place_);
  if (how == detail::Withdrawn::unlinked) {
    if (!relock()) return false;  // C3
    relocked();
    end_locked();
    return true;
  }
  if (next) lock_again(*next);
  return false;  // C3: the lock is under way
}

// The notify() of the lock has arrived. Returns: false if it waits once more.
bool Condition::Wait::is_over() noexcept {
  relocked();
  if (!cancelled_ && !is_satisfied()) return wait_unlocked(), false;
  end_locked();
  return true;
}

void Condition::Wait::wake() noexcept {
  if (is_over()) waiter_.wake();
}
void Condition::Wait::enter() noexcept {
  if (is_over()) waiter_.enter();
}
bool Condition::Wait::cancel_with(const CancelReason& reason) noexcept {
  return waiter_.cancel_with(reason);
}
detail::Strand* Condition::Wait::waiting() const noexcept { return waiter_.strand(); }

void Condition::Wait::await_introspect(TaskTreeCollector& tree) {
  const detail::WaitPlace at = condition_.core_.place_of(place_);
  if (at.place == 0) return describe_lock(tree);
  detail::describe_wait(tree, {"Condition", condition_.name_}, at);
}

}  // namespace weft::inline v0
