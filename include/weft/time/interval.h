// SPDX-License-Identifier: MIT
#pragma once
// weft::Interval: ticks at a steady pace. The seed's `periodic`.
//
//     Interval every(100ms);
//     while (co_await every.tick()) poll();          // false after stop()
//
// The n-th tick is due at start + n * period: work between ticks does not make them drift. What
// happens to ticks that were missed meanwhile is up to the policy. restart() and stop() never block
// and never lose the waiter: one that waits hears of them at once.
//
// Threads        the loop that first awaits tick(); one waiter at a time.
// Cancellation   tick() is a cancel point on every call; a cancelled tick is not used up.
// Allocation     none.
//
// Invariants
//   I1  due_ is the next tick that has not been handed out.
//   I2  a waiter is armed for due_, or woken; restart(), adjust() and stop() re-arm or wake it.
//   I3  a tick that had fired when restart() or adjust() came is delivered and does not count
//       towards the new round.
#include <chrono>
#include <cstdint>
#include <functional>

#include "weft/core/continuation.h"
#include "weft/core/make_awaitable.h"
#include "weft/time/sleep.h"

namespace weft::inline v0 {

enum class MissedTicks {
  burst,  // each one follows at once until the count is right again
  delay,  // the next comes a full period after the late one
  skip,   // the next comes at the next multiple of the period
};

class Interval {
 public:
  using Duration = std::chrono::nanoseconds;

  // UsageError if the period is not positive.
  explicit Interval(Duration period, MissedTicks missed = MissedTicks::burst);
  Interval(const Interval&) = delete;
  Interval& operator=(const Interval&) = delete;
  // Requires: nobody waits for a tick.
  ~Interval();

  class Tick;
  // Waits for the next tick. Returns: true; false if stopped. The first one is due a period after the
  // first tick() or restart().
  [[nodiscard]] AwaiterDescription<Tick, Interval&> tick() noexcept;

  // Begins anew: the next tick is due `period` from now.
  void restart(Duration period);
  void restart() { restart(period_); }
  // Changes the period; the next tick is due that long after the last one.
  void adjust(Duration period);
  // Every tick() from now on, and the one that waits, returns false. restart() undoes it.
  void stop() noexcept;

  [[nodiscard]] Duration period() const noexcept { return period_; }

 private:
  void hand_out() noexcept;
  void rearm();

  Duration period_;
  MissedTicks missed_;
  bool started_ = false;
  bool stopped_ = false;
  std::uint32_t round_ = 0;  // counts restart() and adjust()
  TimePoint last_;
  TimePoint due_;
  Tick* waiting_ = nullptr;
};

class Interval::Tick {
 public:
  using native_awaiter = void;
  explicit Tick(Interval& interval) noexcept : interval_(interval) {}
  Tick(const Tick&) = delete;
  Tick& operator=(const Tick&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return interval_.stopped_; }
  void await_suspend(detail::Continuation waiter);
  bool await_resume() noexcept;
  bool await_cancel(detail::Continuation) noexcept;
  // A tick that came anyway is not used up: nothing is lost by dropping it.
  static constexpr std::false_type await_must_resume() noexcept { return {}; }
  static void await_introspect(auto& tree) noexcept { tree.node("interval"); }

 private:
  friend class Interval;

  Interval& interval_;
  detail::Alarm alarm_;
  detail::Continuation waiter_;
  std::uint32_t round_ = 0;  // what the alarm was armed for
  bool stopped_ = false;     // stop() woke it
};

inline AwaiterDescription<Interval::Tick, Interval&> Interval::tick() noexcept {
  return make_awaitable<Tick>(std::ref(*this));
}

}  // namespace weft::inline v0
