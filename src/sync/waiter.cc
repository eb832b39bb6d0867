// SPDX-License-Identifier: MIT
#include "weft/sync/waiter.h"

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

void Waiter::notify() noexcept {
  Executor* here = Executor::current_or_null();
  if (here != nullptr && here->home() == home) return here->post_here(*this);
  bool posted = port_at(home).post(PostEntry(*this, PostKind::runnable));
  WEFT_ASSERT(posted, "L12: a loop does not end while a task of its waits");
}

void Waiter::arrived(Posted& work) noexcept {
  Waiter& waiter = from_posted(work);
  if (waiter.state == WaitState::notified) waiter.state = WaitState::resumed;
  waiter.continuation_.enter();  // it may be gone after this
}

}  // namespace weft::inline v0::detail
