// SPDX-License-Identifier: MIT
#pragma once
// weft::RateLimiter: so many tokens per interval, and a burst at most at once. Waiting suspends the
// task.
//
//     RateLimiter requests({.tokens = 100, .interval = 1s, .burst = 10}, "requests");
//     co_await requests.acquire();          // goes on when its token is there
//     co_await requests.acquire(8);         // a heavier one
//
// Tokens come evenly, one per interval / tokens, up to the burst; at the start all of the burst is
// there. First come, first served: a large request at the front is not overtaken. What is taken is
// used up; for something to give back use Semaphore.
//
// Threads        one loop's: that which uses it first, because time is that loop's clock.
// Cancellation   a cancelled acquire() takes nothing, and the queue keeps its order: those behind
//                go on no later than they would have. One that was given its tokens and has not
//                gone on yet gives them back, to the next.
// Resumption     on its loop, through the ready ring.
// Errors         UsageError: tokens or interval not positive, or a burst too large to be counted;
//                acquire() of none or of more than the burst; use from another loop, or off any.
// Allocation     none. A timer is armed exactly while somebody waits: one, for the first.
// Cost           acquire(): O(1), and a look at the clock.
//
// Invariants
//   T1  credit_ is what is there, in tokens * interval: so nothing is rounded, and no time is lost.
//       It is never more than the burst.
//   T2  the first waiter wants more than is there, and the timer is armed for when it will be.
#include <chrono>
#include <cstdint>
#include <utility>

#include "weft/core/executor.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/timer_node.h"
#include "weft/core/tree.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class RateLimiter : private detail::TimerNode {
  class Acquire;

 public:
  using Count = std::uint32_t;
  struct Rate {
    Count tokens;
    std::chrono::nanoseconds interval;
    Count burst;
  };

  // The name is shown in the task tree and in messages. Requires: it outlives the RateLimiter.
  explicit RateLimiter(Rate rate, const char* name = nullptr);
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;
  // Requires: nobody waits for it. Ends the process if somebody does.
  ~RateLimiter();

  // Returns: an awaitable of nothing.
  [[nodiscard]] auto acquire(Count count = 1) {
    require_possible(count);
    return AwaiterDescription<detail::SyncAwaiter<Acquire>, RateLimiter&, Count>(*this,
                                                                                 std::move(count));
  }
  // Returns: false if they are not there, or if somebody waits.
  [[nodiscard]] bool try_acquire(Count count = 1);
  // What is there now, whole tokens.
  [[nodiscard]] Count available();
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  // Tokens times the interval in nanoseconds: T1.
  using Credit = std::int64_t;

  [[nodiscard]] Credit cost(Count count) const noexcept { return count * interval_ns_; }
  void require_possible(Count count) const;
  // Binds it to the current loop, or refuses another.
  void require_loop();
  void refill() noexcept;
  bool take(Count count) noexcept;
  // T2. Requires: `count` is more than there is.
  void arm_for(Count count);
  void serve() noexcept;
  void give_back(Count count) noexcept;
  detail::Withdrawn withdraw(detail::WaitNode& node) noexcept;
  static void due(detail::TimerNode& timer) noexcept;
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  const std::int64_t tokens_;
  const Credit interval_ns_;
  const Credit credit_max_;
  const Count burst_;
  const char* name_;
  Executor* loop_ = nullptr;
  Credit credit_;
  std::int64_t last_ns_ = 0;  // when credit_ was right
  detail::WaitList waiters_;
};

class RateLimiter::Acquire : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "RateLimiter::acquire()";

 protected:
  Acquire(RateLimiter& limiter, Count count) noexcept : limiter_(limiter) { amount = count; }

  // The timer is armed here already if this will be the first: that may be refused, and waiting may
  // not.
  bool take();
  bool take_or_wait() noexcept {
    state = detail::WaitState::waiting;
    limiter_.waiters_.push_back(*this);
    return false;
  }
  detail::Withdrawn withdraw() noexcept { return limiter_.withdraw(*this); }
  void give_back() noexcept { limiter_.give_back(amount); }
  static constexpr void result() noexcept {}
  void introspect(TaskTreeCollector& tree) { limiter_.describe_wait(tree, *this); }

 private:
  RateLimiter& limiter_;
};

}  // namespace weft::inline v0
