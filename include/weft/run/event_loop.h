// SPDX-License-Identifier: MIT
#pragma once
// weft::EventLoop: a loop of weft's own, with timers and I/O: the home of tasks on one thread.
//
//     EventLoop loop;
//     int result = run(loop, main_task());       // this thread drives it until the task has ended
//
// For many threads, or for a service, take an IOContext, whose workers are EventLoops.
//
// A turn is: fresh tasks (a worker's), what other threads sent, what is ready, due timers, one look
// at the kernel. Each stage has a budget, so that none starves another. With nothing to do it sleeps
// in the kernel; another thread that sends something wakes it then, once, and not while it is busy.
// Before it sleeps it may spin for a while: only where that has paid off lately, because what it
// waits for comes from another loop and comes soon.
//
// Threads        run(): one thread at a time drives it. post(), stop(), home of tasks: any thread.
// Signals        SIGPIPE, where nobody handles it, is ignored from the first EventLoop on: a broken
//                pipe is an error of the write that met it.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/base/unique_fd.h"
#include "weft/core/run.h"
#include "weft/io/chaos.h"
#include "weft/io/driver.h"
#include "weft/time/timer_wheel.h"

namespace weft::inline v0 {

struct EventLoopOptions {
  Driver driver = Driver::automatic;
  // At most so long it spins before it sleeps; 0: never. Never on a machine with one processor.
  std::chrono::nanoseconds spin = std::chrono::microseconds(50);
};

struct EventLoopStatistics {
  std::uint64_t turns = 0;
  std::uint64_t entries = 0;   // ready entries run
  std::uint64_t sleeps = 0;    // waits in the kernel
  std::uint64_t wakeups = 0;   // times another thread had to wake it
  std::uint64_t spins = 0;     // sleeps that spinning has spared
  std::size_t tasks = 0;       // whose home it is
  std::size_t timers = 0;      // armed
  std::size_t operations = 0;  // with the driver
  std::size_t descriptors = 0;
};

namespace detail {
class Worker;
}

class EventLoop : public Loop {
 public:
  EventLoop() : EventLoop(EventLoopOptions()) {}
  explicit EventLoop(EventLoopOptions options);
  // Cancels the guests that were sent to it since its last run(), and waits for them.
  ~EventLoop() override;

  // The loop that this thread drives now, if it is an EventLoop.
  [[nodiscard]] static EventLoop* current_or_null() noexcept;

  // Never automatic.
  [[nodiscard]] Driver driver() const noexcept { return driver_; }

  // Has the loop call fn() soon, outside of any task. Returns: false if the loop is closed (see
  // Executor::post), and fn was dropped. Allocates; post(Runnable&) does not. fn must not throw.
  using Loop::post;
  template <class Fn>
    requires(std::is_invocable_v<std::decay_t<Fn>&> &&
             !std::is_base_of_v<Runnable, std::decay_t<Fn>>)
  bool post(Fn&& fn);

  // The loop's own thread, or while it does not run.
  [[nodiscard]] EventLoopStatistics statistics() const;

  void stop() noexcept override;

  // Any thread, also a signal handler: has the loop look around, for nothing if there is nothing.
  void wake() const noexcept;

  [[nodiscard]] std::int64_t now_ns() const override;
  [[nodiscard]] std::int64_t coarse_ns() const override;
  void arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) override;
  void disarm_timer(detail::TimerNode& timer) noexcept override;
  void drive(detail::RootWaiter& root) override;

 private:
  friend class IOContext;
  friend class detail::Worker;

  static constexpr std::uint64_t kEntriesPerPoll = 64;  // when busy, the kernel is asked so often,
  static constexpr std::uint64_t kTurnsPerPoll = 64;    // and so often
  static constexpr std::size_t kTimersPerTurn = 1024;
  static constexpr int kFreshInARow = 16;  // fresh tasks between two looks at anything else

  // Makes the driver, on the thread that it is bound to.
  void prepare() override;
  void use(std::unique_ptr<PlatformIO> io) noexcept;
  // A run() is over: from now on nobody drives it.
  void rest() noexcept;
  template <class Over>
  void step(Over over);
  [[nodiscard]] bool poll_is_due() const noexcept;
  void poll_now();
  void wait();
  // Spins, where that has paid off lately, until something comes, or `look` says so. Returns: true if
  // there is something to do.
  template <class Look>
  bool spin(Look look);
  void slept(bool timed, std::int64_t since) noexcept;
  [[nodiscard]] std::int64_t timeout_ns();

  const Driver driver_;
  const std::int64_t spin_max_ns_;
  std::int64_t spin_ns_ = 0;  // what is worth it now
  bool missed_ = false;       // since spinning was worth it, something was not
  bool inbox_woke_ = false;   // the last sleep ended by a post
  detail::Chaos chaos_;
  UniqueFd wake_fd_;
  detail::TimerWheel timers_;
  detail::Worker* worker_ = nullptr;
  std::unique_ptr<PlatformIO> io_;
  std::uint64_t polled_at_ = 0;       // entries_run() then
  std::uint64_t polled_at_turn_ = 0;  // turns_ then
  std::uint64_t turns_ = 0, sleeps_ = 0, spins_ = 0;
  detail::Atomic<std::uint64_t> wakeups_{0};
};

namespace detail {

template <class Fn>
class PostedFunction final : public Runnable {
 public:
  template <class F>
  explicit PostedFunction(F&& fn) : Runnable(&called), fn_(std::forward<F>(fn)) {}

 private:
  static void called(Runnable& work) noexcept {
    std::unique_ptr<PostedFunction> self(static_cast<PostedFunction*>(&work));
    self->fn_();
  }
  Fn fn_;
};

}  // namespace detail

template <class Fn>
  requires(std::is_invocable_v<std::decay_t<Fn>&> && !std::is_base_of_v<Runnable, std::decay_t<Fn>>)
bool EventLoop::post(Fn&& fn) {
  auto posted = std::make_unique<detail::PostedFunction<std::decay_t<Fn>>>(std::forward<Fn>(fn));
  if (!post(static_cast<Runnable&>(*posted))) return false;
  static_cast<void>(posted.release());
  return true;
}

}  // namespace weft::inline v0
