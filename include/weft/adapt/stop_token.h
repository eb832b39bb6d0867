// SPDX-License-Identifier: MIT
#pragma once
// std::stop_token, both ways: weft::with_stop_token() and weft::TaskStopSource.
//
//     auto reply = co_await with_stop_token(token, request());  // the token's owner may stop it
//     if (!reply) co_return;                                    // StopRequested
//
//     TaskStopSource stop(co_await current_scope());            // whoever cancels this task stops
//     std::jthread worker([token = stop.token()] { … });        // what polls, or waits with, it
//
// weft::StopToken (Scope::stop_token()) is the cheaper way for code that only polls and knows weft.
//
// with_stop_token(token, x): x's result, or StopRequested.
//
// When the token is stopped x is cancelled, and the wait ends when x has. If x has a result after
// all, that is delivered: nothing taken is lost. It is not the caller that is cancelled: as with
// timeout(), only the caller's own cancellation does that.
//
// Threads        request_stop(): any thread. It posts one node to the waiter's home, and x is
//                cancelled there (L1).
// Cancellation   passed to x. A token that is stopped already cancels x from its start.
// Resumption     on the waiter's home loop, never inside of request_stop().
// Errors         x's pass through.
// Allocation     none.
//
// TaskStopSource: a std::stop_token that is stopped when a scope is cancelled.
//
// Threads        the object: the scope's home loop; it lives in the task, like any CancelHook. The
//                tokens: any thread; they may outlive it, and are then never stopped.
// Cancellation   request_stop() is called on the home loop, when the kick arrives, never on the
//                canceller's stack; at once, if the scope is cancelled already. So the callbacks of
//                the tokens run there, too, and must not block the loop.
// Allocation     the state that std::stop_source shares with its tokens.
#include <optional>
#include <stop_token>
#include <utility>

#include "weft/base/assert.h"
#include "weft/core/cancel_node.h"
#include "weft/core/executor.h"
#include "weft/core/interruptible.h"
#include "weft/core/invoked.h"

namespace weft::inline v0 {

// The error of a wait whose std::stop_token was stopped.
struct StopRequested {
  friend constexpr bool operator==(StopRequested, StopRequested) noexcept = default;
};

namespace reasons {
inline constexpr CancelReason stop_requested{"its std::stop_token was stopped"};
}  // namespace reasons

namespace detail {

// Invariants
//   S1  the callback exists from the start until x is over; when it is gone, sent_ says whether it
//       posted, and that post is waited for before the waiter is woken: it is a member of ours.
template <class A>
class StopTokenAwaiter final : public Interruptible<A, StopRequested>, private Runnable {
  using Base = Interruptible<A, StopRequested>;

 public:
  StopTokenAwaiter(std::stop_token token, A&& awaitable)
      : Base(std::forward<A>(awaitable)), Runnable(&arrived), token_(std::move(token)) {}

  bool await_suspend(Continuation waiter) {
    this->waiter_ = waiter;
    home_ = Executor::current("with_stop_token()").home();
    bool over = false;
    if (!this->cancelled_ && token_.stop_requested()) {
      over = this->start_interrupted(reasons::stop_requested);
    } else {
      if (!this->cancelled_) callback_.emplace(token_, Post(*this));
      over = this->start();
    }
    if (!over || !settled()) return true;
    return this->gives_up();
  }
  bool await_cancel(Continuation) noexcept {
    if (this->gave_up_) return true;
    this->cancelled_ = true;
    // Where it is not over yet, over() comes, or the post that is waited for.
    return this->branch_.cancel() && settled() && this->end_cancelled();
  }
  void await_introspect(auto& tree) noexcept {
    tree.node(this->interrupted_ ? "with_stop_token, stopped" : "with_stop_token");
    tree.child(this->branch_.awaiter());
  }

 private:
  // What request_stop() calls, on its thread.
  class Post {
   public:
    explicit Post(StopTokenAwaiter& of) noexcept : awaiter_(&of) {}
    void operator()() const noexcept { awaiter_->send(); }

   private:
    StopTokenAwaiter* awaiter_;
  };

  void send() noexcept {
    sent_ = true;
    bool posted = port_at(home_).post(PostEntry(*this, PostKind::runnable));
    WEFT_ASSERT(posted, "L12: a loop does not end while a strand of its waits");
  }
  static void arrived(Runnable& work) noexcept {
    static_cast<StopTokenAwaiter&>(work).post_arrived();
  }
  void post_arrived() noexcept {
    arrived_ = true;
    if (this->branch_.is_running()) {
      if (!this->interrupt(reasons::stop_requested)) return;
      settled();
    }
    this->end();
  }
  void over(BranchBase&) noexcept override {
    if (settled()) this->end();
  }
  // x is over. Returns: false if a post is under way, which will end the wait.
  bool settled() noexcept {
    callback_.reset();  // waits for a callback that runs on another thread: that is one post
    return !sent_ || arrived_;
  }

  std::stop_token token_;
  std::optional<std::stop_callback<Post>> callback_;  // S1
  HomeIndex home_ = 0;
  bool sent_ = false;  // written by the callback; read when that is gone
  bool arrived_ = false;
};

template <class A>
class WithStopToken {
 public:
  WithStopToken(std::stop_token token, A&& awaitable)
      : token_(std::move(token)), awaitable_(std::forward<A>(awaitable)) {}
  StopTokenAwaiter<A> operator co_await() && {
    return StopTokenAwaiter<A>(std::move(token_), std::forward<A>(awaitable_));
  }

 private:
  std::stop_token token_;
  A awaitable_;
};

}  // namespace detail

template <AwaitableOrCallable A>
[[nodiscard]] auto with_stop_token(std::stop_token token, A&& awaitable) {
  return detail::WithStopToken<detail::AsAwaitable<A>>(
      std::move(token), detail::as_awaitable(std::forward<A>(awaitable)));
}

class [[nodiscard]] TaskStopSource final : private CancelNode {
 public:
  explicit TaskStopSource(Scope& scope) { scope.publish_cancel_node(*this); }
  ~TaskStopSource() override { withdraw(); }

  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  void on_cancel() noexcept override { source_.request_stop(); }
  void on_zero_refs() noexcept override {}

  std::stop_source source_;
};

}  // namespace weft::inline v0
