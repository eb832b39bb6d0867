// SPDX-License-Identifier: MIT
#include "zlib_stream.h"

#include <algorithm>
#include <limits>
#include <new>

#include "weft/base/assert.h"

namespace weft::inline v0::http::detail {

namespace {

// What one call of zlib writes, at most.
constexpr std::size_t kPieceBytes = 16 * 1024;
// What one call is given: it counts in 32 bits.
constexpr std::size_t kBytesMax = std::numeric_limits<std::uint32_t>::max() / 2;

void give(z_stream& stream, std::span<const std::byte> bytes) noexcept {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
}

}  // namespace

DeflateStream::DeflateStream(DeflateSettings settings) {
  int result = ::deflateInit2(&stream_, settings.level, Z_DEFLATED, settings.window_bits,
                              settings.memory_level, Z_DEFAULT_STRATEGY);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  WEFT_ASSERT(result == Z_OK, "deflateInit2() refused settings that were checked");
}

void DeflateStream::run(std::span<const std::byte> bytes, int flush, std::string& out) {
  do {
    std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kBytesMax));
    bytes = bytes.subspan(piece.size());
    give(stream_, piece);
    do {
      std::size_t size = out.size();
      out.resize(size + std::min(kPieceBytes, ::deflateBound(&stream_, stream_.avail_in) + 16));
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + size);
      stream_.avail_out = static_cast<uInt>(out.size() - size);
      int result = ::deflate(&stream_, bytes.empty() ? flush : Z_NO_FLUSH);
      WEFT_ASSERT(result == Z_OK || result == Z_BUF_ERROR || result == Z_STREAM_END,
                  "deflate() failed on valid input");
      out.resize(out.size() - stream_.avail_out);
      if (result == Z_STREAM_END) break;
    } while (stream_.avail_out == 0);
  } while (!bytes.empty());
}

InflateStream::InflateStream(int window_bits) {
  int result = ::inflateInit2(&stream_, window_bits);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  WEFT_ASSERT(result == Z_OK, "inflateInit2() refused a window");
}

InflateStream::Step InflateStream::run(std::span<const std::byte> bytes,
                                       std::span<std::byte> room) {
  bytes = bytes.first(std::min(bytes.size(), kBytesMax));
  room = room.first(std::min(room.size(), kBytesMax));
  give(stream_, bytes);
  stream_.next_out = reinterpret_cast<Bytef*>(room.data());
  stream_.avail_out = static_cast<uInt>(room.size());
  int result = ::inflate(&stream_, Z_SYNC_FLUSH);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  Step step;
  step.taken = bytes.size() - stream_.avail_in;
  step.made = room.size() - stream_.avail_out;
  if (result == Z_STREAM_END) {
    step.end = End::reached;
  } else if (result != Z_OK && result != Z_BUF_ERROR) {  // Z_BUF_ERROR: there was nothing to do
    step.end = End::bad;
  }
  return step;
}

}  // namespace weft::inline v0::http::detail
