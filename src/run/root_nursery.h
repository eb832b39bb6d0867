// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::RootNursery: the scope of tasks that nobody awaits: what an IOContext was given to run.
//
// It is open from open_here() until release() was called and all its children and leases are gone. An
// error of a child does not touch the others; it goes to the context.
#include "weft/core/nursery.h"

namespace weft::inline v0::detail {

class RootNursery final : public Nursery, private Waker {
 public:
  using OnError = void (*)(void* context, const CaughtError& error) noexcept;
  RootNursery(OnError on_error, void* context) noexcept : on_error_(on_error), context_(context) {
    on_child_error([](Nursery& self, const CaughtError& error) noexcept {
      auto& root = static_cast<RootNursery&>(self);
      root.on_error_(root.context_, error);
    });
  }

  void open_here() {
    open(Continuation(static_cast<Waker&>(*this)));
    CancellationRuntime::add_lease(*this);
    released_ = false;
  }
  void release() noexcept {
    if (released_) return;
    released_ = true;
    CancellationRuntime::drop_lease_at_home(*this);
  }
  [[nodiscard]] bool completed() const noexcept { return completed_; }
  void cancel_all(const CancelReason& reason) noexcept {
    if (!completed_) CancellationRuntime::cancel(strand(), reason);
  }

 private:
  void wake() noexcept override { completed_ = true; }
  bool cancel_with(const CancelReason&) noexcept override { return false; }
  [[nodiscard]] Strand* waiting() const noexcept override { return nullptr; }

  OnError on_error_;
  void* context_;
  bool released_ = true;
  bool completed_ = false;
};

}  // namespace weft::inline v0::detail
