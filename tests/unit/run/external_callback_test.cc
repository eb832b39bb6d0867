// SPDX-License-Identifier: MIT
// Callbacks that come on threads that weft knows nothing of.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

TEST(ExternalCallback, BecomesATaskOfTheContext) {
  constexpr int kThreads = 3, kEvents = 200;
  for (unsigned workers : {1u, 2u, 4u}) {
    IOContext ctx{{.workers = workers}};
    std::atomic<int> handled = 0, on_a_worker = 0;
    auto handle = [&](int) -> Task<> {
      if (IOContext::current_or_null() == &ctx) ++on_a_worker;
      co_await ctx.sleep_for(0ms);
      if (++handled == kThreads * kEvents) ctx.stop();
    };
    auto on_external_ready = [&](int event) { ctx.schedule(handle, event); };
    std::vector<std::jthread> devices;
    for (int i = 0; i < kThreads; ++i) {
      devices.emplace_back([&] {
        for (int k = 0; k < kEvents; ++k) on_external_ready(k);
      });
    }
    ctx.run();
    EXPECT_EQ(handled, kThreads * kEvents);
    EXPECT_EQ(on_a_worker, kThreads * kEvents);
  }
}

TEST(ExternalCallback, WakesAContextThatSleeps) {
  IOContext ctx{{.workers = 2}};
  std::latch sleeping(1);
  auto handle = [&]() -> Task<> {
    ctx.stop();
    co_return;
  };
  std::jthread device([&] {
    sleeping.wait();
    std::this_thread::sleep_for(2ms);
    ctx.schedule(handle);
  });
  auto main = [&]() -> Task<> {
    sleeping.count_down();
    co_await suspend_forever();
  };
  ctx.run(main());
}

TEST(ExternalCallback, OneThatIsAwaitedBringsItsTaskHome) {
  IOContext ctx{{.workers = 2}};
  auto main = []() -> Task<> {
    std::thread::id home = std::this_thread::get_id();
    std::jthread device;
    auto begin = [&](auto done) { device = std::jthread([done] { done(17); }); };
    EXPECT_EQ(co_await until_callback<void(int)>(begin), 17);
    EXPECT_EQ(std::this_thread::get_id(), home);
  };
  ctx.run(main());
}

// What a device still says when the context has ended waits for the next run(), or goes with it.
TEST(ExternalCallback, AfterTheEndIsNotLost) {
  IOContext ctx{{.workers = 2}};
  ctx.run(returns(0));
  std::atomic<int> handled = 0;
  auto handle = [&]() -> Task<> {
    ++handled;
    co_return;
  };
  std::thread([&] { ctx.schedule(handle); }).join();
  EXPECT_EQ(handled, 0);
  ctx.run(returns(0));
  EXPECT_EQ(handled, 1);
  std::thread([&] { ctx.schedule(handle); }).join();
}

}  // namespace
