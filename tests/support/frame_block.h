// SPDX-License-Identifier: MIT
#pragma once
// A block of the frame pool with a pattern in it, so that two owners of one byte notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "weft/core/frame_pool.h"

namespace weft::test {

struct Block {
  explicit Block(std::size_t size) : memory(detail::allocate_frame(size)), bytes(size) { fill(); }
  void fill() const { std::memset(memory, static_cast<int>(tag()), bytes); }
  unsigned char tag() const {
    return static_cast<unsigned char>((reinterpret_cast<std::uintptr_t>(memory) >> 4) * 31 + bytes);
  }
  bool intact() const {
    const auto* at = static_cast<const unsigned char*>(memory);
    return std::all_of(at, at + bytes, [&](unsigned char c) { return c == tag(); });
  }
  void release() const {
    EXPECT_TRUE(intact());
    detail::release_frame(memory, bytes);
  }
  void* memory;
  std::size_t bytes;
};

inline void on_new_thread(auto function) { std::thread(std::move(function)).join(); }

}  // namespace weft::test
