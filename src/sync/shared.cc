// SPDX-License-Identifier: MIT
#include "weft/sync/shared.h"

#include "describe.h"

namespace weft::inline v0::detail {

SharedOperation::~SharedOperation() {
  // H2: nobody waits, so it does not run.
  if (!strand_.load(relaxed)) return;
  strand().ended().read = error_read_.load(relaxed);  // L14
  CancellationRuntime::drop_ref(strand());
}

bool SharedOperation::join(Waiter& waiter) noexcept {
  switch (core_.join(waiter)) {
    case SharedCore::Joined::ended:
      return false;
    case SharedCore::Joined::waiting:
      return true;
    case SharedCore::Joined::first:
      break;
  }
  // release: the strand as it was made. [pairs with describe_wait()]
  strand_.store(&CancellationRuntime::start_guest(first_frame(), *this), release);  // S1
  return true;
}

Withdrawn SharedOperation::leave(Waiter& waiter) noexcept {
  switch (core_.leave(waiter)) {
    case SharedCore::Left::left:
      return Withdrawn::unlinked;
    case SharedCore::Left::ended:
      return Withdrawn::passed_on;  // the result is still here, for others
    case SharedCore::Left::last:
      break;
  }
  // It may end at this moment: the waiter holds the operation, and that the strand (S2).
  CancellationRuntime::cancel(strand(), ambient_cancel_reason());
  return Withdrawn::kept;  // end() says how the wait ends
}

// On the loop where the operation has ended.
void SharedOperation::ended(Runnable& work) noexcept {
  auto& self = static_cast<SharedOperation&>(static_cast<JoinWaiter&>(work));
  WaitList woken;
  self.core_.end(self.strand().ended().kind == OutcomeKind::cancelled, woken);
  Waiter::notify_all(woken);  // *this may be gone
}

Strand& SharedOperation::require_value() {
  Ended& ended = strand().ended();
  if (ended.kind == OutcomeKind::error) {
    error_read_.store(true, relaxed);
    ended.error.rethrow();
  }
  if (ended.kind == OutcomeKind::cancelled) throw TaskCancelled(strand().why());
  return strand();
}

void SharedOperation::describe_wait(TaskTreeCollector& tree, const Waiter& waiter) {
  const WaitPlace place = core_.place_of(waiter);
  detail::describe_wait(tree, {.kind = "Shared", .name = name_, .notified = "about to go on"},
                        place);
  // acquire: it may have been begun by another loop just now. [pairs with join()]
  Strand* operation = strand_.load(acquire);
  if (place.place == 0 || !operation) return;
  tree.task(*operation);  // if it ends now, it does so on another loop, and is not entered
}

}  // namespace weft::inline v0::detail
