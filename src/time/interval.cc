// SPDX-License-Identifier: MIT
#include "weft/time/interval.h"

#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0 {

namespace {
Interval::Duration positive(Interval::Duration period) {
  if (period <= Interval::Duration::zero()) {
    detail::throw_usage_error("an Interval's period must be positive");
  }
  return period;
}
// A time too far away to be written is the last one.
TimePoint plus(TimePoint from, Interval::Duration by) {
  return by > TimePoint::max() - from ? TimePoint::max() : from + by;
}
}  // namespace

Interval::Interval(Duration period, MissedTicks missed)
    : period_(positive(period)), missed_(missed) {}

Interval::~Interval() {
  WEFT_ASSERT(!waiting_, "an Interval outlives the tick() that waits for it");
}

void Interval::restart(Duration period) {
  period_ = positive(period);
  stopped_ = false;
  started_ = true;
  last_ = now();
  due_ = plus(last_, period_);
  rearm();
}

void Interval::adjust(Duration period) {
  period_ = positive(period);
  if (!started_ || stopped_) return;
  due_ = plus(last_, period_);
  rearm();
}

void Interval::stop() noexcept {
  stopped_ = true;
  // If the alarm has fired already, the waiter is on its way and will see stopped_.
  if (!waiting_ || !waiting_->alarm_.disarm()) return;
  waiting_->stopped_ = true;  // whatever restart() does before the waiter runs
  std::exchange(waiting_, nullptr)->waiter_.wake();
}

void Interval::rearm() {
  ++round_;
  if (!waiting_ || !waiting_->alarm_.disarm()) return;
  waiting_->round_ = round_;
  waiting_->alarm_.arm(due_, waiting_->waiter_);
}

void Interval::hand_out() noexcept {
  last_ = due_;
  due_ = plus(due_, period_);
  if (missed_ == MissedTicks::burst) return;
  TimePoint here = now();
  if (due_ > here) return;
  if (missed_ == MissedTicks::delay) {
    last_ = here;
    due_ = plus(here, period_);
  } else {
    auto behind = (here - due_) / period_ + 1;
    due_ += behind * period_;
    last_ = due_ - period_;
  }
}

void Interval::Tick::await_suspend(detail::Continuation waiter) {
  if (interval_.waiting_) {
    detail::throw_usage_error("one waiter at a time: another task awaits this Interval's tick()");
  }
  if (!interval_.started_) interval_.restart();
  waiter_ = waiter;
  round_ = interval_.round_;
  alarm_.arm(interval_.due_, waiter);
  interval_.waiting_ = this;
}

bool Interval::Tick::await_resume() noexcept {
  if (interval_.waiting_ == this) interval_.waiting_ = nullptr;
  if (stopped_ || interval_.stopped_) return false;
  if (round_ == interval_.round_) interval_.hand_out();  // I3
  return true;
}

bool Interval::Tick::await_cancel(detail::Continuation) noexcept {
  if (interval_.waiting_ == this) interval_.waiting_ = nullptr;
  return alarm_.disarm();
}

}  // namespace weft::inline v0
