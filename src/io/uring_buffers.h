// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::UringBuffers: a loop's BufferPool whose stock is the kernel's to choose from: a provided
// buffer ring. The kernel takes a buffer when it has bytes for it, and says which by the completion.
//
// Memory order   the tail is stored with release, after the entry; the kernel loads it with acquire.
//
// Invariants
//   P1  [head, tail_) of the ring is in stock. The kernel moves the head, and tells by completions:
//       stock() is right as far as those were looked at.
//   P2  the ring has a place for every buffer: it is never full.
#include <linux/io_uring.h>

#include <cstddef>
#include <cstdint>

#include "uring_ring.h"
#include "weft/atomic/shared_word.h"
#include "weft/io/buffer_pool.h"

namespace weft::inline v0::detail {

class UringBuffers final : public BufferPool {
 public:
  static constexpr std::uint16_t kGroup = 0;  // its name among the kernel's

  // Throws std::bad_alloc; std::system_error if the kernel has no such rings (before Linux 5.19).
  UringBuffers(PlatformIO& home, UringRing& ring);

  // Returns: the buffer that a completion with such flags has used. It is lent now.
  [[nodiscard]] PooledBuffer& taken(std::uint32_t completion_flags) noexcept;
  [[nodiscard]] std::size_t stock() noexcept { return kCount - lent(); }

 private:
  void put(PooledBuffer& buffer) noexcept override;

  io_uring_buf* places_;
  SharedHalfWord shared_tail_;
  std::uint16_t tail_ = 0;
};

}  // namespace weft::inline v0::detail
