// SPDX-License-Identifier: MIT
#include "weft/core/frame_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "weft/base/assert.h"
#include "weft/core/frame_return.h"

namespace {

using namespace weft::detail;
using weft::flush_foreign_frames;
using weft::frame_stats;
using weft::FrameAllocator;
using weft::FrameStats;
using weft::set_frame_allocator;
using weft::trim_frames;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

#define SKIP_UNLESS_POOLED() \
  if (!frames_are_pooled()) GTEST_SKIP() << "frames go straight to the allocator in this build"

// A block with a pattern in it, so that two owners of one byte notice.
struct Block {
  explicit Block(std::size_t size) : memory(allocate_frame(size)), bytes(size) { fill(); }
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
    release_frame(memory, bytes);
  }
  void* memory;
  std::size_t bytes;
};

void on_new_thread(auto function) { std::thread(std::move(function)).join(); }

TEST(FramePool, BlocksAreAlignedAndDistinctInEverySize) {
  std::vector<Block> blocks;
  for (std::size_t bytes = 0; bytes <= kPooledFrameBytesMax + 4096;
       bytes += bytes < 2048 ? 7 : 501) {
    blocks.emplace_back(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().memory) % kFrameAlignment, 0u);
  }
  for (const Block& block : blocks) block.release();
}

TEST(FramePool, ASizeClassWastesAtMostAFifth) {
  SKIP_UNLESS_POOLED();
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
  SKIP_UNLESS_POOLED();
  on_new_thread([] {
    void* first = allocate_frame(144);
    release_frame(first, 144);
    void* second = allocate_frame(140);  // the same class
    EXPECT_EQ(second, first);
    release_frame(second, 140);
  });
}

TEST(FramePool, AMillionSmallFramesCostTheirClassAndNoMore) {
  SKIP_UNLESS_POOLED();
  on_new_thread([] {
    constexpr std::size_t kFrames = 100'000;  // the ratio is the million's
    std::vector<void*> frames(kFrames);
    for (void*& frame : frames) frame = allocate_frame(144);
    EXPECT_LT(static_cast<double>(frame_stats().slab_bytes) / kFrames, 145.0);
    for (void* frame : frames) release_frame(frame, 144);
  });
}

TEST(FramePool, StatsCountTheCallsOfThisThread) {
  on_new_thread([] {
    EXPECT_EQ(frame_stats().blocks_handed_out, 0u);
    void* small = allocate_frame(100);
    void* large = allocate_frame(kPooledFrameBytesMax + 1);
    FrameStats stats = frame_stats();
    EXPECT_EQ(stats.blocks_handed_out, 2u);
    EXPECT_EQ(stats.blocks_live, 2);
    release_frame(small, 100);
    release_frame(large, kPooledFrameBytesMax + 1);
    stats = frame_stats();
    EXPECT_EQ(stats.blocks_handed_out, 2u);
    EXPECT_EQ(stats.blocks_released, 2u);
    EXPECT_EQ(stats.blocks_live, 0);
  });
}

// L8: whatever comes and goes, the memory held is what the peak needed.
TEST(FramePool, MemoryIsFlatUnderChurn) {
  SKIP_UNLESS_POOLED();
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
  SKIP_UNLESS_POOLED();
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

TEST(FramePool, TrimGivesIdleMemoryBackAndKeepsWhatIsLive) {
  SKIP_UNLESS_POOLED();
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
  SKIP_UNLESS_POOLED();
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
  SKIP_UNLESS_POOLED();
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
  SKIP_UNLESS_POOLED();
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
  SKIP_UNLESS_POOLED();
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

TEST(FramePool, BlocksOutliveTheirThread) {
  std::vector<Block> blocks;
  on_new_thread([&] {
    for (int i = 0; i < 3000; ++i) blocks.emplace_back(16 + i % 700);
  });
  for (const Block& block : blocks) EXPECT_TRUE(block.intact());
  for (const Block& block : blocks) block.release();
  trim_frames();
}

TEST(FramePool, AnOrphanedSlabIsUnmappedWithItsLastBlock) {
  SKIP_UNLESS_POOLED();
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

// The race of a thread's exit against the last releases of its blocks, on several threads.
TEST(FramePool, ExitRacingReleasesLosesNoBlock) {
  constexpr int kRounds = 60;
  constexpr int kReleasers = 3;
  const std::int64_t slabs_before = frame_slabs_everywhere();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::vector<Block>> blocks(kReleasers);
    std::latch made(1);
    std::thread owner([&] {
      for (int i = 0; i < 40 * kReleasers; ++i)
        blocks[i % kReleasers].emplace_back(48 + 16 * (i % 9));
      made.count_down();
      for (int i = 0; i < round; ++i) Block(48).release();  // exits a little later every round
    });
    std::vector<std::thread> releasers;
    for (int r = 0; r < kReleasers; ++r) {
      releasers.emplace_back([&, r] {
        made.wait();
        for (const Block& block : blocks[r]) block.release();
      });
    }
    owner.join();
    for (auto& thread : releasers) thread.join();
    ASSERT_EQ(frame_slabs_everywhere(), slabs_before) << "round " << round;
  }
}

// Blocks wander: each thread allocates, passes on, and releases what it is passed.
TEST(FramePool, ManyThreadsPassingBlocksAroundKeepThemIntact) {
  constexpr int kThreads = 3;
  constexpr int kSteps = 20'000;
  trim_frames();
  const std::int64_t slabs_before = frame_slabs_everywhere();
  std::mutex mutex;
  std::vector<Block> market;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int step = 0; step < kSteps; ++step) {
        const Block mine(16 + random() % 900);
        std::optional<Block> other;
        {
          std::lock_guard lock(mutex);
          market.push_back(mine);
          if (market.size() > 200) {
            std::swap(market[random() % market.size()], market.back());
            other = market.back();
            market.pop_back();
          }
        }
        if (other) other->release();
        if (step % 1000 == 0) trim_frames();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Block& block : market) block.release();
  flush_foreign_frames();
  EXPECT_EQ(frame_slabs_everywhere(), slabs_before);
}

// Frames may be made and released after a thread's pool has gone, by another library's exit hook:
// here in the last round of hooks that there is, after which nobody cleans up. A sanitizer needs
// that one for itself.
constexpr int kLateRound = PTHREAD_DESTRUCTOR_ITERATIONS - (kSanitized ? 1 : 0);

struct LateUser {
  Block own;
  int rounds = 0;
};

TEST(FramePool, WorksAfterTheThreadsPoolHasGone) {
  Block(32).release();  // the pool's key is made before ours, so its hook runs first
  const std::int64_t slabs_before = frame_slabs_everywhere();
  static pthread_key_t key;
  static bool done = false;
  const auto use_late = [](void* value) {
    auto* user = static_cast<LateUser*>(value);
    if (++user->rounds < kLateRound) {
      ::pthread_setspecific(key, user);
      return;
    }
    user->own.release();
    Block(kPooledFrameBytesMax * 2).release();
    Block(200).release();
    delete user;
    done = true;
  };
  ASSERT_EQ(::pthread_key_create(&key, use_late), 0);
  on_new_thread([] { ::pthread_setspecific(key, new LateUser{Block(144)}); });
  ::pthread_key_delete(key);
  EXPECT_TRUE(done);
  EXPECT_EQ(frame_slabs_everywhere(), slabs_before);
}

struct Bump {
  std::atomic<int> live{0};
  bool refuse = false;
  static void* allocate(std::size_t bytes, void* context) {
    auto* self = static_cast<Bump*>(context);
    if (self->refuse) return nullptr;
    ++self->live;
    return std::aligned_alloc(16, (bytes + 15) / 16 * 16);
  }
  static void release(void* block, std::size_t, void* context) noexcept {
    --static_cast<Bump*>(context)->live;
    std::free(block);
  }
  FrameAllocator hook{&allocate, &release, this};
};

TEST(FrameAllocator, TakesThePlaceOfThePool) {
  Bump bump;
  set_frame_allocator(&bump.hook);
  const Block small(100), large(100'000);
  EXPECT_EQ(bump.live, 2);
  small.release();
  on_new_thread([&] { large.release(); });
  EXPECT_EQ(bump.live, 0);
  set_frame_allocator(nullptr);
  Block(100).release();
  EXPECT_EQ(bump.live, 0);
}

TEST(FrameAllocator, IsRefusedWhileAFrameIsLiveAnywhere) {
  Bump bump;
  const Block mine(100);
  EXPECT_THROW(set_frame_allocator(&bump.hook), weft::UsageError);
  mine.release();

  std::optional<Block> orphan;
  on_new_thread([&] { orphan.emplace(100); });
  EXPECT_THROW(set_frame_allocator(&bump.hook), weft::UsageError);
  on_new_thread([&] { orphan->release(); });

  set_frame_allocator(&bump.hook);
  const Block hooked(100);
  EXPECT_THROW(set_frame_allocator(nullptr), weft::UsageError);
  EXPECT_EQ(bump.live, 1);
  hooked.release();
  set_frame_allocator(nullptr);
}

TEST(FrameAllocator, NullIsBadAlloc) {
  Bump bump;
  bump.refuse = true;
  set_frame_allocator(&bump.hook);
  const auto before = frame_stats().blocks_handed_out;
  EXPECT_THROW((void)allocate_frame(100), std::bad_alloc);
  EXPECT_EQ(frame_stats().blocks_handed_out, before);  // or switching back would be refused
  set_frame_allocator(nullptr);
}

// In a process of its own, because it takes away the address space.
void exhaust_memory() {
  Block warm(144);
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
  SKIP_UNLESS_POOLED();
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs the address space";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exhaust_memory(), testing::ExitedWithCode(0), "bad_alloc after few");
}

#ifndef NDEBUG
TEST(FramePoolDeathTest, AWrongSizeIsNamedInDebugBuilds) {
  SKIP_UNLESS_POOLED();
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

// Runs after the thread-locals of the main thread have gone.
struct AtProcessEnd {
  ~AtProcessEnd() {
    if (!block) return;
    block->release();
    Block(144).release();
    std::fprintf(stderr, "served to the end\n");
  }
  std::optional<Block> block;
};
AtProcessEnd at_process_end;

TEST(FramePoolDeathTest, ServesStaticDestructors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        at_process_end.block.emplace(144);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "served to the end");
}

}  // namespace
