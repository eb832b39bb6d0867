// SPDX-License-Identifier: MIT
#pragma once
// Ringing an eventfd.
//
// Threads        any, and signal handlers: one write().
#include <unistd.h>

#include <cstdint>

namespace weft::inline v0::detail {

// It cannot fail but for a full counter, and then whoever waits for it is awake for a long time.
inline void ring_eventfd(int fd) noexcept {
  std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(fd, &one, sizeof one);
}

}  // namespace weft::inline v0::detail
