// SPDX-License-Identifier: MIT
#include "weft/time/sleep.h"

#include <utility>

namespace weft::inline v0 {

TimePoint LoopClock::now() {
  return TimePoint(std::chrono::nanoseconds(Executor::current("now()").now_ns()));
}

namespace detail {

TimePoint after(std::chrono::nanoseconds duration) {
  TimePoint start = LoopClock::now();
  if (duration > TimePoint::max() - start) return TimePoint::max();
  return start + duration;
}

void Alarm::arm(TimePoint deadline, Continuation waiter) {
  Executor& executor = Executor::current("a timer");
  waiter_ = waiter;
  executor.arm_timer(*this, deadline.time_since_epoch().count());
  executor_ = &executor;
}

bool Alarm::disarm() noexcept {
  if (!executor_) return false;
  std::exchange(executor_, nullptr)->disarm_timer(*this);
  return true;
}

void Alarm::fired(TimerNode& node) noexcept {
  auto& self = static_cast<Alarm&>(node);
  self.executor_ = nullptr;
  self.waiter_.wake();
}

}  // namespace detail

}  // namespace weft::inline v0
