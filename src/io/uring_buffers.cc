// SPDX-License-Identifier: MIT
#include "uring_buffers.h"

#include <bit>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

namespace {

// The ring is an array of io_uring_buf, and its tail lies in what the first leaves unused. (The
// header's io_uring_buf_ring says so by an empty struct, which has a size in C++.)
constexpr std::size_t kRingBytes = BufferPool::kCount * sizeof(io_uring_buf);
static_assert(std::has_single_bit(BufferPool::kCount));

}  // namespace

UringBuffers::UringBuffers(PlatformIO& home, UringRing& ring)
    : BufferPool(home, kRingBytes),
      places_(reinterpret_cast<io_uring_buf*>(before())),
      shared_tail_(before() + offsetof(io_uring_buf, resv)) {
  if (int error = ring.provide_buffers(places_, kCount, kGroup)) {
    throw std::system_error(error, std::generic_category(), "IORING_REGISTER_PBUF_RING");
  }
  for (std::size_t i = 0; i < kCount; ++i) UringBuffers::put(at(i));
}

void UringBuffers::put(PooledBuffer& buffer) noexcept {
  io_uring_buf& place = places_[tail_ & (kCount - 1)];
  place.addr = reinterpret_cast<std::uintptr_t>(buffer.start);
  place.len = kBytes;
  place.bid = static_cast<std::uint16_t>(index_of(buffer));
  shared_tail_.store(++tail_, release);
}

PooledBuffer& UringBuffers::taken(std::uint32_t completion_flags) noexcept {
  std::size_t index = completion_flags >> IORING_CQE_BUFFER_SHIFT;
  WEFT_ASSERT(index < kCount, "P1: the kernel takes a buffer that is in stock");
  note_lent();
  return at(index);
}

}  // namespace weft::inline v0::detail
