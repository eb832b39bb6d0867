// SPDX-License-Identifier: MIT
#include "weft/sync/rate_limiter.h"

#include <algorithm>
#include <limits>
#include <string>

#include "describe.h"
#include "weft/base/assert.h"

namespace weft::inline v0 {

namespace {

std::string called(const char* name) { return detail::thing_name("RateLimiter", name); }

RateLimiter::Rate checked(RateLimiter::Rate rate, const char* name) {
  const std::int64_t interval = rate.interval.count();
  if (rate.tokens == 0 || rate.burst == 0 || interval <= 0)
    throw UsageError(called(name) + ": tokens, interval and burst must be positive");
  if (rate.burst > std::numeric_limits<std::int64_t>::max() / interval)
    throw UsageError(called(name) + ": its burst times its interval in nanoseconds is too large");
  return rate;
}

}  // namespace

RateLimiter::RateLimiter(Rate rate, const char* name)
    : tokens_(checked(rate, name).tokens),
      interval_ns_(rate.interval.count()),
      credit_max_(rate.burst * interval_ns_),
      burst_(rate.burst),
      name_(name),
      credit_(credit_max_) {
  fire = &due;
}

RateLimiter::~RateLimiter() {
  if (!waiters_.empty()) [[unlikely]]
    detail::abort_awaited({"RateLimiter", name_});
}

bool RateLimiter::try_acquire(Count count) {
  require_possible(count);
  require_loop();
  refill();
  return waiters_.empty() && take(count);
}

RateLimiter::Count RateLimiter::available() {
  require_loop();
  refill();
  return static_cast<Count>(credit_ / interval_ns_);
}

void RateLimiter::require_possible(Count count) const {
  if (count >= 1 && count <= burst_) [[likely]]
    return;
  throw UsageError("acquire(" + std::to_string(count) + ") of " + called(name_) + ": from 1 to " +
                   std::to_string(burst_) + ", its burst, is possible");
}

void RateLimiter::require_loop() {
  Executor& here = Executor::current("RateLimiter");
  if (loop_ == nullptr) {
    loop_ = &here;
    last_ns_ = here.now_ns();
  }
  if (loop_ != &here) [[unlikely]]
    throw UsageError(called(name_) +
                     " belongs to the loop that used it first: its time is that "
                     "loop's clock");
}

void RateLimiter::refill() noexcept {
  const std::int64_t now = loop_->now_ns();
  const std::int64_t elapsed = now - std::exchange(last_ns_, now);
  const Credit lacking = credit_max_ - credit_;
  // Compared by division: the product may be too large, and then all is there anyway.
  credit_ = elapsed > lacking / tokens_ ? credit_max_ : credit_ + elapsed * tokens_;
}

bool RateLimiter::take(Count count) noexcept {
  if (credit_ < cost(count)) return false;
  credit_ -= cost(count);
  return true;
}

void RateLimiter::arm_for(Count count) {
  const Credit lacking = cost(count) - credit_;
  const std::int64_t wait = lacking / tokens_ + (lacking % tokens_ != 0);
  const std::int64_t left = std::numeric_limits<std::int64_t>::max() - last_ns_;
  loop_->arm_timer(*this, last_ns_ + std::min(wait, left));
}

void RateLimiter::serve() noexcept {
  refill();
  if (armed()) loop_->disarm_timer(*this);  // nobody may be left
  detail::WaitList served;
  while (!waiters_.empty() && take(waiters_.front().amount))
    served.push_back(detail::take_first(waiters_));
  if (!waiters_.empty()) arm_for(waiters_.front().amount);  // T2
  detail::Waiter::notify_all(served);
}

void RateLimiter::give_back(Count count) noexcept {
  refill();
  credit_ = std::min(credit_max_ - cost(count), credit_) + cost(count);
  serve();
}

detail::Withdrawn RateLimiter::withdraw(detail::WaitNode& node) noexcept {
  if (node.state != detail::WaitState::waiting) {
    give_back(node.amount);
    return detail::Withdrawn::passed_on;
  }
  node.unlink();
  serve();
  return detail::Withdrawn::unlinked;
}

void RateLimiter::due(detail::TimerNode& timer) noexcept {
  static_cast<RateLimiter&>(timer).serve();
}

bool RateLimiter::Acquire::take() {
  if (limiter_.try_acquire(amount)) return true;
  if (limiter_.waiters_.empty()) limiter_.arm_for(amount);
  return false;
}

void RateLimiter::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  const detail::WaitPlace place = detail::place_in(waiters_, waiter);
  tree.node(called(name_) + ", wants " + std::to_string(waiter.amount) + ", " +
            (place.place == 0 ? std::string("just acquired") : detail::standing(place)));
}

}  // namespace weft::inline v0
