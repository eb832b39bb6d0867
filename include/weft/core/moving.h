// SPDX-License-Identifier: MIT
#pragma once
// weft::on(loop, x), resume_on(loop): work on another event loop. Nursery::start_on is a sibling.
//
//     int n = co_await on(database_loop, query(id));     // runs there, and we go on here
//
//     co_await resume_on(database_loop);                 // from here on this task runs there
//
// Prefer on(). It is structured: what runs there is a task of its own, awaited from here, and its
// end brings you back. resume_on() takes along everything that is on the way: the task itself and
// every task that awaits it in line, up to the one that was started; all of them go on there, and
// what they do next must suit that loop (sockets, mutex guards and scopes belong to one loop each).
// A task that was moved so may go on moving, or simply end: its parent, or whoever awaits it, hears
// of it on their own loop.
//
// `loop` is an Executor: a loop of weft's, or Executor::current_or_null() as some task saw it. It
// must live until on() or resume_on() has begun; a loop that has a task, or is sent one, does not
// end before that task has gone.
//
// Threads        await them in any task, of any loop. The same loop is fine: on() then only makes a
//                task of its own, and resume_on() does nothing.
// Cancellation   on(): as `co_await task`. No cancel point of its own; cancelling the waiter
//                cancels the task there and waits for it. If that ends cancelled unasked (its loop
//                was stopped, for one), its waiter is cancelled with the same reason, or gets
//                TaskCancelled where it is shielded.
//                resume_on(): a cancel point, before the move and after it.
// Errors         both: LoopStopped, if the loop takes no more tasks; UsageError, if one of the two
//                loops cannot be sent anything by others (core/event_loop.h: it needs post).
//                resume_on(): UsageError, while a frame that would move has children or leases,
//                because they belong to this loop; with WEFT_AWAITABLE_STATE_DEBUG also while one
//                has the guard of a Mutex. (Without, that guard's unlock() ends the process.)
// Allocation     on(loop, task): none. on(loop, anything else): one frame for it. resume_on(): none
//                but where children have failed, whose errors travel in one block; and a loop's
//                table of guests grows by doubling.
// Cost           resume_on() looks at every frame that moves.
//
// resume_on() stands alone in a Task's own co_await. In a combinator or wrapper it does not
// compile: a branch is not a task, and cannot go anywhere by itself. Say any_of(on(a, x()), y()).
#include <concepts>
#include <coroutine>
#include <functional>
#include <type_traits>
#include <utility>

#include "weft/core/invoked.h"
#include "weft/core/started_task.h"
#include "weft/core/task.h"

namespace weft::inline v0 {

namespace detail {

// --- resume_on ----------------------------------------------------------------------------------

class ResumeOn {
 public:
  explicit ResumeOn(Executor& loop) noexcept : loop_(&loop) {}

  class Awaiter final : public MoveOrder {
   public:
    Awaiter(Frame& frame, Executor& loop) noexcept
        : MoveOrder(loop.home()), frame_(&frame), loop_(&loop) {}
    [[nodiscard]] bool await_ready() const noexcept {
      return loop_->is_current() && !frame_->strand().is_effectively_cancelled();
    }
    void await_suspend(std::coroutine_handle<>) {
      if (frame_->strand().is_effectively_cancelled()) {
        CancellationRuntime::set_unwinding(*frame_);
      } else {
        CancellationRuntime::order_move(*frame_, *loop_, *this);
      }
    }
    static constexpr void await_resume() noexcept {}

   private:
    Frame* frame_;
    Executor* loop_;
  };
  Awaiter await_in_frame(Frame& frame) const noexcept { return Awaiter(frame, *loop_); }

  // What anyone but a Task gets: something that looks like an awaiter, and says why it is none.
  class Misplaced {
   public:
    using native_awaiter = void;
    static constexpr bool await_ready() noexcept { return false; }
    template <class Waiter>
    void await_suspend(Waiter) {
      static_assert(!std::same_as<Waiter, Waiter>,
                    "weft: resume_on() moves a whole task, so it stands alone in a Task's own "
                    "co_await; as a branch of a combinator or inside a wrapper use on(loop, task)");
    }
    static constexpr void await_resume() noexcept {}
  };
  Misplaced operator co_await() const noexcept { return {}; }

 private:
  Executor* loop_;
};

// --- on -----------------------------------------------------------------------------------------

// As TaskAwaiter, with another first home.
template <class T>
class OnAwaiter final : public JoinAwaiterBase {
 public:
  OnAwaiter(Executor& loop, Frame* frame) noexcept : loop_(&loop), frame_(frame) {}
  ~OnAwaiter() {
    if (frame_) frame_->handle().destroy();
    if (strand_) CancellationRuntime::drop_ref(*strand_);
  }

  static constexpr bool await_ready() noexcept { return false; }
  std::false_type await_early_cancel() noexcept {
    asked_ = true;
    reason_ = &ambient_cancel_reason();
    return {};
  }
  void await_suspend(Continuation waiter) {
    takes_strand = true;
    home = Executor::current("on()").home();
    waiter_ = waiter;  // first: from there it may be asked who waits (detail::needing())
    strand_ = &CancellationRuntime::start_there(*frame_, *loop_, nullptr,
                                                {.waiter = this, .cancelled = reason_}, "on()");
    frame_ = nullptr;
  }
  bool await_cancel(Continuation) noexcept { return cancel_awaited(); }
  T await_resume() { return take_value<T>(*strand_); }
  void await_introspect(auto& tree) noexcept {
    tree.node("on another loop");
    JoinAwaiterBase::await_introspect(tree);
  }

 private:
  Executor* loop_;
  Frame* frame_;
  const CancelReason* reason_ = nullptr;
};

template <class T>
class On {
 public:
  On(Executor& loop, Task<T> task) noexcept : loop_(&loop), task_(std::move(task)) {}
  OnAwaiter<T> operator co_await() && { return OnAwaiter<T>(*loop_, task_.release_for_await()); }

 private:
  Executor* loop_;
  Task<T> task_;
};

// What is no Task becomes one; a callable is called there.
template <class A>
Task<AwaitResult<A>> await_there(A awaitable) {
  co_return co_await std::forward<A>(awaitable);
}
template <class F>
Task<AwaitResult<std::invoke_result_t<F&>>> call_there(F fn) {
  co_return co_await std::invoke(fn);
}

}  // namespace detail

template <class T>
[[nodiscard]] auto on(Executor& loop, Task<T> task) noexcept {
  return detail::On<T>(loop, std::move(task));
}
// Any awaitable, or a callable that returns one; it is kept alive.
template <AwaitableOrCallable A>
  requires(!detail::kIsTask<std::remove_cvref_t<A>>)
[[nodiscard]] auto on(Executor& loop, A&& awaitable) {
  if constexpr (Awaitable<A>) {
    using Kept = detail::AsAwaitable<A>;
    return on(loop, detail::await_there<Kept>(detail::as_awaitable(std::forward<A>(awaitable))));
  } else {
    detail::check_callable<A>();
    return on(loop, detail::call_there<std::decay_t<A>>(std::forward<A>(awaitable)));
  }
}

[[nodiscard]] inline auto resume_on(Executor& loop) noexcept { return detail::ResumeOn(loop); }

}  // namespace weft::inline v0
