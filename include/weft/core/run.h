// SPDX-License-Identifier: MIT
#pragma once
// weft::run(loop, awaitable): drives an event loop until the awaitable has ended, and returns its
// result.
//
// Any loop will do. weft's own derive from Loop; for another, specialise EventLoopTraits<L>:
//
//     template <> struct weft::EventLoopTraits<QApplication> {
//       static void run(QApplication& app) { app.exec(); }
//       static void stop(QApplication& app) { app.exit(); }
//       static bool is_running(QApplication&) noexcept { return false; }
//       static EventLoopID event_loop_id(QApplication& app) { return EventLoopID(&app); }
//       // optional, and what makes it a full home: post() is called on any thread
//       static void post(QApplication&, void (*fn)(void*), void* context);
//       static void call_at(QApplication&, steady_clock::time_point, void (*fn)(void*), void*);
//     };
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

// A loop of weft's kind: an Executor that knows how to wait.
class Loop : public Executor {
 public:
  // Runs turns until `done` is set, on this thread.
  virtual void drive(const bool& done) = 0;

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

// The root of a run(): started here, and waited for by the loop itself.
struct RootWaiter : JoinWaiter {
  explicit RootWaiter(Loop& of) noexcept : JoinWaiter(&on_done) {
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
  loop.drive(root.done);
  return detail::take_value<T>(*root.strand);
}

template <class A>
  requires Awaitable<A>
AwaitResult<A> run(Loop& loop, A&& awaitable) {
  return run(loop, detail::as_task<A>(std::forward<A>(awaitable)));
}

}  // namespace weft::inline v0
