// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::SharedWord, SharedHalfWord: a word in memory that the kernel, too, reads and writes:
// the heads and tails of rings. The kernel names it by its address, so it cannot be an Atomic<>.
//
// Not for a model checker: the other side is the kernel's code.
#include <atomic>
#include <cstdint>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

template <class T>
class SharedInteger {
 public:
  SharedInteger() noexcept = default;
  // Requires: aligned, and mapped as long as this is used.
  explicit SharedInteger(void* at) noexcept : at_(static_cast<T*>(at)) {}

  [[nodiscard]] T load(std::memory_order order) const noexcept {
    return std::atomic_ref<T>(*at_).load(order);
  }
  void store(T value, std::memory_order order) const noexcept {
    std::atomic_ref<T>(*at_).store(value, order);
  }

 private:
  T* at_ = nullptr;
};

using SharedWord = SharedInteger<std::uint32_t>;
using SharedHalfWord = SharedInteger<std::uint16_t>;

}  // namespace weft::inline v0::detail
