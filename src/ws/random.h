// SPDX-License-Identifier: MIT
#pragma once
// RandomBytes: from the kernel's generator, some at a time, so that a mask is not a system call.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::inline v0::ws::detail {

class RandomBytes {
 public:
  // Requires: not more than kBytes.
  void fill(std::span<std::uint8_t> out);

 private:
  static constexpr std::size_t kBytes =
      256;  // what getrandom(2) gives without ever being interrupted

  std::array<std::uint8_t, kBytes> stock_;
  std::size_t used_ = kBytes;
};

}  // namespace weft::inline v0::ws::detail
