// SPDX-License-Identifier: MIT
#include "weft/core/started_task.h"

#include <string>

namespace weft::inline v0 {

PromiseChildLease::PromiseChildLease(const PromiseChildLease& other) noexcept
    : scope_(other.scope_) {
  if (scope_) CancellationRuntime::add_lease(*scope_);
}

PromiseChildLease Scope::lease() {
  CancellationRuntime::require_home(*this, "Scope::lease()");
  CancellationRuntime::strand_of(*this).state.set_shared();  // W7
  flags_ |= kHadMembers;
  CancellationRuntime::add_lease(*this);
  return PromiseChildLease(*this);
}

const PromiseChildLease& PromiseChildLease::require() const {
  if (!scope_)
    detail::throw_usage_error("this lease is empty: it was moved from, consumed or reset");
  return *this;
}

void PromiseChildLease::start(Task<void> task) const {
  PromiseChildLease copy = require();
  CancellationRuntime::start_leased(*task.release_for_await(), copy.consume(), false);
}

void PromiseChildLease::cancel(const CancelReason& reason) const noexcept {
  if (scope_) CancellationRuntime::cancel(CancellationRuntime::strand_of(*scope_), reason);
}

bool PromiseChildLease::is_cancelled() const noexcept {
  return scope_ && CancellationRuntime::strand_of(*scope_).state.is_cancelled();
}

namespace detail {

Scope& running_scope(const char* what) {
  Strand* running = thread_state().running;
  if (!running) {
    throw UsageError(std::string(what) +
                     " was called outside of a running task: there is no current scope");
  }
  return *running->top;
}

void JoinAwaiterBase::wait_for(Strand& strand, Continuation waiter) noexcept {
  strand_ = &strand;
  waiter_ = waiter;
}

bool JoinAwaiterBase::attach(Strand& strand, Continuation waiter) {
  home = thread_state().executor->home();
  waiter_ = waiter;
  switch (strand.waiter.attach(*this)) {
    case WaiterSlot<JoinWaiter>::Attached::waiting:
      return true;
    case WaiterSlot<JoinWaiter>::Attached::taken:
      throw_usage_error("one waiter at a time: another task awaits this StartedTask already");
    case WaiterSlot<JoinWaiter>::Attached::already_done:
      break;
  }
  if (asked_ || strand.ended().kind != OutcomeKind::cancelled) return false;
  done_ = true;  // ended cancelled, and nobody asked: the waiter goes the same way
  return waiter.cancel_with(strand.why());
}

bool JoinAwaiterBase::cancel_awaited() noexcept {
  if (done_) return true;
  asked_ = true;
  CancellationRuntime::cancel(*strand_, ambient_cancel_reason());
  return false;
}

void JoinAwaiterBase::on_done(Runnable& work) noexcept {
  auto& self = static_cast<JoinAwaiterBase&>(static_cast<JoinWaiter&>(work));
  bool unasked = self.strand_->ended().kind == OutcomeKind::cancelled && !self.asked_;
  self.done_ = true;
  if (unasked && self.waiter_.cancel_with(self.strand_->why())) return;
  self.waiter_.wake();
}

}  // namespace detail

}  // namespace weft::inline v0
