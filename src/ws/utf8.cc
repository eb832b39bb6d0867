// SPDX-License-Identifier: MIT
#include "utf8.h"

#include <cstring>

namespace weft::inline v0::ws::detail {

// The first byte of a character of several. RFC 3629, 4: what is not the shortest form, a surrogate or above U+10FFFF has a
// second byte that is out of its range.
bool Utf8Checker::begin(std::uint8_t byte) noexcept {
  if (byte < 0xc2 || byte > 0xf4) return false;
  left_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  low_ = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
  high_ = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
  return true;
}

bool Utf8Checker::add(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  const std::byte* at = bytes.data();
  const std::byte* end = at + bytes.size();
  while (at != end) {
    if (left_ == 0) {
      // ASCII by the word: most of what there is.
      for (std::uint64_t word; end - at >= 8; at += 8) {
        std::memcpy(&word, at, 8);
        if ((word & kHighBits) != 0) break;
      }
      if (at == end) break;
    }
    auto byte = static_cast<std::uint8_t>(*at++);
    if (left_ > 0) {
      if (byte < low_ || byte > high_) return false;
      low_ = 0x80;
      high_ = 0xbf;
      --left_;
    } else if (byte >= 0x80 && !begin(byte)) {
      return false;
    }
  }
  return true;
}

}  // namespace weft::inline v0::ws::detail
