// SPDX-License-Identifier: MIT
// Four producers and four consumers on four loops, all of them cancelled at any moment and started
// again: nothing is lost, nothing comes twice.
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;

#if defined(__OPTIMIZE__)
constexpr std::size_t kItemsHere = 10'000'000;
#else
constexpr std::size_t kItemsHere = 1'000'000;
#endif
constexpr std::size_t kItems = kSanitized ? 1'000'000 : kItemsHere;

// Is in one place at a time: what was moved from has no number.
class Item {
 public:
  explicit Item(std::int64_t number) noexcept : number_(number) {}
  Item(Item&& other) noexcept : number_(std::exchange(other.number_, kGone)) {}
  Item& operator=(Item&& other) noexcept {
    number_ = std::exchange(other.number_, kGone);
    return *this;
  }
  [[nodiscard]] bool is_here() const noexcept { return number_ != kGone; }
  [[nodiscard]] std::int64_t number() const noexcept { return number_; }

 private:
  static constexpr std::int64_t kGone = -1;
  std::int64_t number_;
};

class ChannelStress : public StressTest {
 protected:
  static constexpr std::size_t kLoops = 4;
  static constexpr std::size_t kBatch = 7;

  ChannelStress() {
    for (LoopThread& loop : loops_) watch_loop(&loop);
  }
  ~ChannelStress() override { forget_loops(); }

  // One after the other, until one of them has done all. Each is cancelled at some time.
  template <class Session>
  static Task<void> in_sessions(Session& session, Random& random) {
    for (bool over = false; !over;) {
      books().started();
      StartedTask<void> started = session().start_in_current_scope();
      if (random.one_in(64)) {
        co_await sleep_for(std::chrono::microseconds(random.below(100)));
      } else {
        co_await yields(static_cast<int>(random.below(6)));
      }
      started.cancel();
      Outcome<void> how = co_await started.outcome();
      over = !how.is_cancelled();
    }
  }

  // What a session did not get rid of, the next one sends: `batch` outlives them.
  Task<void> produce(Channel<Item>& channel, std::int64_t first, std::size_t count, Random random) {
    Wanderer life;
    std::int64_t next = first;
    const std::int64_t end = first + static_cast<std::int64_t>(count);
    std::vector<Item> batch;
    std::span<Item> rest;
    auto session = [&]() -> Task<void> {
      Wanderer inner;
      for (;;) {
        if (rest.empty()) {
          if (next == end) co_return;
          batch.clear();
          for (std::size_t i = random.one_in(4) ? kBatch : 1; i > 0 && next < end; --i)
            batch.emplace_back(next++);
          rest = batch;
        }
        if (rest.size() > 1 && random.one_in(2)) {
          EXPECT_TRUE(co_await channel.send_all(rest));
        } else {
          EXPECT_TRUE(rest.front().is_here());
          if (random.one_in(8)) {
            if (!channel.try_send(std::move(rest.front()))) {
              co_await yield();
              continue;
            }
          } else {
            EXPECT_TRUE(co_await channel.send(std::move(rest.front())));
          }
          EXPECT_FALSE(rest.front().is_here());
          rest = rest.subspan(1);
        }
      }
    };
    co_await in_sessions(session, random);
    if (producers_.fetch_sub(1, std::memory_order_relaxed) == 1) channel.close();
  }

  void note(Item item) {
    EXPECT_TRUE(item.is_here());
    seen_[static_cast<std::size_t>(item.number())].fetch_add(1, std::memory_order_relaxed);
  }
  Task<void> consume(Channel<Item>& channel, Random random) {
    Wanderer life;
    auto session = [&]() -> Task<void> {
      Wanderer inner;
      for (;;) {
        if (random.one_in(8)) {
          std::vector<Item> items = co_await channel.receive_up_to(1 + random.below(8));
          if (items.empty()) co_return;
          for (Item& item : items) note(std::move(item));
        } else {
          std::optional<Item> item = co_await channel.receive();
          if (!item) co_return;
          note(std::move(*item));
        }
        round();
      }
    };
    co_await in_sessions(session, random);
  }

  void exchange(Channel<Item>& channel, std::size_t items) {
    seen_ = std::vector<std::atomic<std::uint8_t>>(items);
    producers_ = kLoops;
    const std::size_t each = items / kLoops;
    for (std::size_t i = 0; i < kLoops; ++i) {
      books().started(2);
      loops_[i].lease().start(consume(channel, random(2 * i + 1)));
      loops_[i].lease().start(
          produce(channel, static_cast<std::int64_t>(i * each), each, random(2 * i + 2)));
    }
    wait_until_all_ended();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < each * kLoops; ++i) wrong += seen_[i] == 1 ? 0 : 1;
    EXPECT_EQ(wrong, 0u) << "were lost or came twice";
  }

 private:
  LoopThread loops_[kLoops];
  std::vector<std::atomic<std::uint8_t>> seen_;
  std::atomic<std::size_t> producers_{0};
};

TEST_F(ChannelStress, NothingIsLostAndNothingComesTwice) {
  Channel<Item> channel(64);
  exchange(channel, kItems * 7 / 10);
}

TEST_F(ChannelStress, NorWithASingleSlot) {
  Channel<Item> channel(1);
  exchange(channel, kItems / 10);
}

TEST_F(ChannelStress, NorHandToHand) {
  Channel<Item> channel(0);
  exchange(channel, kItems / 10);
}

TEST_F(ChannelStress, NorInAnUnboundedOneAtItsMaximum) {
  Channel<Item> channel = Channel<Item>::unbounded("stress", 1024);
  exchange(channel, kItems / 10);
}

}  // namespace
