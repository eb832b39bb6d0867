// SPDX-License-Identifier: MIT
#pragma once
// weft::tls::detail::stoppable(x): x, or the news that it was stopped before it had a result.
//
// The caller's cancellation stops it too, and does not end the caller: who has something to say first (a count of bytes)
// says it, and who has not co_awaits finish_if_cancelled().
//
//     Stop* stop = nullptr;                            somebody else may call stop->stop() while it is not null
//     auto got = co_await stoppable(stream.read_some(buffer), &stop);
//     if (!got) …                                      stopped, and nothing was read
//
// Threads        the home loop of the awaiting task, stop() too.
// Cancellation   passed to x; delivered as a value (L5).
// Allocation     none.
#include <type_traits>
#include <utility>

#include "weft/core/interruptible.h"
#include "weft/core/make_awaitable.h"

namespace weft::inline v0::tls::detail {

struct Stopped {};
inline constexpr CancelReason kStopped{"TLS has something to send first"};

class Stop {
 public:
  virtual void stop() noexcept = 0;

 protected:
  ~Stop() = default;
};

template <class A>
class StoppableAwaiter final : public weft::detail::Interruptible<A, Stopped>, private Stop {
 public:
  StoppableAwaiter(A&& awaitable, Stop** slot)
      : weft::detail::Interruptible<A, Stopped>(std::forward<A>(awaitable)), slot_(slot) {}
  StoppableAwaiter(const StoppableAwaiter&) = delete;
  StoppableAwaiter& operator=(const StoppableAwaiter&) = delete;
  ~StoppableAwaiter() {
    if (slot_) *slot_ = nullptr;
  }

  std::false_type await_early_cancel() noexcept {
    this->cancelled_ = true;
    return {};
  }
  bool await_suspend(weft::detail::Continuation waiter) {
    this->waiter_ = waiter;
    bool over = this->cancelled_ ? this->start_interrupted(kStopped) : this->start();
    if (over) return this->gives_up();
    if (slot_) *slot_ = this;
    return true;
  }
  bool await_cancel(weft::detail::Continuation) noexcept {
    if (this->gave_up_) return true;
    stop();
    return false;
  }
  [[nodiscard]] static constexpr bool await_must_resume() noexcept { return true; }
  void await_introspect(auto& tree) noexcept { tree.child(this->branch_.awaiter()); }

 private:
  void stop() noexcept override {
    if (this->interrupt(kStopped)) this->waiter_.wake();
  }
  void over(weft::detail::BranchBase&) noexcept override { this->end(); }

  Stop** slot_;
};

template <class A>
class Stoppable {
 public:
  Stoppable(A&& awaitable, Stop** slot) : awaitable_(std::forward<A>(awaitable)), slot_(slot) {}
  StoppableAwaiter<A> operator co_await() && {
    return StoppableAwaiter<A>(std::forward<A>(awaitable_), slot_);
  }

 private:
  A awaitable_;
  Stop** slot_;
};

// `slot`, where given, is not null while it waits. Requires: no other wait uses it.
template <class A>
[[nodiscard]] auto stoppable(A&& awaitable, Stop** slot = nullptr) {
  return Stoppable<A>(std::forward<A>(awaitable), slot);
}

}  // namespace weft::inline v0::tls::detail
