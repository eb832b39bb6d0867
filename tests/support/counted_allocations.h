// SPDX-License-Identifier: MIT
#pragma once
// CountedAllocations: how often global operator new and the frame pool were asked, on this thread,
// since it was made.
//
// It replaces global operator new and delete: include it in one file of an executable, no more.
// Under a sanitizer it does not, because that brings its own and checks more with them: there only
// frames are counted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "support/loop_fixture.h"
#include "weft/core/frame_pool.h"

namespace weft::test {

inline constinit thread_local std::uint64_t global_news = 0;

// From now on there is no memory on this thread, until it is set back.
inline constinit thread_local bool global_new_fails = false;

inline void* counted_new(std::size_t bytes, std::size_t align) {
  ++global_news;
  if (global_new_fails) throw std::bad_alloc();
  if (bytes == 0) bytes = 1;
  void* block = align <= alignof(std::max_align_t)
                    ? std::malloc(bytes)
                    : std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (!block) throw std::bad_alloc();
  return block;
}

class CountedAllocations {
 public:
  CountedAllocations() noexcept : news_(global_news), blocks_(frame_stats().blocks_handed_out) {}

  // Calls of global operator new; 0 under a sanitizer. The pool maps its slabs, they do not count.
  [[nodiscard]] std::uint64_t news() const noexcept { return global_news - news_; }
  // Frames handed out.
  [[nodiscard]] std::uint64_t blocks() const noexcept {
    return frame_stats().blocks_handed_out - blocks_;
  }

 private:
  std::uint64_t news_;
  std::uint64_t blocks_;
};

}  // namespace weft::test

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#if !defined(__has_feature)
#define WEFT_TEST_REPLACES_NEW
#elif !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define WEFT_TEST_REPLACES_NEW
#endif
#endif

#ifdef WEFT_TEST_REPLACES_NEW
void* operator new(std::size_t bytes) { return weft::test::counted_new(bytes, 0); }
void* operator new[](std::size_t bytes) { return weft::test::counted_new(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t align) {
  return weft::test::counted_new(bytes, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t bytes, std::align_val_t align) {
  return weft::test::counted_new(bytes, static_cast<std::size_t>(align));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
#endif
