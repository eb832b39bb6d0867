// SPDX-License-Identifier: MIT
#include "weft/run/event_loop.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "step.h"
#include "weft/base/assert.h"
#include "weft/base/eventfd.h"
#include "weft/base/steady_clock.h"
#include "weft/core/frame_pool.h"
#include "weft/io/platform_io.h"

namespace weft::inline v0 {

namespace {

constexpr std::int64_t kSpinMinNs = 1'000;  // less is not worth the looking

UniqueFd make_wake_fd() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) throw std::system_error(errno, std::generic_category(), "eventfd");
  return fd;
}

void ignore_broken_pipes() {
  static const bool once = [] {
    struct sigaction now;
    if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
      std::signal(SIGPIPE, SIG_IGN);
    }
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

EventLoop::EventLoop(EventLoopOptions options)
    : driver_(choose_driver(options.driver)),
      spin_max_ns_(std::thread::hardware_concurrency() > 1 ? options.spin.count() : 0),
      wake_fd_(make_wake_fd()),
      timers_(detail::steady_ns()) {
  ignore_broken_pipes();
  if (chaos_.on()) shuffle(chaos_.seed());
  offer({.event_loop = this});
  std::lock_guard lock(port().mutex);
  port().wake_context = this;
  port().wake = [](void* self) noexcept {
    auto& loop = *static_cast<EventLoop*>(self);
    loop.wakeups_.fetch_add(1, detail::relaxed);
    loop.wake();
  };
}

EventLoop::~EventLoop() {
  if (!is_closed() && !try_close()) {
    Loop::stop();
    detail::DrivingScope driving(*this);
    try {
      prepare();
    } catch (...) {
      // Out of descriptors. This one needs none, and is good enough for an end.
      use(make_platform_io(Driver::poll, wake_fd_.get()));
    }
    while (!try_close()) step([&] { return has_no_strands(); });
  }
  if (io_) io_->begin_driving();  // its end is the last that is done with it
  // Whoever posted last may still be about to wake us (P2).
  std::lock_guard lock(port().mutex);
  port().wake = nullptr;
  port().wake_context = nullptr;
}

EventLoop* EventLoop::current_or_null() noexcept {
  Executor* loop = Executor::current_or_null();
  return loop ? loop->services().event_loop : nullptr;
}

void EventLoop::stop() noexcept {
  if (worker_) {
    worker_->context().stop();
  } else {
    Loop::stop();
  }
}

void EventLoop::wake() const noexcept { detail::ring_eventfd(wake_fd_.get()); }

std::int64_t EventLoop::now_ns() const { return detail::steady_ns(); }
std::int64_t EventLoop::coarse_ns() const { return detail::coarse_steady_ns(); }
void EventLoop::arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) {
  timers_.arm(timer, deadline_ns);
  interleave(true);
}
void EventLoop::disarm_timer(detail::TimerNode& timer) noexcept { timers_.disarm(timer); }

EventLoopStatistics EventLoop::statistics() const {
  return {.turns = turns_,
          .entries = entries_run(),
          .sleeps = sleeps_,
          .wakeups = wakeups_.load(detail::relaxed),
          .spins = spins_,
          .tasks = strand_count(),
          .timers = timers_.size(),
          .operations = io_ ? io_->pending() : 0,
          .descriptors = io_ ? io_->entries() : 0};
}

void EventLoop::drive(detail::RootWaiter& root) {
  detail::DrivingScope driving(*this);
  // L12: not before its last strand is gone, husks that wait for a kick under way included.
  while (!root.done || !try_close()) {
    step([&] { return root.done && has_no_strands(); });
  }
  rest();
}

void EventLoop::prepare() {
  if (worker_ && !worker_->is_opening()) {
    detail::throw_usage_error(
        "this loop is a worker of an IOContext, which drives it: use IOContext::run(), or "
        "on(loop, task) inside of it");
  }
  // The kernel is asked, not the thread's id: that of a thread which has ended is given out again.
  // Nothing is under way, so a driver that is another thread's is made anew.
  if (io_) io_->begin_driving();
  if (io_ && !io_->is_usable_here()) io_.reset();
  use(io_ ? std::move(io_) : make_platform_io(driver_, wake_fd_.get()));
}

void EventLoop::use(std::unique_ptr<PlatformIO> io) noexcept {
  io_ = std::move(io);
  LoopServices services = this->services();
  services.io = io_.get();
  offer(services);
}

void EventLoop::rest() noexcept {
  LoopServices services = this->services();
  services.io = nullptr;  // a result with a descriptor in it may die before run() returns
  offer(services);
  io_->end_driving();
}

bool EventLoop::poll_is_due() const noexcept {
  if (io_->pending() == 0 && !io_->has_completions() && !io_->has_closed_elsewhere()) return false;
  return entries_run() - polled_at_ >= kEntriesPerPoll || turns_ - polled_at_turn_ >= kTurnsPerPoll;
}

void EventLoop::poll_now() {
  polled_at_ = entries_run();
  polled_at_turn_ = turns_;
  io_->poll(0);
}

// --- Sleeping -----------------------------------------------------------------------------------

std::int64_t EventLoop::timeout_ns() {
  std::optional<std::int64_t> deadline = timers_.next_deadline();
  if (!deadline) return PlatformIO::kForever;
  return std::max<std::int64_t>(*deadline - detail::steady_ns(), 0);
}

void EventLoop::wait() {
  std::int64_t timeout = timeout_ns();
  if (timeout != 0) {
    chaos_.dawdle();
    if (!port().inbox.try_sleep()) return;
    chaos_.dawdle();
  }
  ++sleeps_;
  polled_at_ = entries_run();
  polled_at_turn_ = turns_;
  flush_foreign_frames();  // their owners may wait for them a long time
  // The clock is asked only where the answer matters: a loop that is woken by I/O does not spin.
  bool timed = inbox_woke_ && spin_max_ns_ > 0;
  std::int64_t since = timed ? detail::steady_ns() : 0;
  io_->poll(timeout);
  slept(timed, since);
  chaos_.dawdle();
}

// A post that came soon after we fell asleep would have been worth spinning for: next time we spin
// twice as long as it took. Anything else makes it less worth, but for the first time: of two things
// that a task waits for in turn, one may be quick and the other one not.
void EventLoop::slept(bool timed, std::int64_t since) noexcept {
  inbox_woke_ = port().inbox.has_entries();
  if (inbox_woke_ && timed) {
    std::int64_t took = detail::steady_ns() - since;
    if (took < spin_max_ns_) {
      spin_ns_ = std::clamp(2 * took, kSpinMinNs, spin_max_ns_);
      missed_ = false;
      return;
    }
  }
  if (!std::exchange(missed_, true)) return;
  spin_ns_ = spin_ns_ / 2 < kSpinMinNs ? 0 : spin_ns_ / 2;
}

}  // namespace weft::inline v0
