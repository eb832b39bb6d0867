// SPDX-License-Identifier: MIT
#pragma once
// Deflater, Inflater: messages compressed as RFC 7692, 7.2 has it, by zlib.
//
// Memory         zlib's, from the first message on; without context takeover from a message's first byte to its last.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/ws/limits.h"

namespace weft::inline v0::ws::detail {

class Deflater {
 public:
  Deflater(const DeflateOptions& options, int window_bits, bool keeps_context) noexcept
      : level_(options.level),
        memory_level_(options.memory_level),
        window_bits_(window_bits),
        keeps_context_(keeps_context) {}
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { end(); }

  // Requires: not empty. Throws std::bad_alloc.
  [[nodiscard]] std::string compress(std::span<const std::byte> message);

 private:
  void begin();
  void end() noexcept;

  z_stream stream_{};
  int level_, memory_level_, window_bits_;
  bool keeps_context_;
  bool is_begun_ = false;
};

class Inflater {
 public:
  enum class Step : std::uint8_t { good, bad, too_big };

  Inflater(int window_bits, bool keeps_context) noexcept
      : window_bits_(window_bits), keeps_context_(keeps_context) {}
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { end(); }

  // Appends what `piece` inflates to. too_big: `out` would be larger than `bytes_max`, and has at most one more.
  // Throws std::bad_alloc.
  [[nodiscard]] Step add(std::span<const std::byte> piece, std::string& out, std::size_t bytes_max);
  // The message ends here.
  [[nodiscard]] Step finish(std::string& out, std::size_t bytes_max);

 private:
  void begin();
  void end() noexcept;

  z_stream stream_{};
  int window_bits_;
  bool keeps_context_;
  bool is_begun_ = false;
};

}  // namespace weft::inline v0::ws::detail
