// SPDX-License-Identifier: MIT
#pragma once
// weft::PooledBytes: bytes in a buffer that a loop lends, from Descriptor::read_pooled().
//
//     Result<PooledBytes> got = co_await connection.read_pooled();
//     if (!got || got->empty()) co_return;           // an error, or the end
//     parser.feed(*got);                             // a contiguous range: a std::span<const std::byte>
//
// The buffer goes back when this is destroyed, or assigned to. Hold it as long as it is of use, and not
// longer: the stock of a loop is kCount buffers of kBytes, and who reads when all of them are lent gets
// one from the heap instead. Nobody ever waits for somebody else's.
//
// Threads        one owner at a time, any thread: a buffer that is dropped elsewhere finds its own way
//                home, by a lock. It may outlive its loop.
// Allocation     none, as long as the stock lasts.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "weft/io/buffer_pool.h"

namespace weft::inline v0 {

class [[nodiscard]] PooledBytes {
 public:
  static constexpr std::size_t kBytes = detail::BufferPool::kBytes;  // never more in one
  static constexpr std::size_t kCount = detail::BufferPool::kCount;

  PooledBytes() noexcept = default;
  PooledBytes(PooledBytes&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  PooledBytes& operator=(PooledBytes&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    buffer_ = std::exchange(other.buffer_, nullptr);
    return *this;
  }
  ~PooledBytes() { give_back(); }

  // Good until this is destroyed or assigned to. Moving it does not move them.
  [[nodiscard]] const std::byte* data() const noexcept {
    return buffer_ ? buffer_->data() : nullptr;
  }
  [[nodiscard]] std::size_t size() const noexcept { return buffer_ ? buffer_->length : 0; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] const std::byte* begin() const noexcept { return data(); }
  [[nodiscard]] const std::byte* end() const noexcept { return data() + size(); }

  // One from the heap, empty, for a stream that has none to lend: write into room(), then say how much with set_size().
  // Throws std::bad_alloc.
  [[nodiscard]] static PooledBytes allocate() {
    return PooledBytes(detail::BufferPool::from_heap());
  }
  [[nodiscard]] std::span<std::byte> room() noexcept { return {buffer_->start, kBytes}; }
  void set_size(std::size_t bytes) noexcept {
    buffer_->offset = 0;
    buffer_->length = static_cast<std::uint32_t>(bytes);
  }

  // For weft's own use: takes it over. Null: empty.
  explicit PooledBytes(detail::PooledBuffer* buffer) noexcept : buffer_(buffer) {}

 private:
  void give_back() noexcept {
    if (buffer_) detail::BufferPool::give_back(*std::exchange(buffer_, nullptr));
  }

  detail::PooledBuffer* buffer_ = nullptr;
};

}  // namespace weft::inline v0
