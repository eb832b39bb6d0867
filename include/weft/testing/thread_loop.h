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

  void drive(detail::RootWaiter& root) override;
  [[nodiscard]] std::int64_t now_ns() const override;
  void arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) override;
  void disarm_timer(detail::TimerNode& timer) noexcept override;

 private:
  void sleep();

  detail::TimerWheel timers_;
};

class LoopThread {
 public:
  // UsageError, here and not over there, if there are kLoopsMax loops.
  LoopThread();
  // Cancels the tasks of its root nursery, and waits for all that have their home there.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // The right to start tasks there, in the loop's root nursery. An error of such a task stops the
  // others, and is logged.
  [[nodiscard]] PromiseChildLease lease() const { return root_; }
  [[nodiscard]] Executor& executor() noexcept { return *loop_; }

 private:
  ThreadLoop* loop_ = nullptr;
  PromiseChildLease root_;
  std::thread thread_;
};

}  // namespace weft::inline v0::testing
