// SPDX-License-Identifier: MIT
#include "weft/core/executor.h"

#include <exception>
#include <string>
#include <utility>

#include "enter.h"
#include "error_book.h"
#include "guest_book.h"
#include "weft/base/assert.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/caught_error.h"
#include "weft/core/frame_abi.h"

namespace weft::inline v0 {

using detail::PostChain;
using detail::PostEntry;
using detail::PostKind;
using detail::Strand;

Executor::Executor(bool takes_posts)
    : guests_(std::make_unique<detail::GuestBook>()), takes_posts_(takes_posts) {
  detail::frame_abi_self_test();
  home_ = detail::acquire_port(*this);
  port_ = &detail::port_at(home_);
}

Executor::~Executor() {
  port().arrivals.refuse();
  close_inbox();
  WEFT_ASSERT(strands_ == 0, "L12: a loop ends after every task whose home it is");
#ifdef WEFT_AWAITABLE_STATE_DEBUG
  while (held_locks_.pop_front()) {  // guards that outlive their loop: the lock will say so
  }
#endif
  detail::release_port(home_);
}

void Executor::close_inbox() noexcept {
  detail::DrivingScope driving(*this);
  // What was taken is run: what the last turn had no budget for, and what came after it.
  PostChain rest = port().inbox.close();
  while (!ready_.empty()) run_entry(pop_ready());
  while (!rest.empty()) run_entry(rest.pop());
}

void Executor::cancel_guests(const CancelReason& reason) noexcept {
  guests_->for_each([&](Strand& guest) { CancellationRuntime::cancel(guest, reason); });
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

void Executor::post_soon(detail::HomeIndex home, PostEntry entry) noexcept {
  if (home != soon_home_) flush_posts();
  soon_home_ = home;
  soon_.push(entry);
  if (!in_turn_) flush_posts();
}

void Executor::flush_posts() noexcept {
  if (soon_.empty()) return;
  bool posted = detail::port_at(soon_home_).post(soon_);
  WEFT_ASSERT(posted, "a loop does not end before the children of its scopes");
}

void Executor::arm_timer(detail::TimerNode&, std::int64_t) {
  detail::throw_usage_error(
      "this event loop has no timers: give its EventLoopTraits a call_at(), or use a loop that has "
      "them");
}

void Executor::disarm_timer(detail::TimerNode&) noexcept {}

inline void Executor::run_entry(PostEntry entry) noexcept {
  if (entry.kind() == PostKind::ready) [[likely]]
    return CancellationRuntime::enter(Strand::from_link(entry.node()));
  detail::this_thread().running = nullptr;
  switch (entry.kind()) {
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

// Runs what is ready now: what becomes ready meanwhile waits for the next batch. Returns: what is
// left of the budget.
[[gnu::always_inline]] inline std::size_t Executor::run_batch(std::size_t left) noexcept {
  PostChain batch = std::move(ready_);
  PostEntry next = batch.front();
  for (; next; --left) {
    if (left == 0) [[unlikely]] {
      batch.begin_at(next);
      put_back(batch);
      break;
    }
    PostEntry entry = next;
    next = PostEntry(entry.node().next);
    run_entry(entry);
    if (!kicks_.empty()) [[unlikely]]
      run_kicks();
  }
  detail::this_thread().running = nullptr;
  return left;
}

bool Executor::turn(std::size_t budget) {
  detail::ThreadState& thread = detail::this_thread();
  if (thread.executor != this || thread.running) {
    detail::DrivingScope driving(*this);
    return turn(budget);
  }
  turn_ns_ = coarse_turn_ns_ = kNotAsked;
  in_turn_ = true;
  std::size_t left = budget;
  do {
    if (!port_->inbox.empty()) take_inbox();
    if (!kicks_.empty()) run_kicks();
    left = shuffle_ == 0 ? run_batch(left) : run_shuffled(left);
  } while (left > 0 && !interleave_ && !ready_.empty());
  entries_run_ += budget - left;
  in_turn_ = false;
  flush_posts();
  return !ready_.empty();
}

// A turn in which what becomes ready may overtake what is.
std::size_t Executor::run_shuffled(std::size_t left) noexcept {
  for (std::size_t batch = ready_.count_to(left); batch > 0 && !ready_.empty(); --batch, --left) {
    run_entry(pop_ready());
    if (!kicks_.empty()) run_kicks();
  }
  detail::this_thread().running = nullptr;
  return left;
}

PostEntry Executor::pop_ready() noexcept {
  if (shuffle_ == 0) return ready_.pop();
  // xorshift64: any state but 0 will do, and a seed names the whole run.
  shuffle_ ^= shuffle_ << 13;
  shuffle_ ^= shuffle_ >> 7;
  shuffle_ ^= shuffle_ << 17;
  return ready_.pop_at(shuffle_ % ready_.count_to(kShuffleWindow));
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
      case PostKind::moved:
        CancellationRuntime::arrive(Strand::from_link(entry.node()));
        break;
      case PostKind::moved_with_errors:
        CancellationRuntime::arrive_with_errors(entry.node());
        break;
      case PostKind::ready:
      case PostKind::runnable:
        ready_.push(entry);
        break;
    }
  }
}

void Executor::run_kicks() noexcept {
  detail::this_thread().running = nullptr;
  while (!kicks_.empty()) CancellationRuntime::kick(Strand::from_kick(kicks_.pop().node()));
}

void Executor::run_captured(PostChain& outer) {
  Strand* running = std::exchange(detail::this_thread().running, nullptr);
  Capturing self{running, capturing_};
  capturing_ = &self;
  PostChain later;
  for (take_inbox(); !ready_.empty() || !kicks_.empty(); take_inbox()) {
    run_kicks();
    if (ready_.empty()) continue;
    PostEntry entry = pop_ready();
    if (is_on_the_stack(entry)) {
      later.push(entry);
      continue;
    }
    ++entries_run_;
    run_entry(entry);
  }
  ready_ = std::move(later);
  put_back(outer);
  capturing_ = self.outer;
  detail::this_thread().running = running;
}

// A task that captures while it begins to wait may be made ready by what it captures. It cannot be
// run inside itself.
bool Executor::is_on_the_stack(PostEntry entry) const noexcept {
  if (entry.kind() != PostKind::ready) return false;
  Strand* strand = &Strand::from_link(entry.node());
  for (Capturing* at = capturing_; at; at = at->outer) {
    if (at->strand == strand) return true;
  }
  return false;
}

void Executor::put_back(PostChain& outer) noexcept {
  outer.append(std::exchange(ready_, {}));
  ready_ = std::exchange(outer, {});
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
  if (outer_running_ && std::uncaught_exceptions() > 0) {
    hand_remembered_errors_to(*outer_running_->top);
  }
}

}  // namespace detail

}  // namespace weft::inline v0
