// SPDX-License-Identifier: MIT
#pragma once
// DeflateStream, InflateStream: zlib's two streams, with owners. Of http/'s gzip and of ws/'s messages.
//
// Memory         zlib's, from construction on: about 2^(window_bits + 2) + 2^(memory_level + 9) bytes to deflate, and
//                2^window_bits to inflate.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft::inline v0::http::detail {

// The format is in the number of window bits (zlib.h, deflateInit2()).
constexpr int kGzipWindowBits = 15 + 16;
[[nodiscard]] constexpr int raw_window_bits(int bits) noexcept { return -bits; }

struct DeflateSettings {
  int level = 6;
  int window_bits = kGzipWindowBits;
  int memory_level = 8;
};

class DeflateStream {
 public:
  // Requires: settings that zlib takes. Throws std::bad_alloc.
  explicit DeflateStream(DeflateSettings settings);
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;
  ~DeflateStream() { ::deflateEnd(&stream_); }

  // Appends what `bytes` become. `flush`: Z_NO_FLUSH, Z_SYNC_FLUSH or Z_FINISH, after the last of them.
  void run(std::span<const std::byte> bytes, int flush, std::string& out);

 private:
  z_stream stream_{};
};

class InflateStream {
 public:
  // Throws std::bad_alloc.
  explicit InflateStream(int window_bits);
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;
  ~InflateStream() { ::inflateEnd(&stream_); }

  enum class End : std::uint8_t {
    none,
    reached,  // of the stream; what follows needs reset() or go_on()
    bad,      // it is no such stream
  };
  struct Step {
    std::size_t taken = 0, made = 0;
    End end = End::none;
  };
  // Until `bytes` are used up, `room` is full, or the stream ends. Throws std::bad_alloc.
  [[nodiscard]] Step run(std::span<const std::byte> bytes, std::span<std::byte> room);
  // Another stream begins.
  void reset() noexcept { ::inflateReset(&stream_); }
  // The same, in the same window.
  void go_on() noexcept { ::inflateResetKeep(&stream_); }
  // Whether it stands right behind a block that is not the last.
  [[nodiscard]] bool is_between_blocks() const noexcept {
    // zlib.h, inflate(): 128 if it stands behind a block, and the lowest bits are those it has not used.
    return (stream_.data_type & 0x87) == 0x80;
  }

 private:
  z_stream stream_{};
};

}  // namespace weft::inline v0::http::detail
