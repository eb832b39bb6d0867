// SPDX-License-Identifier: MIT
// Frames' blocks in the hands of many threads: released elsewhere, sent home, given back when idle,
// and left behind by threads that exit. The pool is on here in every build, under sanitizers too.
#include "support/frame_block.h"
#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;

using Held = Exchange<Block>;

class FramePoolStress : public StressTest {
 protected:
  FramePoolStress() : slabs_before_(detail::frame_slabs_everywhere()) {
    EXPECT_TRUE(detail::frames_are_pooled());
  }
  ~FramePoolStress() override {
    flush_foreign_frames();
    EXPECT_EQ(detail::frame_slabs_everywhere(), slabs_before_);
  }

  // Makes a block, leaves it with the others, and releases what it finds in its place.
  static void pass_on(Held& held, Random& random) {
    // Mostly one size, so that blocks are used again by whoever made them; now and then any.
    std::size_t bytes = random.one_in(4) ? 16 + random.below(3000) : 144;
    if (auto found = held.swap(std::make_unique<Block>(bytes), random)) found->release();
    round();
  }
  static void release_all(Held& held, Random& random) {
    for (int i = 0; i < 2000; ++i) {  // that often for sixteen places: none is missed
      if (auto found = held.swap(nullptr, random)) found->release();
    }
  }

 private:
  std::int64_t slabs_before_;
};

// Threads that live on: batches go home when they are full, flushed, or at an idle moment.
TEST_F(FramePoolStress, BlocksReleasedElsewhereGoHome) {
  Held held;
  std::vector<std::thread> threads;
  for (std::uint64_t stream = 1; stream <= 3; ++stream) {
    threads.emplace_back([&, random = random(stream)]() mutable {
      FrameTally::touch();
      for (std::size_t i = 0; i < rounds(100'000); ++i) {
        pass_on(held, random);
        if (random.one_in(64)) flush_foreign_frames();
        if (random.one_in(256)) trim_frames();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  Random random = this->random(4);
  release_all(held, random);
}

// Threads that exit while others hold blocks of theirs, and push them at that moment.
TEST_F(FramePoolStress, ThreadsExitAmongTheirBlocks) {
  Held held;
  std::vector<std::thread> drivers;
  for (std::uint64_t stream = 1; stream <= 2; ++stream) {
    drivers.emplace_back([&, random = random(stream)]() mutable {
      FrameTally::touch();
      for (std::size_t i = 0; i < rounds(2'000); ++i) {
        std::thread([&held, random = random.split()]() mutable {
          FrameTally::touch();
          for (unsigned left = random.below(60); left > 0; --left) pass_on(held, random);
        }).join();
        pass_on(held, random);
        if (random.one_in(8)) flush_foreign_frames();
      }
    });
  }
  for (auto& driver : drivers) driver.join();
  Random random = this->random(3);
  release_all(held, random);
}

}  // namespace
