// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::BufferPool: the buffers that a loop lends to read_pooled(). One per loop, made by the
// first that asks.
//
// A pool is a stock, not a budget: when it is empty a buffer comes from the heap, and goes back there.
// So nobody waits for a buffer, and tasks that hold theirs while they read on cannot starve each other.
//
// Threads        take() and its like: the home loop. give_back(): any thread, also after the loop's
//                end; the last buffer that comes back then frees the pool.
// Allocation     the whole stock at once, as address space: a page is touched when it is first lent.
//
// Invariants
//   B1  a buffer of the pool is in stock, in returned_, or lent; lent_ counts the last two.
//   B2  lent_ is the home loop's; once home_ is null, mutex_'s.
//   B3  the pool is freed by leave(), or by the give_back() that finds home_ null and lent_ at 1.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "weft/atomic/atomic.h"

namespace weft::inline v0 {
class PlatformIO;
}

namespace weft::inline v0::detail {

class BufferPool;

// A buffer, and what is left of the bytes in it. Whoever holds it may link it.
struct PooledBuffer {
  BufferPool* pool = nullptr;  // null: from the heap
  PooledBuffer* next = nullptr;
  std::byte* start = nullptr;
  std::uint32_t offset = 0;
  std::uint32_t length = 0;

  [[nodiscard]] std::byte* data() const noexcept { return start + offset; }
};

class BufferPool {
 public:
  static constexpr std::size_t kBytes = 8192;  // of a buffer
  static constexpr std::size_t kCount = 256;   // of buffers, 2 MiB: above, the heap's

  // Throws std::bad_alloc.
  explicit BufferPool(PlatformIO& home) : BufferPool(home, 0) {
    for (std::size_t i = kCount; i-- > 0;) BufferPool::put(buffers_[i]);
  }
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Returns: a buffer, or null if there is no memory.
  [[nodiscard]] PooledBuffer* take() noexcept;
  // One that belongs to no pool. Throws std::bad_alloc.
  [[nodiscard]] static PooledBuffer* from_heap();
  static void give_back(PooledBuffer& buffer) noexcept;
  // Puts in stock what was given back elsewhere.
  void take_returned() noexcept {
    if (has_returned_.load(relaxed)) [[unlikely]]
      restock();
  }
  // The home loop ends.
  void leave() noexcept;
  // Buffers of the stock that somebody holds, tasks or descriptors.
  [[nodiscard]] std::size_t lent() noexcept {
    take_returned();
    return lent_;
  }

 protected:
  // `before` bytes lie before the buffers, page by page. The stock is empty.
  BufferPool(PlatformIO& home, std::size_t before);
  virtual ~BufferPool();
  // One of the stock is lent now.
  void note_lent() noexcept { ++lent_; }
  // It is in stock.
  virtual void put(PooledBuffer& buffer) noexcept;
  [[nodiscard]] PooledBuffer& at(std::size_t index) noexcept { return buffers_[index]; }
  [[nodiscard]] std::size_t index_of(const PooledBuffer& buffer) const noexcept {
    return static_cast<std::size_t>(&buffer - buffers_.get());
  }
  [[nodiscard]] std::byte* before() const noexcept { return memory_; }

 private:
  void restock() noexcept;

  Atomic<PlatformIO*> home_;  // relaxed: who looks from elsewhere looks again under the lock
  std::size_t lent_ = 0;
  PooledBuffer* free_ = nullptr;  // the last one first: its bytes are in the cache
  std::byte* memory_ = nullptr;
  std::size_t memory_bytes_;
  std::unique_ptr<PooledBuffer[]> buffers_;

  std::mutex mutex_;
  PooledBuffer* returned_ = nullptr;
  Atomic<bool> has_returned_{false};  // a glance at returned_
};

// Buffers that a descriptor holds for its next reader, the oldest first.
class KeptBuffers {
 public:
  KeptBuffers() noexcept = default;
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;
  ~KeptBuffers() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] PooledBuffer* first() const noexcept { return first_; }
  void push(PooledBuffer& buffer) noexcept {
    buffer.next = nullptr;
    (first_ ? last_->next : first_) = &buffer;
    last_ = &buffer;
    ++count_;
  }
  // Requires: not empty.
  [[nodiscard]] PooledBuffer& pop() noexcept {
    PooledBuffer& buffer = *first_;
    first_ = buffer.next;
    --count_;
    return buffer;
  }
  void clear() noexcept {
    while (first_) BufferPool::give_back(pop());
  }

 private:
  PooledBuffer* first_ = nullptr;
  PooledBuffer* last_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace weft::inline v0::detail
