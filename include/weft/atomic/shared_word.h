// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::SharedWord: a word in memory that the kernel, too, reads and writes: the heads and
// tails of rings. The kernel names it by its address, so it cannot be an Atomic<>.
//
// Not for a model checker: the other side is the kernel's code.
#include <atomic>
#include <cstdint>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

class SharedWord {
 public:
  SharedWord() noexcept = default;
  // Requires: aligned, and mapped as long as this is used.
  explicit SharedWord(void* at) noexcept : at_(static_cast<std::uint32_t*>(at)) {}

  [[nodiscard]] std::uint32_t load(std::memory_order order) const noexcept {
    return std::atomic_ref<std::uint32_t>(*at_).load(order);
  }
  void store(std::uint32_t value, std::memory_order order) const noexcept {
    std::atomic_ref<std::uint32_t>(*at_).store(value, order);
  }

 private:
  std::uint32_t* at_ = nullptr;
};

}  // namespace weft::inline v0::detail
