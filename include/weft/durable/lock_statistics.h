// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::LockStatistics: how long locks were waited for and held, and how they were lost.
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::inline v0::durable {

// How often something took how long: one count per power of two of microseconds.
class DurationHistogram {
 public:
  static constexpr std::size_t kBuckets = 40;  // the last one: more than six days

  void add(std::chrono::nanoseconds taken) noexcept {
    ++counts_[bucket_of(taken)];
    ++count_;
    sum_ += taken;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::chrono::nanoseconds sum() const noexcept { return sum_; }
  // Those that took less than 2^i microseconds, and not less than half of that.
  [[nodiscard]] std::uint64_t bucket(std::size_t i) const noexcept { return counts_[i]; }
  // Such that a part p of all took less; to the next power of two. Zero if there are none.
  [[nodiscard]] std::chrono::microseconds quantile(double p) const noexcept;

 private:
  static std::size_t bucket_of(std::chrono::nanoseconds taken) noexcept {
    auto us = std::chrono::duration_cast<std::chrono::microseconds>(taken).count();
    std::size_t width = std::bit_width(us > 0 ? static_cast<std::uint64_t>(us) : 0u);
    return width < kBuckets ? width : kBuckets - 1;
  }
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds sum_{};
};

enum class LossReason {
  expired,   // the lease ran out before it could be renewed
  gone,      // the store had it no more: it had expired there
  revoked,   // somebody took it away
  max_hold,  // it was held for longer than max_hold
};
inline constexpr std::size_t kLossReasons = 4;
using LossCounts = std::array<std::uint64_t, kLossReasons>;
[[nodiscard]] const char* to_string(LossReason reason) noexcept;

struct LockStatistics {
  std::uint64_t acquired = 0;
  std::uint64_t handed_over = 0;  // of those: from task to task, without asking the store
  std::uint64_t timed_out = 0;
  std::uint64_t cancelled = 0;  // while they waited
  std::uint64_t failed = 0;     // with another error: busy, revoked, or one of the store
  LossCounts lost{};
  std::uint64_t workflows_started = 0;
  std::uint64_t workflows_ended = 0;  // idle
  std::size_t waiting = 0;            // now
  std::size_t held = 0;               // now
  DurationHistogram waited;
  DurationHistogram was_held;

  [[nodiscard]] std::uint64_t lost_for(LossReason reason) const noexcept {
    return lost[static_cast<std::size_t>(reason)];
  }
};

}  // namespace weft::inline v0::durable
