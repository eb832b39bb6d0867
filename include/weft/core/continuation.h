// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Continuation: who goes on when an awaiter of weft's own is done. One pointer.
//
// A strand, a branch of a combinator (a Waker), or any std::coroutine_handle<>. Awaiters of weft
// take it where others take a handle; a handle converts, so they are ordinary awaiters too.
//
// wake() is called once per wait, on the waiter's home loop (L6). It never runs the waiter: it
// makes it ready (L2).
#include <coroutine>
#include <cstdint>

#include "weft/core/cancel_reason.h"

namespace weft::inline v0 {
class Executor;
}

namespace weft::inline v0::detail {

struct Strand;
void wake_strand(Strand& strand) noexcept;   // CancellationRuntime::wake()
void enter_strand(Strand& strand) noexcept;  // CancellationRuntime::enter_parked()

class Waker {
 public:
  virtual void wake() noexcept = 0;
  // As Continuation::enter(), for one that only passes it on.
  virtual void enter() noexcept { wake(); }
  // What is awaited ended as cancelled, and the waiter had not asked for that: shall it be
  // cancelled along? If so (true), its await_cancel() is called.
  virtual bool cancel_with(const CancelReason& reason) noexcept = 0;
  // The strand whose wait this is a part of; null if there is none.
  [[nodiscard]] virtual Strand* waiting() const noexcept = 0;
  // That strand, if it cannot go on before this was woken; null if something else may do, or nobody
  // knows. Any thread, while the wait cannot end: what it reads stands since the wait began.
  [[nodiscard]] virtual Strand* needing() const noexcept { return nullptr; }

 protected:
  ~Waker() = default;
};

class Continuation {
 public:
  Continuation() = default;
  explicit Continuation(Strand& strand) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(&strand)) {}
  explicit Continuation(Waker& waker) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(&waker) | kWaker) {}
  template <class Promise>
  Continuation(std::coroutine_handle<Promise> handle) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(handle.address()) | kHandle) {}

  void wake() const noexcept {
    if (bits_ & kTags) return wake_other();
    wake_strand(*reinterpret_cast<Strand*>(bits_));
  }
  // As wake(), for a Runnable that is the wake-up: who has stood in the ready ring with that need not
  // stand there again, and a strand goes on at once. Requires: called by the loop, inside no task.
  void enter() const noexcept {
    if (bits_ & kTags) return enter_other();
    enter_strand(*reinterpret_cast<Strand*>(bits_));
  }
  [[nodiscard]] bool cancel_with(const CancelReason& reason) const noexcept;
  // The strand that waits, for a branch the one that awaits the whole; null if it is a foreign
  // coroutine.
  [[nodiscard]] Strand* strand() const noexcept;
  // The same, but null where a cancel apart it can go on without this wake-up: Waker::needing().
  [[nodiscard]] Strand* needing() const noexcept;

 private:
  static constexpr std::uintptr_t kWaker = 1;
  static constexpr std::uintptr_t kHandle = 2;
  static constexpr std::uintptr_t kTags = 3;

  void wake_other() const noexcept;
  void enter_other() const noexcept;

  std::uintptr_t bits_ = 0;
};

// Why the cancel that is being handed down was asked for. For awaiters that cancel others.
[[nodiscard]] const CancelReason& ambient_cancel_reason() noexcept;

class AmbientCancelReason {
 public:
  explicit AmbientCancelReason(const CancelReason& reason) noexcept;
  ~AmbientCancelReason();
  AmbientCancelReason(const AmbientCancelReason&) = delete;
  AmbientCancelReason& operator=(const AmbientCancelReason&) = delete;

 private:
  const CancelReason* outer_;
};

}  // namespace weft::inline v0::detail
