// SPDX-License-Identifier: MIT
#pragma once
// The steady clock in nanoseconds: what every loop that lives in real time goes by.
#include <time.h>

#include <chrono>
#include <cstdint>

namespace weft::inline v0::detail {

[[nodiscard]] inline std::int64_t steady_ns() noexcept {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// The same as of the kernel's last tick, some milliseconds ago: a quarter of the price.
[[nodiscard]] inline std::int64_t coarse_steady_ns() noexcept {
#ifdef CLOCK_MONOTONIC_COARSE
  timespec now;
  if (::clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0) {
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
#endif
  return steady_ns();
}

}  // namespace weft::inline v0::detail
