// SPDX-License-Identifier: MIT
#include "deflate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "weft/base/assert.h"

namespace weft::inline v0::ws::detail {

namespace {

// What one call of zlib writes, at most.
constexpr std::size_t kPieceBytes = 16 * 1024;
// What one call is given: it counts in 32 bits.
constexpr std::size_t kInputBytesMax = std::numeric_limits<std::uint32_t>::max() / 2;

// RFC 7692, 7.2.1: the end of what Z_SYNC_FLUSH writes, which is not sent.
constexpr std::array<std::byte, 4> kTail{std::byte{0}, std::byte{0}, std::byte{0xff},
                                         std::byte{0xff}};

void give(z_stream& stream, std::span<const std::byte> bytes) noexcept {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
}

}  // namespace

void Deflater::begin() {
  if (is_begun_) return;
  // Negative: without the header and the checksum of zlib's own format.
  int result = ::deflateInit2(&stream_, level_, Z_DEFLATED, -window_bits_, memory_level_,
                              Z_DEFAULT_STRATEGY);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  WEFT_ASSERT(result == Z_OK, "deflateInit2() refused what require_valid() let pass");
  is_begun_ = true;
}

void Deflater::end() noexcept {
  if (is_begun_) ::deflateEnd(&stream_);
  is_begun_ = false;
}

std::string Deflater::compress(std::span<const std::byte> message) {
  begin();
  std::string out;
  while (!message.empty()) {
    std::span<const std::byte> piece = message.first(std::min(message.size(), kInputBytesMax));
    message = message.subspan(piece.size());
    give(stream_, piece);
    int flush = message.empty() ? Z_SYNC_FLUSH : Z_NO_FLUSH;
    do {
      std::size_t size = out.size();
      out.resize(size + std::min(kPieceBytes, ::deflateBound(&stream_, stream_.avail_in) + 16));
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + size);
      stream_.avail_out = static_cast<uInt>(out.size() - size);
      int result = ::deflate(&stream_, flush);
      WEFT_ASSERT(result == Z_OK || result == Z_BUF_ERROR, "deflate() failed on valid input");
      out.resize(out.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }
  WEFT_ASSERT(out.size() >= kTail.size(), "a sync flush writes its tail");
  out.resize(out.size() - kTail.size());
  if (!keeps_context_) end();
  return out;
}

void Inflater::begin() {
  if (is_begun_) return;
  int result = ::inflateInit2(&stream_, -window_bits_);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  WEFT_ASSERT(result == Z_OK, "inflateInit2() refused a window that was agreed on");
  is_begun_ = true;
}

void Inflater::end() noexcept {
  if (is_begun_) ::inflateEnd(&stream_);
  is_begun_ = false;
}

Inflater::Step Inflater::add(std::span<const std::byte> piece, std::string& out,
                             std::size_t bytes_max) {
  begin();
  bytes_max = std::min(bytes_max, std::numeric_limits<std::size_t>::max() - 1);
  WEFT_ASSERT(piece.size() <= kInputBytesMax, "a piece of a frame is small");
  give(stream_, piece);
  while (true) {
    std::size_t size = out.size();
    // One byte more than it may be, so that one that is just as large is seen to end.
    std::size_t guess = std::min<std::size_t>(kPieceBytes, 64 + 4 * std::size_t{stream_.avail_in});
    out.resize(size + std::min(guess, bytes_max + 1 - size));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + size);
    stream_.avail_out = static_cast<uInt>(out.size() - size);
    int result = ::inflate(&stream_, Z_SYNC_FLUSH);
    out.resize(out.size() - stream_.avail_out);
    if (out.size() > bytes_max) return Step::too_big;
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) {
      // RFC 7692, 7.2.3.4: a block may say that it is the last. What is behind it is the next stream, in the same window.
      ::inflateResetKeep(&stream_);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Step::bad;
    }
    bool has_more = stream_.avail_in > 0 || stream_.avail_out == 0;
    if (!has_more || result == Z_BUF_ERROR) return Step::good;
  }
}

Inflater::Step Inflater::finish(std::string& out, std::size_t bytes_max) {
  Step step = add(kTail, out, bytes_max);
  // zlib.h, inflate(): 128 if it stands behind a block, and the lowest bits are those it has not used.
  if (step == Step::good && (stream_.data_type & 0x87) != 0x80) step = Step::bad;
  if (!keeps_context_) end();
  return step;
}

}  // namespace weft::inline v0::ws::detail
