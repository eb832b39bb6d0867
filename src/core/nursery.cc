// SPDX-License-Identifier: MIT
#include "weft/core/nursery.h"

#include "weft/base/assert.h"
#include "weft/core/primitives.h"

namespace weft::inline v0 {

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

namespace detail {

namespace {
Nursery& as_nursery(Scope& scope) noexcept { return static_cast<Nursery&>(scope); }
}  // namespace

Strand& nursery_strand(const Scope& nursery) noexcept {
  return const_cast<Nursery&>(static_cast<const Nursery&>(nursery)).strand_;
}

void nursery_child_added(Scope& nursery) noexcept { ++as_nursery(nursery).size_; }

void nursery_child_left(Scope& scope, OutcomeKind how) noexcept {
  Nursery& nursery = as_nursery(scope);
  --nursery.size_;
  if (how == OutcomeKind::cancelled) nursery.any_cancelled_ = true;
  if (how == OutcomeKind::error)
    CancellationRuntime::cancel(nursery.strand_, reasons::sibling_failed);
}

void nursery_progress(Scope& scope) noexcept {
  Nursery& nursery = as_nursery(scope);
  if (nursery.completed_ || !CancellationRuntime::try_close_nursery(scope)) return;
  CancellationRuntime::cleanup_nodes(scope);
  nursery.completed_ = true;
  if (nursery.on_settled_) nursery.on_settled_(nursery);
  // From here on its members refuse (require_home): its caller may be gone before they are done.
  nursery.strand_.home.store(0, detail::relaxed);
  nursery.waiter_.wake();
}

}  // namespace detail

}  // namespace weft::inline v0
