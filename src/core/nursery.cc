// SPDX-License-Identifier: MIT
#include "weft/core/nursery.h"

#include "weft/base/assert.h"

namespace weft::inline v0 {

Nursery::Nursery() noexcept : strand_(CancellationState::HOMED | 1, 0, nullptr) {
  CancellationRuntime::open_nursery(*this);
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

void Nursery::progress() noexcept {
  if (completed_ || !CancellationRuntime::try_close_nursery(*this)) return;
  CancellationRuntime::cleanup_nodes(*this);
  completed_ = true;
  waiter_.wake();
}

}  // namespace weft::inline v0
