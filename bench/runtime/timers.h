// SPDX-License-Identifier: MIT
#pragma once
// The timers of suite runtime, the same in every contestant and every language.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::bench {

constexpr std::size_t kOutstanding = 1'000'000;  // timers that are armed all the while
constexpr auto kFar = std::chrono::hours(1);     // none of them fires
constexpr auto kFarSpread = std::chrono::hours(1);
// All tasks sleep before the first is due: so long from now, and on a busy machine longer.
constexpr auto kArming = std::chrono::milliseconds(1500);
constexpr auto kArmingMax = std::chrono::seconds(12);
constexpr auto kWindow = std::chrono::milliseconds(50);  // from the first deadline to the last

// The i-th of a sequence spread evenly over [0, span), in no order: splitmix64 (Steele, Lea and
// Flood, OOPSLA 2014).
inline std::chrono::nanoseconds spread(std::uint64_t i, std::chrono::nanoseconds span) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return std::chrono::nanoseconds(z % static_cast<std::uint64_t>(span.count()));
}

}  // namespace weft::bench
