// SPDX-License-Identifier: MIT
#include "weft/testing/thread_loop.h"

#include <chrono>
#include <exception>
#include <future>
#include <optional>

#include "weft/core/primitives.h"

namespace weft::inline v0::testing {

namespace {
using Clock = std::chrono::steady_clock;
std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}
}  // namespace

ThreadLoop::ThreadLoop() : timers_(clock_ns()) {}

std::int64_t ThreadLoop::now_ns() const { return clock_ns(); }
void ThreadLoop::arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) {
  timers_.arm(timer, deadline_ns);
  interleave(true);
}
void ThreadLoop::disarm_timer(detail::TimerNode& timer) noexcept { timers_.disarm(timer); }

void ThreadLoop::drive(detail::RootWaiter& root) {
  const bool& done = root.done;
  detail::DrivingScope driving(*this);
  // L12: not before its last strand is gone, husks that wait for a kick under way included.
  auto over = [&] { return done && strand_count() == 0; };
  while (!over()) {
    interleave(timers_.size() > 0);
    bool more = turn();
    if (timers_.size() > 0) timers_.fire_due(clock_ns(), kTurnBudget);
    if (!more && !over() && !has_ready()) sleep();
  }
}

void ThreadLoop::sleep() {
  detail::LoopPort& port = this->port();
  std::optional<std::int64_t> deadline = timers_.next_deadline();
  std::unique_lock lock(port.mutex);
  port.woken = false;
  if (!port.inbox.try_sleep()) return;
  auto woken = [&] { return port.woken; };
  if (deadline) {
    port.wake_up.wait_until(lock, Clock::time_point(std::chrono::nanoseconds(*deadline)), woken);
  } else {
    port.wake_up.wait(lock, woken);
  }
}

namespace {

struct Opened {
  ThreadLoop* loop = nullptr;
  PromiseChildLease root;
};

// Opens the root nursery, hands out the first lease and waits to be cancelled.
Task<void> host(ThreadLoop& loop, std::optional<std::promise<Opened>>& opened) {
  auto body = [&](Nursery& root) -> Task<NurseryEnd> {
    opened->set_value(Opened{.loop = &loop, .root = root.lease()});
    opened.reset();
    co_return join;  // the lease keeps it open
  };
  co_await with_nursery(body);
}

// The thread's own: what goes wrong before the loop is open belongs to whoever waits for it.
void drive_thread(std::optional<std::promise<Opened>> opened) {
  try {
    ThreadLoop loop;
    run(loop, host(loop, opened));
  } catch (const TaskCancelled&) {
  } catch (...) {
    if (opened) {
      opened->set_exception(std::current_exception());
    } else {
      detail::report_unread_error(detail::CaughtError::current());
    }
  }
}

}  // namespace

LoopThread::LoopThread() {
  std::promise<Opened> promise;
  std::future<Opened> future = promise.get_future();
  thread_ = std::thread(&drive_thread, std::move(promise));
  try {
    Opened opened = future.get();
    loop_ = opened.loop;
    root_ = std::move(opened.root);
  } catch (...) {
    thread_.join();
    throw;
  }
}

LoopThread::~LoopThread() {
  root_.cancel(reasons::loop_stopped);
  root_.reset();
  thread_.join();
}

}  // namespace weft::inline v0::testing
