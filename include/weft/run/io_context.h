// SPDX-License-Identifier: MIT
#pragma once
// weft::IOContext: event loops on many threads, and the tasks that they share out among themselves.
//
//     IOContext ctx{{.workers = 4}};
//     ctx.schedule(serve());                      // any thread; some worker starts it
//     ctx.run(main_task());                       // this thread is worker 0 until all has ended
//
// Each worker is an EventLoop. A task that is scheduled waits in a queue, from which its worker, or
// an idle one, takes it; from then on that worker's loop is its home, and it stays there (L1).
// Children that it starts live with it; Nursery::schedule() gives children to any worker, and
// start_on(), on() and resume_on() to a certain one (ctx.loop(i)).
//
// The end        run(main) returns when main, and every task that was scheduled, have ended: a task
//                that should not be waited for is to be cancelled, or stop() called. If main throws,
//                the others are cancelled first. run() without a task returns after stop().
//                stop() cancels everything, and run() returns when everything has gone (L12). It may
//                be called before run(), from any thread, from a task and from a signal handler. A
//                run(Task<void>) whose task was cancelled by it returns; one with a value to return
//                throws TaskCancelled. After that the context can be run again.
// Errors         of a task that was scheduled: to on_error, and the others go on; without one, the
//                context stops, and run() throws the first of them. run() inside of one of the
//                context's own tasks: UsageError.
// Threads        schedule(), stop(), loop(): any thread. run(): one at a time.
// Signals        worker threads have all signals blocked; the thread that calls run() has them as
//                it was. Ctrl-C is graceful: while run() runs, SIGINT and SIGTERM call stop(), and a
//                SIGINT after that kills. Not where they have a handler or are ignored, nor while a
//                SignalSet has them (run/signals.h). What was in force is so again after run().
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/core/frame_pool.h"
#include "weft/core/nursery.h"
#include "weft/io/blocking.h"
#include "weft/io/driver.h"
#include "weft/run/event_loop.h"
#include "weft/time/sleep.h"

namespace weft::inline v0 {

struct IOContextOptions {
  unsigned workers = 0;  // 0: one per processor that this process may use
  Driver driver = Driver::automatic;
  bool pin_threads = false;  // worker i to the i-th of those processors
  // An error of a scheduled task. Called on the worker's thread, outside of any task.
  std::function<void(std::exception_ptr)> on_error = {};
  std::chrono::nanoseconds spin = EventLoopOptions().spin;  // as EventLoop's
  BlockingPool::Options blocking = {};
  // A stop() that takes longer than this is logged, with the tasks that are left.
  std::chrono::nanoseconds shutdown_warn = std::chrono::seconds(10);
  bool stop_on_signals = true;  // SIGINT and SIGTERM: see Signals
};

class IOContext {
 public:
  static constexpr unsigned kWorkersMax = 512;
  static constexpr std::size_t kQueueDepthCounted = 1024;  // statistics count no further

  IOContext() : IOContext(IOContextOptions()) {}
  explicit IOContext(IOContextOptions options);
  // Requires: it does not run. What was scheduled and never ran is destroyed.
  ~IOContext();
  IOContext(const IOContext&) = delete;
  IOContext& operator=(const IOContext&) = delete;

  // The context that the current loop is a worker of.
  [[nodiscard]] static IOContext* current_or_null() noexcept;

  // --- Tasks --------------------------------------------------------------------------------------

  // Before run(), and after: it waits for the next run().
  void schedule(Task<void> task);
  // A function that returns a Task (or any awaitable), and its arguments, by value: all are kept
  // until it has ended. Its result is dropped.
  template <class Fn, class... Args>
  void schedule(Fn&& fn, Args&&... args);

  // The right to start tasks on worker 0, from any thread: children of the context's own scope.
  // run() does not return before it is dropped. UsageError while the context does not run.
  [[nodiscard]] PromiseChildLease lease();

  [[nodiscard]] std::size_t workers() const noexcept;
  [[nodiscard]] EventLoop& loop(std::size_t worker);

  template <class Rep, class Period>
  [[nodiscard]] auto sleep_for(std::chrono::duration<Rep, Period> duration) {
    return weft::sleep_for(duration);
  }

  // --- Running ------------------------------------------------------------------------------------

  void run();
  template <class T>
  T run(Task<T> main);
  template <class A>
    requires Awaitable<A>
  AwaitResult<A> run(A&& awaitable) {
    return run(detail::as_task<A>(std::forward<A>(awaitable)));
  }
  void stop() noexcept;
  [[nodiscard]] bool is_running() const noexcept;

  // --- Looking at it ------------------------------------------------------------------------------

  struct WorkerStatistics {
    EventLoopStatistics loop;
    std::uint64_t tasks_run = 0;     // scheduled tasks that began here
    std::uint64_t tasks_stolen = 0;  // taken from other workers, who may take them back
    std::size_t queue_depth = 0;     // fresh tasks in its queue
    FrameStats frames;               // of its thread
  };
  // Of the workers, by number; each is asked on its own loop. Await it in a task of the context.
  [[nodiscard]] Task<std::vector<WorkerStatistics>> statistics();
  // All tasks, worker by worker, as text.
  [[nodiscard]] Task<std::string> task_tree();

 private:
  friend class detail::Worker;
  friend class EventLoop;
  class Impl;

  // Runs a strand-to-be on worker 0, and everything else, until all has ended.
  void run_root(detail::Frame& main, detail::RootWaiter& root);
  [[nodiscard]] Loop& first_loop();
  // After run_root(): throws what a scheduled task has thrown. Returns: true if main was cancelled by
  // stop().
  bool finish_run(detail::RootWaiter& root);

  std::unique_ptr<Impl> impl_;
};

template <class Fn, class... Args>
void IOContext::schedule(Fn&& fn, Args&&... args) {
  static_assert(
      detail::ReturnsAwaitable<std::decay_t<Fn>&, std::decay_t<Args>...>,
      "weft: schedule() takes a Task, or a function that returns one. A plain function or "
      "lambda has no frame that could wait, be cancelled or be joined: make it a coroutine, "
      "or loop.post() it");
  schedule(detail::run_callable<std::decay_t<Fn>, std::decay_t<Args>...>(
      std::forward<Fn>(fn), std::forward<Args>(args)...));
}

template <class T>
T IOContext::run(Task<T> main) {
  detail::RootWaiter root(first_loop());
  run_root(*main.release_for_await(), root);
  bool stopped = finish_run(root);
  if constexpr (std::is_void_v<T>) {
    if (stopped) return;
  }
  return detail::take_value<T>(*root.strand);
}

}  // namespace weft::inline v0
