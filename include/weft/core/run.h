// SPDX-License-Identifier: MIT
#pragma once
// weft::run(loop, awaitable): drives an event loop until the awaitable has ended, and returns its
// result.
//
// The loop is one of weft's (it derives from Loop), or any other with EventLoopTraits: see
// core/event_loop.h.
//
// A loop may have guests: tasks of other loops' trees that were sent there (core/moving.h). run()
// returns when its own task and all guests are gone; stop() asks them to go.
//
// Threads        the thread that calls run() drives the loop until run() returns. stop(): any
//                thread.
// Errors         the awaitable's own; TaskCancelled if it ended cancelled; UsageError for a run()
//                inside a run() of the same loop. A run() of another loop inside is allowed: it
//                blocks the outer one. (Not so VirtualLoops of one world, which step together:
//                there the outer one's other tasks go on, which is an exception to L2.)
#include <mutex>
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
  // Runs turns, on this thread, until root.done and the loop has no strands. If that can never be,
  // cancels the root and all guests, runs until they have ended, and throws what explains it.
  virtual void drive(detail::RootWaiter& root) = 0;

  [[nodiscard]] bool is_running() const noexcept { return running_; }

  // Any thread. Cancels, with reasons::loop_stopped, the task of run() and all guests, those under
  // way included; from now on the loop takes no others (LoopStopped; start_immediate: cancelled from
  // its start). run() returns when they are gone, and the loop is closed until the next run(), but
  // for a VirtualLoop, which its siblings go on driving. Before a run(), or between two: the next
  // one is stopped from its start. (A worker of an IOContext stops with all others.)
  virtual void stop() noexcept;

 protected:
  explicit Loop(bool takes_posts = true) : Executor(takes_posts), stop_request_(*this) {}
  ~Loop() override = default;

  // Ends a run(), if no strand is left: closes the loop, so that what comes too late is told so.
  // Returns: false if there are strands here or under way.
  [[nodiscard]] bool try_close() noexcept;
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }
  // What stop() has the loop do. Home loop.
  void cancel_all() noexcept;

 private:
  friend class RunGuard;

  struct StopRequest : Runnable {
    explicit StopRequest(Loop& of) noexcept : Runnable(&arrived), loop(&of) {}
    static void arrived(Runnable& work) noexcept;
    Loop* loop;
  };

  void open() noexcept;
  // Before a run(): makes what it needs, or throws.
  virtual void prepare() {}

  // Settles stop() against the loop's opening and closing: whether it takes arrivals, whether its
  // inbox is open, and these two change together.
  std::mutex stop_mutex_;
  bool stop_asked_ = false;   // and not yet answered by a run()
  bool stop_posted_ = false;  // stop_request_ is under way
  StopRequest stop_request_;
  detail::RootWaiter* root_ = nullptr;
  bool running_ = false;
  bool closed_ = false;
};

// Refuses a second run() of one loop inside the first.
class RunGuard {
 public:
  explicit RunGuard(Loop& loop);
  ~RunGuard() {
    loop_.running_ = false;
    loop_.root_ = nullptr;
  }
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

  // Why the task of this run() is cancelled from its start, or null.
  [[nodiscard]] const CancelReason* doom() const noexcept;
  void drive(detail::RootWaiter& root) {
    loop_.root_ = &root;
    loop_.drive(root);
  }

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
  root.strand = &CancellationRuntime::start_here(*task.release_for_await(), nullptr,
                                                 {.waiter = &root, .cancelled = guard.doom()});
  guard.drive(root);
  return detail::take_value<T>(*root.strand);
}

template <class A>
  requires Awaitable<A>
AwaitResult<A> run(Loop& loop, A&& awaitable) {
  return run(loop, detail::as_task<A>(std::forward<A>(awaitable)));
}

}  // namespace weft::inline v0
