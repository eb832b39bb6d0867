// SPDX-License-Identifier: MIT
#pragma once
// weft::sleep_for, sleep_until: let time pass. On a VirtualLoop it passes at once.
//
// Time is the loop's own clock (Executor::now_ns()); weft::now() reads it.
//
// Cancellation   a cancel point on every call; a cancelled sleep is disarmed at once.
// Resumption     at the deadline or later, on the home loop, in deadline order. A zero or past
//                deadline yields once.
// Allocation     none: the timer lives in the awaiting frame.
#include <chrono>
#include <cstdint>

#include "weft/core/continuation.h"
#include "weft/core/executor.h"

namespace weft::inline v0 {

// A point on a loop's clock.
struct LoopClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<LoopClock, duration>;
  static constexpr bool is_steady = true;
  // The current loop's time. UsageError off any loop.
  static time_point now();
};
using TimePoint = LoopClock::time_point;

[[nodiscard]] inline TimePoint now() { return LoopClock::now(); }

namespace detail {

// now + duration, without overflow: a time too far away to be written is the last one.
[[nodiscard]] TimePoint after(std::chrono::nanoseconds duration);
template <class Rep, class Period>
std::chrono::nanoseconds saturated(std::chrono::duration<Rep, Period> duration) {
  using Seconds = std::chrono::duration<double>;
  constexpr double kMax = 9.2e9;  // seconds that fit into 63 bits of nanoseconds
  double seconds = std::chrono::duration_cast<Seconds>(duration).count();
  if (seconds >= kMax) return std::chrono::nanoseconds::max();
  if (seconds <= 0) return std::chrono::nanoseconds::zero();
  return std::chrono::ceil<std::chrono::nanoseconds>(duration);
}

// A point in time, or so long after the start of the wait: an awaiter may be built long before.
class When {
 public:
  explicit When(TimePoint deadline) noexcept : time_(deadline.time_since_epoch()) {}
  explicit When(std::chrono::nanoseconds duration) noexcept : time_(duration), relative_(true) {}
  // Requires: called when the wait starts.
  [[nodiscard]] TimePoint deadline() const { return relative_ ? after(time_) : TimePoint(time_); }

 private:
  std::chrono::nanoseconds time_;
  bool relative_ = false;
};

// A timer that wakes a continuation. Home loop only.
class Alarm : private TimerNode {
 public:
  Alarm() noexcept { fire = &fired; }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() { disarm(); }

  void arm(TimePoint deadline, Continuation waiter);
  // Returns: true if it was armed: it will not fire.
  bool disarm() noexcept;

 private:
  static void fired(TimerNode& node) noexcept;

  Executor* executor_ = nullptr;  // while armed
  Continuation waiter_;
};

class SleepAwaiter {
 public:
  using native_awaiter = void;
  using cancels_at_once = void;
  explicit SleepAwaiter(When when) noexcept : when_(when) {}

  static constexpr bool await_ready() noexcept { return false; }
  void await_suspend(Continuation waiter) { alarm_.arm(when_.deadline(), waiter); }
  static constexpr void await_resume() noexcept {}
  // A waiter that waits still has an alarm that has not fired.
  std::true_type await_cancel(Continuation) noexcept {
    alarm_.disarm();
    return {};
  }
  static void await_introspect(auto& tree) noexcept { tree.node("sleep"); }

 private:
  When when_;
  Alarm alarm_;
};

class Sleep {
 public:
  explicit Sleep(When when) noexcept : when_(when) {}
  SleepAwaiter operator co_await() const noexcept { return SleepAwaiter(when_); }

 private:
  When when_;
};

}  // namespace detail

// Counted from the start of the wait, not from the call.
template <class Rep, class Period>
[[nodiscard]] auto sleep_for(std::chrono::duration<Rep, Period> duration) {
  return detail::Sleep(detail::When(detail::saturated(duration)));
}
[[nodiscard]] inline auto sleep_until(TimePoint deadline) {
  return detail::Sleep(detail::When(deadline));
}

}  // namespace weft::inline v0
