// SPDX-License-Identifier: MIT
#include "weft/sync/item_queue.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <new>
#include <optional>
#include <random>

namespace {

using Queue = weft::detail::ItemQueue<int>;

struct alignas(64) Wide {
  int value;
};

void push(Queue& queue, int value) {
  if (queue.must_grow()) queue.grow(queue.make_chunk());
  queue.push(std::move(value));
}
int pop(Queue& queue, Queue::Chunks& retired) {
  const int value = queue.front();
  queue.pop(retired);
  return value;
}
int count(const Queue::Chunks& chunks) {
  int found = 0;
  for (const Queue::Chunk* each = chunks.get(); each; each = each->next) ++found;
  return found;
}

TEST(ItemQueue, ARingGoesRound) {
  Queue queue(3);
  Queue::Chunks retired;
  std::deque<int> expected;
  for (int i = 0; i < 100; ++i) {
    if (!queue.full()) {
      push(queue, i);
      expected.push_back(i);
    }
    if (i % 3 == 0 || queue.full()) {
      EXPECT_EQ(pop(queue, retired), expected.front());
      expected.pop_front();
    }
    EXPECT_EQ(queue.size(), expected.size());
  }
  EXPECT_EQ(count(retired), 0);
}

TEST(ItemQueue, AGrowingOneGivesItsChunksBackButOne) {  // Q3, L8
  constexpr int kStep = 4;
  Queue queue(Queue::Growing{100, kStep});
  for (int round = 0; round < 3; ++round) {
    Queue::Chunks retired;
    for (int i = 0; i < 40; ++i) push(queue, i);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(pop(queue, retired), i);
    EXPECT_EQ(count(retired), 40 / kStep - 2) << "the last, and one that is free, stay";
  }
}

TEST(ItemQueue, AtItsMaximumAGrowingOneReplacesItsFirstForEver) {  // Q4
  Queue queue(Queue::Growing{6, 4});
  EXPECT_EQ(queue.capacity(), 8u);
  for (int offset = 0; offset < 4; ++offset) {
    Queue::Chunks retired;
    for (int i = 0; i < offset; ++i) push(queue, -1);
    for (int i = 0; i < 8 - offset; ++i) push(queue, i);
    for (int i = 0; i < offset; ++i) static_cast<void>(pop(queue, retired));
    for (int i = 8 - offset; i < 8; ++i) push(queue, i);
    if (queue.must_grow()) queue.grow(queue.make_chunk());  // what a sender does before it waits
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(pop(queue, retired), i);
      ASSERT_FALSE(queue.must_grow());
      queue.push(i + 8);
    }
    while (!queue.empty()) static_cast<void>(pop(queue, retired));
  }
}

TEST(ItemQueue, ACapacityThatNoMemoryHoldsIsRefused) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  EXPECT_THROW(Queue{kMost}, std::bad_alloc);
  EXPECT_THROW(Queue{kMost / sizeof(int) + 1}, std::bad_alloc);
  EXPECT_THROW((Queue{Queue::Growing{kMost, kMost}}), std::bad_alloc);
  Queue growing(Queue::Growing{kMost, 4});
  EXPECT_EQ(growing.capacity(), kMost - 3) << "whole chunks";
  push(growing, 1);
  EXPECT_EQ(growing.front(), 1);
}

TEST(ItemQueue, OneThatMayNotGrowIsARendezvous) {
  Queue queue(Queue::Growing{0, 4});
  EXPECT_EQ(queue.capacity(), 0u);
  EXPECT_TRUE(queue.full());
  EXPECT_FALSE(queue.must_grow());
  EXPECT_FALSE(queue.try_push(1, 0));
}

// Whatever is pushed and popped at one end, or under both locks, in whatever order: what comes out is what went in.
TEST(ItemQueue, BothWaysInAndOutAgree) {
  constexpr std::uint32_t kHome = 1;
  auto program = [](auto& queue, unsigned seed) {
    std::minstd_rand random(seed);
    std::deque<int> expected;
    Queue::Chunks retired;
    for (int i = 0; i < 2000; ++i) {
      // In waves, so that it is full and empty now and then.
      const bool wants_push = random() % 10 < (i / 50 % 2 ? 3u : 7u);
      const bool at_one_end = random() % 3 != 0;
      if (wants_push && !queue.full()) {
        if (!at_one_end || !queue.try_push(int(i), kHome)) push(queue, i);
        expected.push_back(i);
      } else if (!wants_push && !queue.empty()) {
        std::optional<int> item;
        if (!at_one_end || !queue.try_pop(item, kHome)) item = pop(queue, retired);
        ASSERT_EQ(*item, expected.front()) << "seed " << seed;
        expected.pop_front();
      }
      ASSERT_EQ(queue.size(), expected.size()) << "seed " << seed;
      if (queue.full()) {
        ASSERT_FALSE(queue.try_push(0, kHome));
      }
      std::optional<int> none;
      if (queue.empty()) {
        ASSERT_FALSE(queue.try_pop(none, kHome));
      }
    }
  };
  for (unsigned seed = 1; seed <= 20; ++seed) {
    for (std::size_t capacity : {1, 2, 3, 7, 64}) {
      Queue ring(capacity);
      program(ring, seed);
    }
    for (std::size_t step : {1, 2, 5}) {
      Queue growing(Queue::Growing{10, step});
      program(growing, seed);
    }
  }
}

TEST(ItemQueue, ABarStopsOneEndAtOnceAndWhileItStands) {
  constexpr std::uint32_t kHome = 1;
  Queue queue(8);
  std::optional<int> item;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.try_push(int(i), kHome));
  EXPECT_TRUE(queue.try_pop(item, kHome));
  queue.bar(true, false);
  EXPECT_FALSE(queue.try_push(4, kHome));
  EXPECT_FALSE(queue.try_push(4, kHome));
  EXPECT_TRUE(queue.try_pop(item, kHome));
  queue.bar(false, true);
  EXPECT_TRUE(queue.try_push(4, kHome));
  EXPECT_FALSE(queue.try_pop(item, kHome));
  EXPECT_FALSE(queue.try_pop(item, kHome));
  queue.bar(false, false);
  EXPECT_TRUE(queue.try_pop(item, kHome));
  EXPECT_EQ(item, 2);
}

TEST(ItemQueue, KeepsTheAlignmentOfItsValues) {
  weft::detail::ItemQueue<Wide> queue(2);
  queue.push(Wide{1});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&queue.front()) % alignof(Wide), 0u);
}

}  // namespace
