// SPDX-License-Identifier: MIT
// What holds for frames wherever they come from: the pool, a sanitizer's malloc, a user's
// allocator.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "support/frame_block.h"
#include "weft/base/assert.h"
#include "weft/core/frame_pool.h"

namespace {

using namespace weft::detail;
using weft::flush_foreign_frames;
using weft::frame_stats;
using weft::FrameAllocator;
using weft::FrameStats;
using weft::set_frame_allocator;
using weft::trim_frames;
using weft::test::Block;
using weft::test::on_new_thread;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

TEST(FrameAllocation, BlocksAreAlignedAndDistinctInEverySize) {
  std::vector<Block> blocks;
  for (std::size_t bytes = 0; bytes <= kPooledFrameBytesMax + 4096;
       bytes += bytes < 2048 ? 7 : 501) {
    blocks.emplace_back(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().memory) % kFrameAlignment, 0u);
  }
  for (const Block& block : blocks) block.release();
}

TEST(FrameAllocation, StatsCountTheCallsOfThisThread) {
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

TEST(FrameAllocation, BlocksOutliveTheirThread) {
  std::vector<Block> blocks;
  on_new_thread([&] {
    for (int i = 0; i < 3000; ++i) blocks.emplace_back(16 + i % 700);
  });
  for (const Block& block : blocks) EXPECT_TRUE(block.intact());
  for (const Block& block : blocks) block.release();
  trim_frames();
}

// The race of a thread's exit against the last releases of its blocks, on several threads.
TEST(FrameAllocation, ExitRacingReleasesLosesNoBlock) {
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
TEST(FrameAllocation, ManyThreadsPassingBlocksAroundKeepThemIntact) {
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

TEST(FrameAllocation, WorksAfterTheThreadsPoolHasGone) {
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

TEST(FrameAllocationDeathTest, ServesStaticDestructors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        at_process_end.block.emplace(144);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "served to the end");
}

}  // namespace
