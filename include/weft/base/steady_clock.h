// SPDX-License-Identifier: MIT
#pragma once
// The steady clock in nanoseconds: what every loop that lives in real time goes by.
#include <chrono>
#include <cstdint>

namespace weft::inline v0::detail {

[[nodiscard]] inline std::int64_t steady_ns() noexcept {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace weft::inline v0::detail
