// SPDX-License-Identifier: MIT
#pragma once
// weft::tls::detail::OutputBuffer: bytes that are to be sent, in borrowed blocks.
//
// A connection has unsent bytes for a moment, and most connections have none. So a block comes from a stock of the
// thread's, and goes back when all of it is sent: one block, warm in the cache, serves them all.
//
// Threads        one at a time; a block may go back to another thread's stock than it came from.
// Allocation     when the stock is empty.
//
// Invariants
//   I1  bytes do not move: what front() returned stays there until take(), whatever is put meanwhile. A kernel may
//       be reading it.
//   I2  no block is empty; without bytes there is none.
#include <cstddef>
#include <span>

namespace weft::inline v0::tls {

// A record carries so much plaintext, and grows by so much at most: its head, and RFC 8446, 5.2.
inline constexpr std::size_t kRecordBytes = 16 * 1024;
inline constexpr std::size_t kRecordGrowthMax = 5 + 256;
// Unsent bytes above which no plaintext is taken: two records fit, and leave in one write.
inline constexpr std::size_t kOutputBytes = 2 * (kRecordBytes + kRecordGrowthMax);
// Blocks that a thread keeps when nothing needs them.
inline constexpr std::size_t kOutputBlocksKept = 16;

namespace detail {

class OutputBuffer {
 public:
  OutputBuffer() noexcept = default;
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  ~OutputBuffer() { clear(); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // The first of them, as many as lie together.
  [[nodiscard]] std::span<const std::byte> front() const noexcept;
  // Throws std::bad_alloc, and has put none then.
  void put(std::span<const std::byte> bytes);
  // Requires: front() has as many.
  void take(std::size_t count) noexcept;
  void clear() noexcept;

 private:
  struct Block;
  class Stock;

  Block* first_ = nullptr;
  Block* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace detail

}  // namespace weft::inline v0::tls
