// SPDX-License-Identifier: MIT
#pragma once
// weft::run(loop, awaitable): drives an event loop until the awaitable has ended, and returns its
// result.
//
// The loop is one of weft's (it derives from Loop), or any other with EventLoopTraits: see
// core/event_loop.h.
//
// Threads        the thread that calls run() drives the loop until run() returns.
// Errors         the awaitable's own; TaskCancelled if it ended cancelled; UsageError for a run()
//                inside a run() of the same loop. A run() of another loop inside is allowed: it
//                blocks the outer one.
#include <type_traits>
#include <utility>

#include "weft/core/started_task.h"
#include "weft/core/task.h"

namespace weft::inline v0 {

namespace detail {

// The root of a run(): the loop itself waits for it.
struct RootWaiter : JoinWaiter {
  explicit RootWaiter(Executor& of) noexcept : JoinWaiter(&on_done) {
    takes_strand = true;
    home = of.home();
  }
  RootWaiter(const RootWaiter&) = delete;
  RootWaiter& operator=(const RootWaiter&) = delete;
  ~RootWaiter() {
    if (strand) CancellationRuntime::drop_ref(*strand);
  }
  static void on_done(Runnable& work) noexcept { static_cast<RootWaiter&>(work).done = true; }

  Strand* strand = nullptr;
  bool done = false;
};

// The tree of a run() that cannot end, and the end of the process: its frames cannot be destroyed.
[[noreturn]] void abandon(RootWaiter& root, const char* why) noexcept;

}  // namespace detail

// A loop of weft's kind: an Executor that knows how to wait.
class Loop : public Executor {
 public:
  // Runs turns, on this thread, until root.done. If that can never be, cancels the root, runs until
  // it has ended, and throws what explains it.
  virtual void drive(detail::RootWaiter& root) = 0;

  [[nodiscard]] bool is_running() const noexcept { return running_; }

 private:
  friend class RunGuard;
  bool running_ = false;
};

// Refuses a second run() of one loop inside the first.
class RunGuard {
 public:
  explicit RunGuard(Loop& loop);
  ~RunGuard() { loop_.running_ = false; }
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

 private:
  Loop& loop_;
};

namespace detail {

template <class A>
Task<AwaitResult<A>> as_task(A awaitable) {
  co_return co_await std::forward<A>(awaitable);
}

}  // namespace detail

template <class T>
T run(Loop& loop, Task<T> task) {
  RunGuard guard(loop);
  detail::DrivingScope driving(loop);
  detail::RootWaiter root(loop);
  root.strand =
      &CancellationRuntime::start_here(*task.release_for_await(), nullptr, {.waiter = &root});
  loop.drive(root);
  return detail::take_value<T>(*root.strand);
}

template <class A>
  requires Awaitable<A>
AwaitResult<A> run(Loop& loop, A&& awaitable) {
  return run(loop, detail::as_task<A>(std::forward<A>(awaitable)));
}

}  // namespace weft::inline v0
