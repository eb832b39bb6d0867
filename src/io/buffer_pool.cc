// SPDX-License-Identifier: MIT
#include "weft/io/buffer_pool.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "weft/io/platform_io.h"

namespace weft::inline v0::detail {

namespace {

struct HeapBuffer : PooledBuffer {
  HeapBuffer() noexcept { start = bytes; }
  std::byte bytes[BufferPool::kBytes];
};

}  // namespace

BufferPool::BufferPool(PlatformIO& home, std::size_t before)
    : home_(&home),
      memory_bytes_(before + kCount * kBytes),
      buffers_(std::make_unique<PooledBuffer[]>(kCount)) {
  void* memory =
      ::mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < kCount; ++i) {
    buffers_[i].pool = this;
    buffers_[i].start = memory_ + before + i * kBytes;
  }
}

BufferPool::~BufferPool() { ::munmap(memory_, memory_bytes_); }

PooledBuffer* BufferPool::take() noexcept {
  if (!free_) take_returned();
  if (!free_) [[unlikely]]
    return new (std::nothrow) HeapBuffer;
  PooledBuffer* buffer = std::exchange(free_, free_->next);
  note_lent();
  return buffer;
}

PooledBuffer* BufferPool::from_heap() { return new HeapBuffer; }

void BufferPool::put(PooledBuffer& buffer) noexcept { buffer.next = std::exchange(free_, &buffer); }

void BufferPool::give_back(PooledBuffer& buffer) noexcept {
  if (!buffer.pool) {
    delete static_cast<HeapBuffer*>(&buffer);
    return;
  }
  BufferPool& pool = *buffer.pool;
  PlatformIO* here = PlatformIO::current_or_null();
  if (here && here == pool.home_.load(relaxed)) {
    --pool.lent_;
    pool.put(buffer);
    return;
  }
  // Nobody waits for a buffer: the loop need not be woken for it.
  bool is_last = false;
  {
    std::lock_guard lock(pool.mutex_);
    if (pool.home_.load(relaxed)) {
      buffer.next = std::exchange(pool.returned_, &buffer);
      pool.has_returned_.store(true, relaxed);
    } else {
      is_last = --pool.lent_ == 0;  // B2
    }
  }
  if (is_last) delete &pool;  // B3
}

void BufferPool::restock() noexcept {
  PooledBuffer* buffer;
  {
    std::lock_guard lock(mutex_);
    buffer = std::exchange(returned_, nullptr);
    has_returned_.store(false, relaxed);
  }
  while (buffer) {
    PooledBuffer* next = buffer->next;
    --lent_;
    put(*buffer);
    buffer = next;
  }
}

void BufferPool::leave() noexcept {
  bool is_last;
  {
    std::lock_guard lock(mutex_);
    for (; returned_; returned_ = returned_->next) --lent_;
    home_.store(nullptr, relaxed);
    is_last = lent_ == 0;
  }
  if (is_last) delete this;
}

}  // namespace weft::inline v0::detail
