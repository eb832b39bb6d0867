// SPDX-License-Identifier: MIT
#pragma once
// The part of the frame pool that is inlined into every coroutine: one spare block per size.
//
// A task that awaits one child after another makes and frees one frame again and again. That frame
// passes from release_frame() to allocate_frame() through a spare place: one store, one load, and
// the pool proper (frame_pool.h) does not hear of it. Inlined, because two calls per await are felt
// when an await costs 8 nanoseconds.
//
// A thread-local in a coroutine is safe here: it is read in the ramp, or in destroy, and used
// before anything suspends. clang takes its address anew after each suspension; on g++ a suspended
// coroutine has left the function that took it.
//
// Invariants
//   F1  a spare block is of this pool, of this size class and in nobody's use.
//   F2  there are no spares while frames are not pooled: under a user's allocator, under
//       sanitizers.
#include <cstddef>
#include <cstdint>
#include <new>

#include "weft/atomic/atomic.h"
#include "weft/core/frame_return.h"

namespace weft::inline v0::detail {

inline constexpr std::size_t kFrameAlignment = 16;
// Size classes: every 16 bytes up to this bound; what is larger is in frame_pool.cc.
inline constexpr std::size_t kFineFrameBytesMax = 1024;
inline constexpr std::size_t kFineClasses = kFineFrameBytesMax / kFrameAlignment + 1;
// A slab is aligned to its size: a block's slab is found by masking. Its header is 64 bytes, under
// 0.1 %, and begins with the pool that it belongs to.
inline constexpr std::size_t kSlabBytes = 64 * 1024;

constexpr std::size_t fine_class_of(std::size_t bytes) noexcept {
  return (bytes + kFrameAlignment - 1) / kFrameAlignment;
}

struct FrameCache {
  // One writer, the owner, so that counting needs no read-modify-write; others may read.
  Atomic<std::uint64_t> handed_out{0};
  Atomic<std::uint64_t> released{0};
  FrameBlock* spares[kFineClasses] = {};

  static void count_one(Atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(relaxed) + 1, relaxed);
  }
};

// The calling thread's, or one without spares that is never written. Trivially destructible: usable
// until the thread's last instruction. initial-exec: one instruction to reach, also in a shared
// library; a pointer is little enough for one that is loaded late.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local FrameCache* this_frame_cache;

// False under sanitizers and while a user's allocator is in place. relaxed: it changes only while
// no frame is live.
extern constinit Atomic<bool> frames_pooled;

// The rest of the two functions below. Requires: of this size there is no spare, or none may be
// left; it is larger; it is another thread's; or frames are not pooled.
[[nodiscard, gnu::noinline]] void* allocate_frame_slow(std::size_t bytes);
[[gnu::noinline]] void release_frame_slow(void* block, std::size_t bytes) noexcept;

// Returns: 16-aligned memory. Throws std::bad_alloc.
[[nodiscard]] inline void* allocate_frame(std::size_t bytes) {
  if (bytes <= kFineFrameBytesMax) {
    FrameCache& cache = *this_frame_cache;
    FrameBlock*& spare = cache.spares[fine_class_of(bytes)];
    if (FrameBlock* block = spare) [[likely]] {
      spare = nullptr;
      FrameCache::count_one(cache.handed_out);
      return block;
    }
  }
  return allocate_frame_slow(bytes);
}

// Requires: `block` came from allocate_frame(bytes), on any thread.
inline void release_frame(void* block, std::size_t bytes) noexcept {
#ifdef NDEBUG  // debug builds look at every block on the other path
  if (bytes <= kFineFrameBytesMax && frames_pooled.load(relaxed)) [[likely]] {
    FrameCache& cache = *this_frame_cache;
    FrameBlock*& spare = cache.spares[fine_class_of(bytes)];
    auto slab = reinterpret_cast<std::uintptr_t>(block) & ~(kSlabBytes - 1);
    if (*reinterpret_cast<FrameCache**>(slab) == &cache && !spare) [[likely]] {
      spare = ::new (block) FrameBlock;
      FrameCache::count_one(cache.released);
      return;
    }
  }
#endif
  release_frame_slow(block, bytes);
}

}  // namespace weft::inline v0::detail
