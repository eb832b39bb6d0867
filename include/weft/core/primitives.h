// SPDX-License-Identifier: MIT
#pragma once
// The smallest awaitables: yield, suspend_forever, just, noop, current_scope, ignore_cancellation,
// finish_if_cancelled.
//
//   yield()                 to the back of the ready ring; I/O and timers come between. Cancel point.
//   suspend_forever()       until cancelled. A cancel point.
//   just(v), noop()         v, nothing: never suspend, no cancel points.
//   current_scope()         Scope& of the awaiting frame; no cancel point.
//   ignore_cancellation()   a guard: while it lives, cancellation of this frame and of what it awaits
//                           is put off. A cancel point: if cancellation came first, the task ends.
//   finish_if_cancelled()   a cancel point and nothing else.
#include <coroutine>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/core/cancellation_runtime.h"
#include "weft/core/continuation.h"

namespace weft::inline v0 {

namespace detail {

struct YieldAwaiter {
  using native_awaiter = void;
  static constexpr bool await_ready() noexcept { return false; }
  static void await_suspend(Continuation waiter) noexcept { waiter.wake(); }
  static constexpr void await_resume() noexcept {}
  static void await_introspect(auto& tree) noexcept { tree.node("yield"); }
};

struct SuspendForeverAwaiter {
  using native_awaiter = void;
  using cancels_at_once = void;
  static constexpr bool await_ready() noexcept { return false; }
  static constexpr void await_suspend(Continuation) noexcept {}
  static constexpr void await_resume() noexcept {}
  static constexpr std::true_type await_cancel(Continuation) noexcept { return {}; }
  static void await_introspect(auto& tree) noexcept { tree.node("suspend_forever"); }
};

template <class T>
class JustAwaiter {
 public:
  using native_awaiter = void;
  explicit JustAwaiter(T&& value) : value_(std::forward<T>(value)) {}
  static constexpr bool await_ready() noexcept { return true; }
  static constexpr void await_suspend(Continuation) noexcept {}
  T await_resume() { return std::forward<T>(value_); }
  static constexpr std::false_type await_early_cancel() noexcept { return {}; }
  static constexpr std::true_type await_must_resume() noexcept { return {}; }

 private:
  T value_;
};

struct NoopAwaiter {
  using native_awaiter = void;
  static constexpr bool await_ready() noexcept { return true; }
  static constexpr void await_suspend(Continuation) noexcept {}
  static constexpr void await_resume() noexcept {}
  static constexpr std::false_type await_early_cancel() noexcept { return {}; }
  static constexpr std::true_type await_must_resume() noexcept { return {}; }
};

template <class Awaiter>
struct Description {
  Awaiter operator co_await() const noexcept { return {}; }
};

template <class T>
class Just {
 public:
  explicit Just(T&& value) : value_(std::forward<T>(value)) {}
  JustAwaiter<T> operator co_await() && { return JustAwaiter<T>(std::forward<T>(value_)); }

 private:
  T value_;
};

// Awaitables that look at the awaiting frame itself. They work in a Task's own co_await only.
class CurrentScope {
 public:
  class Awaiter {
   public:
    explicit Awaiter(Frame& frame) noexcept : frame_(&frame) {}
    static constexpr bool await_ready() noexcept { return true; }
    static constexpr void await_suspend(std::coroutine_handle<>) noexcept {}
    Scope& await_resume() const noexcept { return *frame_; }

   private:
    Frame* frame_;
  };
  static Awaiter await_in_frame(Frame& frame) noexcept { return Awaiter(frame); }
};

// yield() in a Task's own co_await: nothing waits for it, so there is nothing to park on.
class Yield {
 public:
  struct Awaiter {
    static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) const noexcept {
      CancellationRuntime::yield(handle.promise(), where);
    }
    static constexpr void await_resume() noexcept {}
    std::source_location where;
  };
  static Awaiter await_in_frame(Frame&, std::source_location at) noexcept { return {at}; }
  YieldAwaiter operator co_await() const noexcept { return {}; }
};

class FinishIfCancelled {
 public:
  class Awaiter {
   public:
    explicit Awaiter(Frame& frame) noexcept : frame_(&frame) {}
    [[nodiscard]] bool await_ready() const noexcept {
      return !frame_->strand().is_effectively_cancelled();
    }
    void await_suspend(std::coroutine_handle<>) const noexcept {
      CancellationRuntime::set_unwinding(*frame_);
    }
    static constexpr void await_resume() noexcept {}

   private:
    Frame* frame_;
  };
  static Awaiter await_in_frame(Frame& frame) noexcept { return Awaiter(frame); }
};

}  // namespace detail

// While it lives, its frame and what that awaits are not cancelled: the request waits. Immovable;
// guards nest.
class [[nodiscard]] CancellationGuard {
 public:
  CancellationGuard(const CancellationGuard&) = delete;
  CancellationGuard& operator=(const CancellationGuard&) = delete;
  ~CancellationGuard() { CancellationRuntime::leave_ignore(*frame_); }

 private:
  friend class IgnoreCancellation;
  explicit CancellationGuard(detail::Frame& frame) noexcept : frame_(&frame) {}
  detail::Frame* frame_;
};

class IgnoreCancellation {
 public:
  class Awaiter {
   public:
    explicit Awaiter(detail::Frame& frame) noexcept : frame_(&frame) {}
    [[nodiscard]] bool await_ready() const noexcept {
      return CancellationRuntime::enter_ignore(*frame_);
    }
    void await_suspend(std::coroutine_handle<>) const noexcept {
      CancellationRuntime::set_unwinding(*frame_);
    }
    CancellationGuard await_resume() const noexcept { return CancellationGuard(*frame_); }

   private:
    detail::Frame* frame_;
  };
  static Awaiter await_in_frame(detail::Frame& frame) noexcept { return Awaiter(frame); }
};

[[nodiscard]] inline auto yield() noexcept { return detail::Yield(); }
[[nodiscard]] inline auto suspend_forever() noexcept {
  return detail::Description<detail::SuspendForeverAwaiter>();
}
[[nodiscard]] inline auto noop() noexcept { return detail::Description<detail::NoopAwaiter>(); }
template <class T>
[[nodiscard]] auto just(T&& value) {
  return detail::Just<std::remove_cvref_t<T>>(std::remove_cvref_t<T>(std::forward<T>(value)));
}
template <class T>
[[nodiscard]] auto make_awaiter(T&& value) {
  return just(std::forward<T>(value));
}
[[nodiscard]] inline auto current_scope() noexcept { return detail::CurrentScope(); }
[[nodiscard]] inline auto ignore_cancellation() noexcept { return IgnoreCancellation(); }
[[nodiscard]] inline auto finish_if_cancelled() noexcept { return detail::FinishIfCancelled(); }

}  // namespace weft::inline v0
