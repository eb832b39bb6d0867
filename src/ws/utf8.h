// SPDX-License-Identifier: MIT
#pragma once
// Utf8Checker: whether bytes that come in any pieces are UTF-8 (RFC 3629), at the first that cannot be.
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::inline v0::ws::detail {

// Invariants
//   I1  left_ bytes of a character are to come, the next of them in [low_, high_].
class Utf8Checker {
 public:
  // More of it. Returns: false if no bytes behind these can make it UTF-8.
  [[nodiscard]] bool add(std::span<const std::byte> bytes) noexcept;
  // Whether it may end here.
  [[nodiscard]] bool is_whole() const noexcept { return left_ == 0; }
  void reset() noexcept { *this = Utf8Checker(); }

 private:
  [[nodiscard]] bool begin(std::uint8_t byte) noexcept;

  std::uint8_t left_ = 0;
  std::uint8_t low_ = 0x80;
  std::uint8_t high_ = 0xbf;
};

[[nodiscard]] inline bool is_utf8(std::span<const std::byte> bytes) noexcept {
  Utf8Checker checker;
  return checker.add(bytes) && checker.is_whole();
}

}  // namespace weft::inline v0::ws::detail
