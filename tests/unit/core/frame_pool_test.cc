// SPDX-License-Identifier: MIT
// The pool itself. Under a sanitizer this is in a program of its own, which keeps the pool
// (tests/CMakeLists.txt).
#include "weft/core/frame_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/frame_block.h"
#include "weft/core/frame_return.h"

namespace {

using namespace weft::detail;
using weft::flush_foreign_frames;
using weft::frame_stats;
using weft::trim_frames;
using weft::test::Block;
using weft::test::on_new_thread;

TEST(FramePool, IsWhereFramesComeFromHere) { ASSERT_TRUE(frames_are_pooled()); }

TEST(FramePool, ASizeClassWastesAtMostAFifth) {
  for (std::size_t bytes = 1; bytes <= kPooledFrameBytesMax; ++bytes) {
    const std::size_t taken = frame_block_bytes(bytes);
    ASSERT_GE(taken, bytes);
    ASSERT_EQ(taken % kFrameAlignment, 0u);
    ASSERT_LT(taken - bytes, std::max<std::size_t>(kFrameAlignment, bytes / 4)) << bytes;
    ASSERT_EQ(frame_block_bytes(taken), taken);
  }
  EXPECT_EQ(frame_block_bytes(kPooledFrameBytesMax + 1), kPooledFrameBytesMax + 1);
}

TEST(FramePool, ALoneReleasedBlockIsTheNextOneHandedOut) {
  on_new_thread([] {
    void* first = allocate_frame(144);
    release_frame(first, 144);
    void* second = allocate_frame(140);  // the same class
    EXPECT_EQ(second, first);
    release_frame(second, 140);
  });
}

TEST(FramePool, AMillionSmallFramesCostTheirClassAndNoMore) {
  on_new_thread([] {
    constexpr std::size_t kFrames = 100'000;  // the ratio is the million's
    std::vector<void*> frames(kFrames);
    for (void*& frame : frames) frame = allocate_frame(144);
    EXPECT_LT(static_cast<double>(frame_stats().slab_bytes) / kFrames, 145.0);
    for (void* frame : frames) release_frame(frame, 144);
  });
}

// L8: whatever comes and goes, the memory held is what the peak needed.
TEST(FramePool, MemoryIsFlatUnderChurn) {
  on_new_thread([] {
    std::mt19937 random(1);
    std::vector<Block> live;
    std::uint64_t held_early = 0;
    for (int step = 0; step < 200'000; ++step) {
      if (live.size() < 300 && random() % 2 == 0) {
        live.emplace_back(16 + random() % 400);
      } else if (!live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        live.back().release();
        live.pop_back();
      }
      if (step == 20'000) held_early = frame_stats().slab_bytes;
    }
    EXPECT_LE(frame_stats().slab_bytes, held_early + 2 * kSlabBytes);
    for (const Block& block : live) block.release();
  });
}

// One size after the other, never trimmed: the slabs of the first serve the second.
TEST(FramePool, EmptySlabsOfOneSizeServeAnother) {
  on_new_thread([] {
    constexpr int kFrames = 30'000;
    std::uint64_t peak = 0;
    for (std::size_t bytes : {128, 144, 160, 176, 192, 208, 224, 240}) {
      std::vector<Block> frames;
      for (int i = 0; i < kFrames; ++i) frames.emplace_back(bytes);
      for (const Block& block : frames) block.release();
      peak = std::max(peak, frame_stats().slab_bytes);
    }
    EXPECT_LT(peak, 3ull * kFrames * 240);
  });
}

// Frames that come back in any order are handed out again by address, but for the slab in use.
TEST(FramePool, EmptySlabsHandOutInAddressOrderAgain) {
  on_new_thread([] {
    constexpr std::size_t kFrames = 20'000;
    std::vector<void*> frames(kFrames);
    const auto rises = [&] {
      std::size_t count = 0;
      for (std::size_t i = 1; i < kFrames; ++i) count += frames[i - 1] < frames[i];
      return count;
    };
    for (int round = 0; round < 3; ++round) {
      for (void*& frame : frames) frame = allocate_frame(144);
      EXPECT_GT(rises(), kFrames * 95 / 100) << "round " << round;
      std::shuffle(frames.begin(), frames.end(), std::mt19937(round));
      for (void* frame : frames) release_frame(frame, 144);
    }
  });
}

// The ranges of this process's memory for which huge pages were asked for.
std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges_with_huge_pages() {
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges;
  std::ifstream maps("/proc/self/smaps");
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  for (std::string line; std::getline(maps, line);) {
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) continue;
    if (line.starts_with("VmFlags:") && line.contains(" hg")) ranges.emplace_back(begin, end);
  }
  return ranges;
}

// All but its first 4 MiB; and its memory is counted and goes back as before.
TEST(FramePool, ALargePoolAsksForHugePages) {
  on_new_thread([] {
    constexpr std::size_t kFrames = 8 * kHugeMappingBytes / 144;
    std::vector<void*> frames(kFrames);
    for (void*& frame : frames) frame = allocate_frame(144);
    EXPECT_LT(static_cast<double>(frame_stats().slab_bytes) / kFrames, 145.0);
    const auto ranges = ranges_with_huge_pages();
    const auto is_huge = [&](void* frame) {
      const auto address = reinterpret_cast<std::uintptr_t>(frame);
      return std::ranges::any_of(ranges, [&](const auto& range) {
        return range.first <= address && address < range.second;
      });
    };
    EXPECT_GT(std::ranges::count_if(frames, is_huge), kFrames * 3 / 4);
    for (void* frame : frames) release_frame(frame, 144);
    trim_frames();
    EXPECT_LE(frame_stats().slab_bytes, kIdleSlabsKept * kSlabBytes);
  });
}

TEST(FramePool, TrimGivesIdleMemoryBackAndKeepsWhatIsLive) {
  on_new_thread([] {
    constexpr std::size_t kFrames = 100'000;
    std::vector<Block> frames;
    for (std::size_t i = 0; i < kFrames; ++i) frames.emplace_back(144);
    const Block kept = frames[kFrames / 2];
    frames.erase(frames.begin() + kFrames / 2);
    const std::uint64_t peak = frame_stats().slab_bytes;
    for (const Block& block : frames) block.release();
    EXPECT_EQ(frame_stats().slab_bytes, peak);
    trim_frames();
    EXPECT_LE(frame_stats().slab_bytes, (kIdleSlabsKept + 1) * kSlabBytes);
    EXPECT_TRUE(kept.intact());
    kept.release();
    trim_frames();
    EXPECT_LE(frame_stats().slab_bytes, kIdleSlabsKept * kSlabBytes);
    Block again(144);  // and the pool still works
    again.release();
  });
}

TEST(FramePool, TrimLeavesAWorkingSetInPlace) {
  on_new_thread([] {
    const std::array<std::size_t, 3> sizes{144, 304, 2000};
    std::array<void*, 3> first{};
    for (std::size_t i = 0; i < 3; ++i) first[i] = allocate_frame(sizes[i]);
    for (std::size_t i = 0; i < 3; ++i) release_frame(first[i], sizes[i]);
    trim_frames();
    for (std::size_t i = 0; i < 3; ++i) {
      void* again = allocate_frame(sizes[i]);
      EXPECT_EQ(again, first[i]);
      release_frame(again, sizes[i]);
    }
  });
}

TEST(FramePool, ABlockReleasedElsewhereComesHomeWithItsBatch) {
  on_new_thread([] {
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < kOutgoingBatchMax; ++i) blocks.push_back(allocate_frame(1000));
    on_new_thread([&] {
      for (std::size_t i = 0; i + 1 < kOutgoingBatchMax; ++i) release_frame(blocks[i], 1000);
      EXPECT_EQ(frame_stats().blocks_outgoing, kOutgoingBatchMax - 1);
      EXPECT_EQ(frame_stats().blocks_live, -static_cast<int>(kOutgoingBatchMax - 1));
      release_frame(blocks.back(), 1000);  // full: handed over
      EXPECT_EQ(frame_stats().blocks_outgoing, 0u);
    });
    // The owner finds them once its own free list is empty, before it touches fresh memory.
    std::set<void*> home;
    for (std::size_t i = 0; i < 4 + kOutgoingBatchMax; ++i) home.insert(allocate_frame(1000));
    for (void* block : blocks) EXPECT_TRUE(home.contains(block));
    EXPECT_EQ(frame_stats().slab_bytes, kSlabBytes);
    for (void* block : home) release_frame(block, 1000);
  });
}

TEST(FramePool, FlushTrimAndThreadExitEachHandOverAPartialBatch) {
  for (auto flush : {+[] { flush_foreign_frames(); }, +[] { trim_frames(); }, +[] {}}) {
    on_new_thread([flush] {
      void* block = allocate_frame(16'000);  // three to a slab
      on_new_thread([&] {
        release_frame(block, 16'000);
        EXPECT_EQ(frame_stats().blocks_outgoing, 1u);
        flush();
        EXPECT_LE(frame_stats().blocks_outgoing, 1u);
      });
      // It is home again, or its slab could not hold three.
      std::array<void*, 3> all{};
      for (void*& one : all) one = allocate_frame(16'000);
      EXPECT_NE(std::find(all.begin(), all.end(), block), all.end());
      EXPECT_EQ(frame_stats().slab_bytes, kSlabBytes);
      for (void* one : all) release_frame(one, 16'000);
    });
  }
}

TEST(FramePool, AThreadHoldsNoMoreForOthersThanItsBound) {
  const std::int64_t slabs_before = frame_slabs_everywhere();
  constexpr std::size_t kOwners = kOutgoingOwnersMax + 3;
  std::vector<std::vector<Block>> blocks(kOwners);
  std::latch made(kOwners), done(1);
  std::vector<std::thread> owners;
  for (std::size_t i = 0; i < kOwners; ++i) {
    owners.emplace_back([&, i] {
      for (int k = 0; k < 500; ++k) blocks[i].emplace_back(64 + 16 * (k % 5));
      made.count_down();
      done.wait();
    });
  }
  on_new_thread([&] {
    made.wait();
    for (int k = 0; k < 500; ++k) {
      for (auto& of_owner : blocks) of_owner[k].release();
      EXPECT_LT(frame_stats().blocks_outgoing, kOutgoingOwnersMax * kOutgoingBatchMax);
    }
  });
  done.count_down();
  for (auto& owner : owners) owner.join();
  EXPECT_EQ(frame_slabs_everywhere(), slabs_before);  // each block went to its own owner
}

TEST(FramePool, AnOrphanedSlabIsUnmappedWithItsLastBlock) {
  const std::int64_t before = frame_slabs_everywhere();
  std::vector<void*> blocks;
  on_new_thread([&] {
    for (int i = 0; i < 50; ++i) blocks.push_back(allocate_frame(512));
    release_frame(allocate_frame(8000), 8000);
    EXPECT_EQ(frame_slabs_everywhere(), before + 2);
  });
  EXPECT_EQ(frame_slabs_everywhere(), before + 1);  // nothing was live in the other one
  while (blocks.size() > 1) {
    release_frame(blocks.back(), 512);
    blocks.pop_back();
  }
  flush_foreign_frames();
  EXPECT_EQ(frame_slabs_everywhere(), before + 1);
  release_frame(blocks.back(), 512);
  flush_foreign_frames();
  EXPECT_EQ(frame_slabs_everywhere(), before);
}

// In a process of its own, because it takes away the address space.
void exhaust_memory() {
  Block warm(144);
  // A first throw, so that the second needs no memory that the process does not have yet.
  try {
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
  }
  const rlimit none{.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &none);
  std::size_t made = 0;
  try {
    for (;; ++made) (void)allocate_frame(8192);
  } catch (const std::bad_alloc&) {
  }
  const rlimit all{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &all);
  Block again(8192);  // nothing is broken by the failure
  again.release();
  std::fprintf(stderr, "bad_alloc after %s\n", made < 1000 ? "few" : "many");
  std::_Exit(again.memory != nullptr ? 0 : 1);
}

TEST(FramePoolDeathTest, RunningOutOfMemoryIsBadAlloc) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exhaust_memory(), testing::ExitedWithCode(0), "bad_alloc after few");
}

#ifndef NDEBUG
TEST(FramePoolDeathTest, AWrongSizeIsNamedInDebugBuilds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(release_frame(allocate_frame(100), 200), "released with the size");
}
#endif

TEST(FrameReturns, PushedChainsAreTakenNewestFirst) {
  FrameReturns returns;
  std::array<FrameBlock, 4> b{};
  b[0].next = &b[1];
  EXPECT_EQ(returns.take(), nullptr);
  EXPECT_TRUE(returns.push(&b[0], &b[1]));
  EXPECT_TRUE(returns.push(&b[2], &b[2]));
  EXPECT_EQ(returns.take(), &b[2]);
  EXPECT_EQ(b[2].next, &b[0]);
  EXPECT_EQ(b[1].next, nullptr);
  EXPECT_TRUE(returns.push(&b[3], &b[3]));
  EXPECT_EQ(returns.close(), &b[3]);
  EXPECT_FALSE(returns.push(&b[0], &b[1]));
}

// The flag is relaxed and orders nothing: what orders is the stack. For TSan to judge.
TEST(FrameReturns, WhatWasDoneWithABlockHappensBeforeItsTake) {
  for (auto take : {&FrameReturns::take, &FrameReturns::close}) {
    FrameReturns returns;
    FrameBlock block{};
    int written_before = 0;
    std::atomic<bool> pushed{false};
    std::thread pusher([&] {
      written_before = 1;
      EXPECT_TRUE(returns.push(&block, &block));
      pushed.store(true, std::memory_order_relaxed);
    });
    while (!pushed.load(std::memory_order_relaxed)) std::this_thread::yield();
    EXPECT_EQ((returns.*take)()->next, nullptr);
    EXPECT_EQ(written_before, 1);
    pusher.join();
  }
}

// Likewise: who pays last sees what the others did before they paid, and what the owner did before
// it settled.
TEST(FrameDebt, TheLastPayerComesAfterAllOthers) {
  for (bool owner_first : {true, false}) {
    FrameDebt debt;
    int by_owner = 0, by_payer = 0;
    std::atomic<bool> paid{false};
    const auto settle = [&] { return by_owner = 1, debt.settle(1); };
    const auto repay = [&] { return by_payer = 1, debt.repay(); };
    std::thread first([&] {
      EXPECT_FALSE(owner_first ? settle() : repay());
      paid.store(true, std::memory_order_relaxed);
    });
    while (!paid.load(std::memory_order_relaxed)) std::this_thread::yield();
    EXPECT_TRUE(owner_first ? repay() : settle());
    EXPECT_EQ(by_owner + by_payer, 2);
    first.join();
  }
}

TEST(FrameDebt, ExactlyOneCallSeesItPaid) {
  FrameDebt later;  // settled before, between and after the repayments
  EXPECT_FALSE(later.settle(2));
  EXPECT_FALSE(later.repay());
  EXPECT_TRUE(later.repay());
  FrameDebt between;
  EXPECT_FALSE(between.repay());
  EXPECT_FALSE(between.settle(2));
  EXPECT_TRUE(between.repay());
  FrameDebt before;
  EXPECT_FALSE(before.repay());
  EXPECT_FALSE(before.repay());
  EXPECT_TRUE(before.settle(2));
  FrameDebt none;
  EXPECT_TRUE(none.settle(0));
}

}  // namespace
