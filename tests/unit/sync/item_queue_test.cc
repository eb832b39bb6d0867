// SPDX-License-Identifier: MIT
#include "weft/sync/item_queue.h"

#include <gtest/gtest.h>

#include <deque>

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

TEST(ItemQueue, KeepsTheAlignmentOfItsValues) {
  weft::detail::ItemQueue<Wide> queue(2);
  queue.push(Wide{1});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&queue.front()) % alignof(Wide), 0u);
}

}  // namespace
