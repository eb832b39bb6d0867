// SPDX-License-Identifier: MIT
#pragma once
// One turn of an EventLoop, for its drivers: run() of a single loop, and the workers of an IOContext.
#include <cstdint>
#include <optional>

#include "weft/atomic/pause.h"
#include "weft/io/platform_io.h"
#include "weft/run/event_loop.h"
#include "worker.h"

namespace weft::inline v0 {

// ... and a sleep, unless there is something to do or it is all over.
template <class Over>
void EventLoop::step(Over over) {
  ++turns_;
  interleave(timers_.size() > 0 || io_->pending() > 0);
  if (worker_) {
    // Fresh tasks that end at once, one after the other, need no more than this between them.
    for (int fresh = 0; worker_->take_own() && fresh < kFreshInARow; ++fresh) turn();
  }
  turn();
  if (worker_) worker_->count_ended();
  if (timers_.size() > 0) timers_.fire_due(now_ns(), kTimersPerTurn);
  // However busy it is, and with whatever: posts that come while it spins are no reason to forget the
  // kernel.
  if (poll_is_due()) poll_now();
  if (has_ready()) {
    if (worker_) worker_->is_busy();
    return;
  }
  if (over()) return;
  if (worker_) {
    worker_->idle();
  } else if (!spin([] { return false; })) {
    wait();
  }
}

template <class Look>
bool EventLoop::spin(Look look) {
  if (spin_ns_ == 0) return false;
  constexpr int kLooksPerClock = 32;
  // A timer that is due soon is not to wait for that.
  std::int64_t now = now_ns();
  std::int64_t until = now + spin_ns_;
  if (std::optional<std::int64_t> deadline = timers_.next_deadline()) {
    if (*deadline <= until) return false;
  }
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (port().inbox.has_entries()) {
        ++spins_;
        missed_ = false;
        return true;
      }
      detail::pause_processor();
    }
    if (look()) return true;
  } while (now_ns() < until);
  return false;
}

}  // namespace weft::inline v0
