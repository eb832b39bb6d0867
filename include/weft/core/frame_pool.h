// SPDX-License-Identifier: MIT
#pragma once
// The frame pool: where coroutine frames come from.
//
// A released frame is soon handed out again: per thread, per size, last in, first out, with no lock
// and no atomic read-modify-write. A frame may be released on any thread; it goes home in a batch.
// Under ASan, TSan and MSan every frame is an allocation of its own, so that the sanitizer sees
// each; the counters still count. docs/design/frames.md says how and why.
//
// Threads        every function, any thread; each works on the calling thread's pool.
// Memory order   what a thread did with a block happens before the block is handed out again.
// Allocation     slabs from the operating system; frames above kPooledFrameBytesMax, and all frames
//                under sanitizers, from ::operator new.
// Lifetime       usable before main, and in thread-local and static destructors.
//
// Invariants
//   I1  a block lies in one slab, and a slab belongs to one pool, of one thread, until it is
//       unmapped.
//   I2  a slab's free list and counters are touched by its owner thread only, and by nobody once
//       that has exited.
//   I3  a block is in one place: in use, spare, on its slab's free list, in one outgoing batch, or
//       on its owner's returns. Only in the free list does its slab count it as taken back.
//   I4  a slab is unmapped only when every block handed out of it was taken back or repaid, and a
//       pool is freed only after all its slabs. So whoever holds a block may read that block's
//       slab, and the slab's pool.
#include <cstddef>
#include <cstdint>

#include "weft/core/frame_cache.h"  // allocate_frame(), release_frame()

namespace weft::inline v0 {

// What the calls made on one thread add up to.
struct FrameStats {
  std::uint64_t blocks_handed_out = 0;  // since the thread's first frame
  std::uint64_t blocks_released = 0;    // likewise; whoever made them
  std::int64_t blocks_live = 0;         // the difference: negative on a thread that mostly releases
                                        // others' frames, exact when summed over all threads
  std::uint64_t blocks_outgoing = 0;    // released here, owned elsewhere, not yet handed over
  std::uint64_t slab_bytes = 0;         // memory held for pooled blocks, in use or idle
};

// Returns: the figures of the calling thread; O(1).
[[nodiscard]] FrameStats frame_stats() noexcept;

// Gives the calling thread's idle memory back to the operating system, all but kIdleSlabsKept slabs
// of it, after handing over what it holds of others and taking in what others returned. For a loop
// that is about to sleep: a few nanoseconds if nothing was released since the last call, otherwise
// O(slabs), never O(blocks).
void trim_frames() noexcept;

// Hands over the blocks of other threads that this one has released and still holds. A few
// nanoseconds if there are none. At most kOutgoingOwnersMax * kOutgoingBatchMax blocks wait for
// this, for trim_frames() or for thread exit.
void flush_foreign_frames() noexcept;

// A user's allocator in the place of the pool.
struct FrameAllocator {
  // Returns: 16-aligned memory. May throw; nullptr is reported as std::bad_alloc.
  void* (*allocate)(std::size_t bytes, void* context);
  // Requires: may be called on any thread; `bytes` is as allocated.
  void (*release)(void* block, std::size_t bytes, void* context) noexcept;
  void* context;
};

// Replaces the pool, process-wide; nullptr restores it. Do it at start-up.
//
// Requires: no frame is live in the process, because a block must go back where it came from; no
//           other thread makes or releases one during the call; `*allocator` outlives its use.
// Throws:   UsageError if a frame is live; nothing was changed.
void set_frame_allocator(const FrameAllocator* allocator);

namespace detail {

// Size classes: every 16 bytes up to kFineFrameBytesMax, four per doubling up to this. What is
// larger is left to ::operator new.
inline constexpr std::size_t kPooledFrameBytesMax = 16 * 1024;

// Address space is asked for by the sixteen slabs; pages cost memory only when carved.
inline constexpr std::size_t kSlabsPerMapping = 16;
// A thread with this many slabs (4 MiB) asks for huge pages from there on: a million sleeping tasks
// lie on so many small ones that each touch also misses the TLB.
inline constexpr std::size_t kHugePagesFromSlabs = 64;
inline constexpr std::size_t kHugePageBytes = 2 << 20;
inline constexpr std::size_t kHugeMappingBytes = 2 * kHugePageBytes;
// Fresh memory enters a free list a page at a time, so that untouched pages stay untouched.
inline constexpr std::size_t kCarveBytes = 4096;
// 2 MiB per thread survive a trim: what an idling loop uses again in its next turn.
inline constexpr std::size_t kIdleSlabsKept = 32;
// Growing past this many slabs, or past twice what the last look found in use, first looks for
// empty ones.
inline constexpr std::size_t kSweepSlabsMin = 64;

// A thread collects blocks for this many owners at once, and this many blocks for each.
inline constexpr std::size_t kOutgoingOwnersMax = 8;
inline constexpr std::size_t kOutgoingBatchMax = 32;

// The bytes that a frame of this size takes up: its size class, or itself if it is not pooled.
[[nodiscard]] std::size_t frame_block_bytes(std::size_t bytes) noexcept;

// Whether frames are pooled in this build: false under sanitizers.
[[nodiscard]] bool frames_are_pooled() noexcept;

// The slabs that exist in the process, orphaned ones too. For tests that nothing is left behind.
[[nodiscard]] std::int64_t frame_slabs_everywhere() noexcept;

}  // namespace detail

}  // namespace weft::inline v0
