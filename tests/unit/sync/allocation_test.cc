// SPDX-License-Identifier: MIT
// L11 for sync/: no wait allocates, whether it ends well or is cancelled.
#include "support/counted_allocations.h"
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

constexpr int kWarmUp = 4;
constexpr int kRounds = 50;

struct SyncAllocationTest : LoopTest<VirtualLoop> {
  // Frames are the pool's, and not counted here.
  template <class Fn>
  void expect_no_allocation(Fn round) {
    auto measured = [&]() -> Task<void> {
      for (int i = 0; i < kWarmUp; ++i) co_await round();
      CountedAllocations counted;
      for (int i = 0; i < kRounds; ++i) co_await round();
      EXPECT_EQ(counted.news(), 0u);
    };
    run(loop, measured());
  }
};

TEST_F(SyncAllocationTest, ChannelWaits) {
  Channel<int> channel(1);
  auto sends = [&]() -> Task<void> {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(co_await channel.send(int(i)));
  };
  auto round = [&]() -> Task<void> {
    StartedTask<void> sender = sends().start_in_current_scope();
    for (int i = 0; i < 4; ++i) {  // it waits, and the sender does
      std::optional<int> item = co_await channel.receive();
      EXPECT_EQ(*item, i);
      if (i == 1) co_await yield();
    }
    co_await std::move(sender);
    auto late = co_await timeout(1ms, channel.receive());
    EXPECT_FALSE(late);
  };
  expect_no_allocation(round);
}

// The halves' block, and nothing for the wait.
TEST_F(SyncAllocationTest, OneshotTakesOneBlock) {
  auto receives = [](OneshotReceiver<int>& receiver) -> Task<void> {
    std::optional<int> value = co_await receiver.receive();
    EXPECT_EQ(value, 1);
  };
  auto measured = [&]() -> Task<void> {
    for (int i = 0; i < kWarmUp; ++i) {
      CountedAllocations counted;
      auto [sender, receiver] = oneshot<int>();
      StartedTask<void> waits = receives(receiver).start_in_current_scope();
      co_await yields(2);
      EXPECT_TRUE(sender.send(1));
      co_await std::move(waits);
      EXPECT_LE(counted.news(), 1u);
    }
  };
  run(loop, measured());
}

TEST_F(SyncAllocationTest, WaitsForWatchAndBroadcast) {
  Watch<int> watch(1);
  Broadcast<int> broadcast(1);
  auto subscriber = broadcast.subscribe();
  auto round = [&]() -> Task<void> {
    auto changed = co_await timeout(1ms, watch.until_changed());
    EXPECT_FALSE(changed);
    auto received = co_await timeout(1ms, subscriber.receive());
    EXPECT_FALSE(received);
  };
  expect_no_allocation(round);
}

TEST_F(SyncAllocationTest, AnUnboundedChannelKeepsAChunk) {
  auto channel = Channel<int>::unbounded();
  auto round = [&]() -> Task<void> {
    constexpr int kMoreThanAChunk = 1500;
    for (int i = 0; i < kMoreThanAChunk; ++i) EXPECT_TRUE(co_await channel.send(int(i)));
    for (int i = 0; i < kMoreThanAChunk; ++i) static_cast<void>(co_await channel.receive());
  };
  expect_no_allocation(round);
}

}  // namespace
