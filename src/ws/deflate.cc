// SPDX-License-Identifier: MIT
#include "deflate.h"

#include <algorithm>
#include <array>
#include <limits>

#include "weft/base/assert.h"

namespace weft::inline v0::ws::detail {

namespace {

using End = http::detail::InflateStream::End;

// What one call of zlib writes, at most.
constexpr std::size_t kPieceBytes = 16 * 1024;

// RFC 7692, 7.2.1: the end of what Z_SYNC_FLUSH writes, which is not sent.
constexpr std::array<std::byte, 4> kTail{std::byte{0}, std::byte{0}, std::byte{0xff},
                                         std::byte{0xff}};

}  // namespace

std::string Deflater::compress(std::span<const std::byte> message) {
  if (!stream_) stream_.emplace(settings_);
  std::string out;
  stream_->run(message, Z_SYNC_FLUSH, out);
  WEFT_ASSERT(out.size() >= kTail.size(), "a sync flush writes its tail");
  out.resize(out.size() - kTail.size());
  if (!keeps_context_) stream_.reset();
  return out;
}

Inflater::Step Inflater::add(std::span<const std::byte> piece, std::string& out,
                             std::size_t bytes_max) {
  if (!stream_) stream_.emplace(http::detail::raw_window_bits(window_bits_));
  bytes_max = std::min(bytes_max, std::numeric_limits<std::size_t>::max() - 1);
  while (true) {
    std::size_t size = out.size();
    // One byte more than it may be, so that one that is just as large is seen to end.
    std::size_t guess = std::min<std::size_t>(kPieceBytes, 64 + 4 * piece.size());
    std::size_t room = std::min(guess, bytes_max + 1 - size);
    out.resize(size + room);
    auto step = stream_->run(piece, std::as_writable_bytes(std::span(out)).subspan(size));
    out.resize(size + step.made);
    piece = piece.subspan(step.taken);
    if (out.size() > bytes_max) return Step::too_big;
    if (step.end == End::bad) return Step::bad;
    // RFC 7692, 7.2.3.4: a block may say that it is the last. What is behind it is the next stream, in the same window.
    if (step.end == End::reached) stream_->go_on();
    bool has_more = !piece.empty() || step.made == room;
    bool has_moved = step.taken > 0 || step.made > 0 || step.end == End::reached;
    if (!has_more || !has_moved) return Step::good;
  }
}

Inflater::Step Inflater::finish(std::string& out, std::size_t bytes_max) {
  Step step = add(kTail, out, bytes_max);
  if (step == Step::good && !stream_->is_between_blocks()) step = Step::bad;
  if (!keeps_context_) stream_.reset();
  return step;
}

}  // namespace weft::inline v0::ws::detail
