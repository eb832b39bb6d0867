// SPDX-License-Identifier: MIT
#pragma once
// Deflater, Inflater: messages compressed as RFC 7692, 7.2 has it, by zlib.
//
// Memory         zlib's, from the first message on; without context takeover from a message's first byte to its last.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "http/zlib_stream.h"
#include "weft/ws/limits.h"

namespace weft::inline v0::ws::detail {

class Deflater {
 public:
  Deflater(const DeflateOptions& options, int window_bits, bool keeps_context) noexcept
      : settings_{.level = options.level,
                  .window_bits = http::detail::raw_window_bits(window_bits),
                  .memory_level = options.memory_level},
        keeps_context_(keeps_context) {}

  // Requires: not empty. Throws std::bad_alloc.
  [[nodiscard]] std::string compress(std::span<const std::byte> message);

 private:
  http::detail::DeflateSettings settings_;
  std::optional<http::detail::DeflateStream> stream_;
  bool keeps_context_;
};

class Inflater {
 public:
  enum class Step : std::uint8_t { good, bad, too_big };

  Inflater(int window_bits, bool keeps_context) noexcept
      : window_bits_(window_bits), keeps_context_(keeps_context) {}

  // Appends what `piece` inflates to. too_big: `out` would be larger than `bytes_max`, and has at most one more.
  // Throws std::bad_alloc.
  [[nodiscard]] Step add(std::span<const std::byte> piece, std::string& out, std::size_t bytes_max);
  // The message ends here.
  [[nodiscard]] Step finish(std::string& out, std::size_t bytes_max);

 private:
  std::optional<http::detail::InflateStream> stream_;
  int window_bits_;
  bool keeps_context_;
};

}  // namespace weft::inline v0::ws::detail
