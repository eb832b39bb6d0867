// SPDX-License-Identifier: MIT
// A context with nothing to do costs nothing: neither processor time nor wake-ups.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;

// A sanitizer has a thread of its own, which looks around ten times a second.
constexpr std::chrono::nanoseconds kAllowed = test::kSanitized ? 50ms : 1ms;

std::chrono::nanoseconds processor_time() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

class IdleTest : public ::testing::TestWithParam<Driver> {};
INSTANTIATE_TEST_SUITE_P(Drivers, IdleTest,
                         ::testing::Values(Driver::io_uring, Driver::epoll, Driver::poll),
                         [](auto& info) { return std::string(to_string(info.param)); });

TEST_P(IdleTest, FourWorkersWithoutWorkUseNoProcessor) {
  IOContext ctx{{.workers = 4, .driver = GetParam()}};
  std::chrono::nanoseconds used{};
  std::thread observer([&] {
    std::this_thread::sleep_for(200ms);  // threads start, and spin for the last time
    auto before = processor_time();
    std::this_thread::sleep_for(2s);
    used = processor_time() - before;
    ctx.stop();
  });
  std::atomic<int> count = 0;
  auto touch = [&]() -> Task<void> {
    ++count;
    co_return;
  };
  for (int i = 0; i < 1000; ++i) ctx.schedule(touch);  // they have worked once
  ctx.run();
  observer.join();
  EXPECT_EQ(count, 1000);
  EXPECT_LT(used, kAllowed);
}

TEST_P(IdleTest, AnIdleWorkerIsNotWoken) {
  IOContext ctx{{.workers = 4, .driver = GetParam()}};
  std::vector<IOContext::WorkerStatistics> before, after;
  auto main = [&]() -> Task<void> {
    co_await sleep_for(100ms);
    before = co_await ctx.statistics();
    co_await sleep_for(300ms);
    after = co_await ctx.statistics();
  };
  ctx.run(main());
  for (std::size_t i = 1; i < 4; ++i) {
    // One visit by statistics(): one wake-up, and the turns around it.
    EXPECT_LE(after[i].loop.wakeups - before[i].loop.wakeups, 1u);
    EXPECT_LE(after[i].loop.sleeps - before[i].loop.sleeps, 3u);
    EXPECT_LE(after[i].loop.turns - before[i].loop.turns, 3u);  // nor does it stay awake
  }
}

}  // namespace
