// SPDX-License-Identifier: MIT
#pragma once
// weft::Once: something is done once, by the first that asks; others wait until it is.
//
//     Once connected("connection");
//     auto connect = [&]() -> Task<> { connection = co_await open(address); };
//     co_await connected.call(connect);     // in any number of tasks, on any loop
//
// If the callable throws, its caller gets the exception; if it is cancelled, its caller ends so. In
// both cases it was not done: the task that has waited longest calls its own callable next. A
// callable that calls the same Once waits for itself; the task tree shows it.
//
// Threads        call(): on a loop. is_done(): any thread. Tasks of many loops may share one; the
//                callable runs on the loop of who calls it.
// Cancellation   a call() that waits is unlinked. One whose turn has just come and who has not gone
//                on yet passes it on, and ends cancelled. One that runs the callable cancels that.
// Resumption     on the loop that awaited, through its ready ring.
// Memory order   what the callable did is visible after any call() returns.
// Errors         the callable's own, to its caller. UsageError off any loop.
// Allocation     one frame per call(); waiting adds nothing.
// Cost           when it is done: the frame, one exchange and one store.
#include <functional>
#include <type_traits>
#include <utility>

#include "weft/core/invoked.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/task.h"
#include "weft/core/tree.h"
#include "weft/sync/once_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class Once {
  class Turn;
  class Wait;

 public:
  Once() = default;
  // The name is shown in the task tree and in messages. Requires: it outlives the Once.
  explicit Once(const char* name) noexcept : name_(name) {}
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  // Requires: nobody calls it. Ends the process if somebody does.
  ~Once();

  // fn() returns something to await. It is kept alive until that has ended.
  template <AwaitableCallable F>
  [[nodiscard]] Task<void> call(F&& fn) {
    detail::check_callable<F>();
    return run(std::decay_t<F>(std::forward<F>(fn)));
  }
  [[nodiscard]] bool is_done() noexcept { return core_.is_done(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  template <class F>
  Task<void> run(F fn);

  static void notify(detail::WaitNode* next) noexcept {
    if (next) detail::Waiter::from(*next).notify();
  }
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::OnceCore core_;
  const char* name_ = nullptr;
};

// The right to do it, and the duty to say that it is done; else it goes to the next. Empty if it
// was done.
class Once::Turn {
 public:
  explicit Turn(Once* once) noexcept : once_(once) {}
  Turn(Turn&& other) noexcept : once_(std::exchange(other.once_, nullptr)) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (once_) notify(once_->core_.pass_on());
  }

  explicit operator bool() const noexcept { return once_ != nullptr; }
  void done() noexcept {
    detail::WaitList woken;
    std::exchange(once_, nullptr)->core_.done(woken);
    detail::Waiter::notify_all(woken);
  }

 private:
  Once* once_;
};

class Once::Wait : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "Once::call()";

 protected:
  explicit Wait(Once& once) noexcept : once_(once) {}

  // Looking twice would cost as much as waiting does.
  static constexpr bool take() noexcept { return false; }
  bool take_or_wait() noexcept { return once_.core_.begin_or_wait(*this); }
  detail::Withdrawn withdraw() noexcept {
    const auto [how, next] = once_.core_.withdraw(*this);
    Once::notify(next);
    return how;
  }
  void give_back() noexcept {
    if (amount == detail::OnceCore::kTurn) Once::notify(once_.core_.pass_on());
  }
  Turn result() noexcept { return Turn(amount == detail::OnceCore::kTurn ? &once_ : nullptr); }
  void introspect(TaskTreeCollector& tree) { once_.describe_wait(tree, *this); }

 private:
  Once& once_;
};

// g++ 12 makes a named type of each coroutine's frame, and then finds that a lambda in it has none.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif
template <class F>
Task<void> Once::run(F fn) {
  Turn turn = co_await AwaiterDescription<detail::SyncAwaiter<Wait>, Once&>(*this);
  if (!turn) co_return;
  co_await std::invoke(fn);
  turn.done();
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace weft::inline v0
