// SPDX-License-Identifier: MIT
#include "weft/core/executor.h"

#include <string>
#include <utility>

#include "error_book.h"
#include "this_thread.h"
#include "weft/base/assert.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/frame_abi.h"

namespace weft::inline v0 {

using detail::PostChain;
using detail::PostEntry;
using detail::PostKind;
using detail::Strand;

Executor::Executor() {
  detail::frame_abi_self_test();
  home_ = detail::acquire_port(*this);
  port_ = &detail::port_at(home_);
}

Executor::~Executor() {
  WEFT_ASSERT(strands_ == 0, "L12: a loop ends after every task whose home it is");
  PostChain rest = port().inbox.close();
  while (!rest.empty()) run_entry(rest.pop());
  detail::release_port(home_);
}

Executor* Executor::current_or_null() noexcept { return detail::this_thread().executor; }

Executor& Executor::current(const char* what) {
  if (Executor* executor = current_or_null()) return *executor;
  throw UsageError(std::string(what) +
                   " needs an event loop: call it inside a task that weft::run() drives");
}

bool Executor::post(Runnable& work) noexcept {
  return port().post(PostEntry(work, PostKind::runnable));
}

void Executor::arm_timer(detail::TimerNode&, std::int64_t) {
  detail::throw_usage_error(
      "this event loop has no timers: give its EventLoopTraits a call_at(), or use a loop that has "
      "them");
}

void Executor::disarm_timer(detail::TimerNode&) noexcept {}

bool Executor::turn(std::size_t budget) {
  detail::ThreadState& thread = detail::this_thread();
  if (thread.executor != this || thread.running) {
    detail::DrivingScope driving(*this);
    return turn(budget);
  }
  turn_ns_ = kNotAsked;
  take_inbox();
  if (!kicks_.empty()) run_kicks();
  // What becomes ready during this turn waits for the next one, so that I/O and timers come between
  // (L2).
  if (budget > ready_count_) budget = ready_count_;
  for (; budget > 0 && !ready_.empty(); --budget) {
    run_entry(pop_ready());
    if (!kicks_.empty()) run_kicks();
  }
  return !ready_.empty();
}

void Executor::take_inbox() noexcept {
  PostChain arrived = port().inbox.take_all();
  while (!arrived.empty()) {
    PostEntry entry = arrived.pop();
    switch (entry.kind()) {
      case PostKind::kick:
        kicks_.push(entry);
        break;
      // Bookkeeping only: neither runs a task.
      case PostKind::link:
        CancellationRuntime::child_link_arrived(detail::ParentLink::from_arrival(entry.node()));
        break;
      case PostKind::ended:
        CancellationRuntime::child_ended_elsewhere(Strand::from_link(entry.node()));
        break;
      case PostKind::ready:
      case PostKind::runnable:
        ready_.push(entry);
        ++ready_count_;
        break;
    }
  }
}

void Executor::run_kicks() noexcept {
  detail::ThreadState& thread = detail::this_thread();
  Strand* running = std::exchange(thread.running, nullptr);
  while (!kicks_.empty()) CancellationRuntime::kick(Strand::from_kick(kicks_.pop().node()));
  thread.running = running;
}

void Executor::run_entry(PostEntry entry) {
  ++entries_run_;
  switch (entry.kind()) {
    case PostKind::ready:
      CancellationRuntime::enter(Strand::from_link(entry.node()));
      break;
    case PostKind::runnable: {
      auto& work = static_cast<Runnable&>(entry.node());
      work.run(work);
      break;
    }
    case PostKind::kick:
      CancellationRuntime::kick(Strand::from_kick(entry.node()));
      break;
    default:
      WEFT_ASSERT(false, "the ready ring holds strands and runnables");
  }
}

PostEntry Executor::pop_ready() noexcept {
  unsigned at = 0;
  if (shuffle_ != 0 && ready_count_ > 1) {
    // xorshift64: any state but 0 will do, and a seed names the whole run.
    shuffle_ ^= shuffle_ << 13;
    shuffle_ ^= shuffle_ >> 7;
    shuffle_ ^= shuffle_ << 17;
    std::size_t window = ready_count_ < kShuffleWindow ? ready_count_ : kShuffleWindow;
    at = static_cast<unsigned>(shuffle_ % window);
  }
  --ready_count_;
  return ready_.pop_at(at);
}

PostChain Executor::take_ready() noexcept {
  ready_count_ = 0;
  return std::exchange(ready_, PostChain());
}

void Executor::run_captured(PostChain& outer) {
  while (!ready_.empty() || !kicks_.empty()) {
    run_kicks();
    if (!ready_.empty()) run_entry(pop_ready());
  }
  while (!outer.empty()) {
    ready_.push(outer.pop());
    ++ready_count_;
  }
}

namespace detail {

DrivingScope::DrivingScope(Executor& executor) noexcept {
  ThreadState& thread = this_thread();
  outer_ = std::exchange(thread.executor, &executor);
  outer_running_ = std::exchange(thread.running, nullptr);
}

DrivingScope::~DrivingScope() {
  ThreadState& thread = this_thread();
  thread.executor = outer_;
  thread.running = outer_running_;
}

}  // namespace detail

}  // namespace weft::inline v0
