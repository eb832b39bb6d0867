// SPDX-License-Identifier: MIT
#pragma once
// What a processor is told while it spins.

namespace weft::inline v0::detail {

inline void pause_processor() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace weft::inline v0::detail
