// SPDX-License-Identifier: MIT
#include "weft/core/nursery.h"

#include "weft/base/assert.h"
#include "weft/core/primitives.h"

namespace weft::inline v0 {

using detail::Strand;

Nursery::Nursery() noexcept : strand_(CancellationState::HOMED | 1, 0, nullptr) {
  CancellationRuntime::mark_nursery(*this);
  strand_.parent_link.scope = reinterpret_cast<std::uintptr_t>(static_cast<Scope*>(this));
}

Nursery::~Nursery() {
  WEFT_ASSERT(completed_ || strand_.home.load(detail::relaxed) == 0,
              "L7: a nursery is destroyed after its children: await it to the end");
}

void Nursery::open(detail::Continuation waiter) {
  strand_.home.store(Executor::current("with_nursery()").home(), detail::relaxed);
  waiter_ = waiter;
}

void Nursery::start_on(Executor& loop, Task<void> task) {
  CancellationRuntime::require_home(*this, "Nursery::start_on()");
  detail::Frame* first = task.release_for_await();
  try {
    CancellationRuntime::start_there(*first, loop, this, {}, "Nursery::start_on()");
  } catch (...) {
    first->handle().destroy();
    throw;
  }
}

void Nursery::schedule(Task<void> task) {
  CancellationRuntime::require_home(*this, "Nursery::schedule()");
  Executor& loop = *Executor::current_or_null();
  if (!loop.services().schedule) {
    detail::throw_usage_error(
        "Nursery::schedule() needs the workers of an IOContext, and this loop is not one of them: "
        "use start(), or start_on(loop, ...)");
  }
  Strand& fresh = CancellationRuntime::make_fresh(*task.release_for_await(), this);
  loop.services().schedule(loop, fresh);
}

Task<void> open_nursery(Nursery*& nursery, TaskStarted<void> started) {
  struct Reset {
    explicit Reset(Nursery*& pointer) noexcept : pointer(pointer) {}
    ~Reset() { pointer = nullptr; }
    Nursery*& pointer;
  };
  Reset reset(nursery);
  auto body = [&](Nursery& opened) -> Task<NurseryEnd> {
    nursery = &opened;
    started();
    co_await suspend_forever();
    co_return join;
  };
  co_await with_nursery(body);
}

void Nursery::progress() noexcept {
  if (completed_ || !CancellationRuntime::try_close_nursery(*this)) return;
  CancellationRuntime::cleanup_nodes(*this);
  completed_ = true;
  if (on_settled_) on_settled_(*this);
  // From here on its members refuse (require_home): its caller may be gone before they are done.
  strand_.home.store(0, detail::relaxed);
  waiter_.wake();
}

}  // namespace weft::inline v0
