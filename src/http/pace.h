// SPDX-License-Identifier: MIT
#pragma once
// Pace: how long a peer may take for its next bytes if it is to keep up with a rate, over all the time that was waited for it.
//
//     Pace::Waits waits(pace);
//     auto count = co_await within(pace.patience({.silence = 30s, .rate_min = 240, .grace = 30s}), stream.read_some(buffer));
//     pace.moved(*count);
//
// Only what is waited for the peer is its time: who waits may do whatever it likes between two waits. A wait that is given up counts.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "weft/time/sleep.h"

namespace weft::inline v0::http::detail {

class Pace {
 public:
  struct Bounds {
    std::chrono::nanoseconds silence;  // the longest patience there is
    std::uint64_t rate_min;            // bytes a second; 0: no matter how slow
    std::chrono::nanoseconds grace;    // of all the time that was waited
  };

  // Returns: how long the next byte may take.
  [[nodiscard]] std::chrono::nanoseconds patience(const Bounds& bounds) const noexcept {
    using std::chrono::milliseconds, std::chrono::nanoseconds;
    if (bounds.rate_min == 0) return bounds.silence;
    // Neither product may overflow: as if nobody moved more than a petabyte, nor waited for thirty years.
    std::uint64_t bytes = std::min<std::uint64_t>(bytes_, 1'000'000'000'000'000);
    std::uint64_t earned_ms = bytes * 1000 / bounds.rate_min;
    auto earned = milliseconds(std::min<std::uint64_t>(earned_ms, 1'000'000'000'000));
    return std::clamp<nanoseconds>(bounds.grace + earned - waited_, nanoseconds(0), bounds.silence);
  }
  void moved(std::uint64_t bytes) noexcept { bytes_ += bytes; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  // While it lives, the peer is waited for.
  class Waits {
   public:
    explicit Waits(Pace& pace) : pace_(pace), start_(now()) {}
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;
    ~Waits() { pace_.waited_ += now() - start_; }

   private:
    Pace& pace_;
    TimePoint start_;
  };

 private:
  std::uint64_t bytes_ = 0;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace weft::inline v0::http::detail
