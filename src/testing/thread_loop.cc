// SPDX-License-Identifier: MIT
#include "weft/testing/thread_loop.h"

#include <chrono>
#include <exception>
#include <future>
#include <optional>

#include "weft/base/steady_clock.h"
#include "weft/core/primitives.h"

namespace weft::inline v0::testing {

namespace {
using Clock = std::chrono::steady_clock;
}  // namespace

ThreadLoop::ThreadLoop() : timers_(detail::steady_ns()) {}

std::int64_t ThreadLoop::now_ns() const { return detail::steady_ns(); }
void ThreadLoop::arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) {
  timers_.arm(timer, deadline_ns);
  interleave(true);
}
void ThreadLoop::disarm_timer(detail::TimerNode& timer) noexcept { timers_.disarm(timer); }

// One turn; then a sleep, unless there is something to do or it is all over.
template <class Over>
void ThreadLoop::step(Over over) {
  interleave(timers_.size() > 0);
  bool more = turn();
  if (timers_.size() > 0) timers_.fire_due(detail::steady_ns(), kTurnBudget);
  if (!more && !has_ready() && !over()) sleep();
}

ThreadLoop::~ThreadLoop() {
  if (is_closed()) return;
  stop();
  detail::DrivingScope driving(*this);
  while (!try_close()) step([&] { return has_no_strands(); });
}

void ThreadLoop::drive(detail::RootWaiter& root) {
  detail::DrivingScope driving(*this);
  // L12: not before its last strand is gone, husks that wait for a kick under way included.
  while (!root.done || !try_close()) {
    step([&] { return root.done && has_no_strands(); });
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

// With the root nursery ends the loop.
class StopAtEnd {
 public:
  explicit StopAtEnd(Loop& loop) noexcept : loop_(loop) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() { loop_.stop(); }

 private:
  Loop& loop_;
};

// Opens the root nursery, hands out the first lease and waits to be cancelled.
Task<void> host(ThreadLoop& loop, std::promise<PromiseChildLease>& lease) {
  StopAtEnd stop(loop);
  auto body = [&lease](Nursery& root) -> Task<NurseryEnd> {
    lease.set_value(root.lease());
    co_return join;  // the lease keeps it open
  };
  co_await with_nursery(body);
}

}  // namespace

LoopThread::LoopThread() {
  std::promise<PromiseChildLease> opened;
  std::future<PromiseChildLease> lease = opened.get_future();
  thread_ = std::thread([this, &opened] {
    try {
      run(loop_, host(loop_, opened));
    } catch (const TaskCancelled&) {
    } catch (...) {
      detail::report_unread_error(detail::CaughtError::current());
    }
  });
  root_ = lease.get();
}

LoopThread::~LoopThread() {
  loop_.stop();
  root_.reset();
  thread_.join();
}

}  // namespace weft::inline v0::testing
