// SPDX-License-Identifier: MIT
#pragma once
// weft::testing::ThreadLoop: a plain loop in real time, and LoopThread: one that runs on a thread
// of its own.
//
//     ThreadLoop loop;
//     run(loop, my_task());                       // on this thread
//
//     LoopThread other;                           // on another, until it is destroyed
//     other.lease().start(task());                // from any thread
//     co_await on(other.executor(), task());      // from a task of another loop
//
// For tests across threads and for benchmarks of the core. It has timers and no I/O; services use
// IOContext.
//
// Threads        as Executor. LoopThread: every member, any thread; destroy it from outside of it.
#include <cstdint>
#include <thread>

#include "weft/core/nursery.h"
#include "weft/core/run.h"
#include "weft/time/timer_wheel.h"

namespace weft::inline v0::testing {

class ThreadLoop final : public Loop {
 public:
  ThreadLoop();
  // Cancels the guests that were sent to it since its last run(), and waits for them.
  ~ThreadLoop() override;

  void drive(detail::RootWaiter& root) override;
  [[nodiscard]] std::int64_t now_ns() const override;
  void arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) override;
  void disarm_timer(detail::TimerNode& timer) noexcept override;

 private:
  template <class Over>
  void step(Over over);
  void sleep();

  detail::TimerWheel timers_;
};

class LoopThread {
 public:
  // UsageError, here and not over there, if there are kLoopsMax loops.
  LoopThread();
  // Cancels what still runs there, guests included, and waits for it.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // The right to start tasks there, in the loop's root nursery. An error of such a task stops the
  // others, and is logged.
  [[nodiscard]] PromiseChildLease lease() const { return root_; }
  [[nodiscard]] Executor& executor() noexcept { return loop_; }
  // As the destructor, without waiting: the loop takes no more tasks, and ends those that it has.
  // The thread ends when all leases are gone, this object's own included.
  void stop() noexcept { loop_.stop(); }

 private:
  ThreadLoop loop_;
  PromiseChildLease root_;
  std::thread thread_;
};

}  // namespace weft::inline v0::testing
