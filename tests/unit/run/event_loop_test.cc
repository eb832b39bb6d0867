// SPDX-License-Identifier: MIT
#include "weft/run/event_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;

class LoopOn : public ::testing::TestWithParam<Driver> {
 protected:
  EventLoop loop{{.driver = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Drivers, LoopOn,
                         ::testing::Values(Driver::io_uring, Driver::epoll, Driver::poll),
                         [](auto& info) { return std::string(to_string(info.param)); });

TEST_P(LoopOn, RunsATaskAndAnother) {
  EXPECT_EQ(run(loop, just(1)), 1);
  EXPECT_EQ(run(loop, just(2)), 2);
  EXPECT_EQ(loop.driver(), GetParam());
}

TEST_P(LoopOn, MayBeDrivenByOneThreadAfterTheOther) {
  std::thread([&] { EXPECT_EQ(run(loop, just(1)), 1); }).join();
  EXPECT_EQ(run(loop, just(2)), 2);
}

TEST_P(LoopOn, PostsFromOtherThreadsRunHere) {
  std::thread::id here = std::this_thread::get_id();
  std::atomic<int> count = 0;
  std::thread poster;
  auto main = [&]() -> Task<void> {
    poster = std::thread([&] {
      for (int i = 0; i < 1000; ++i) {
        EXPECT_TRUE(loop.post([&] {
          EXPECT_EQ(std::this_thread::get_id(), here);
          ++count;
        }));
      }
    });
    while (count < 1000) co_await sleep_for(100us);
  };
  run(loop, main());
  poster.join();
  EXPECT_FALSE(loop.post([] {})) << "closed between two runs";
}

// Deadlines are nanoseconds; the kernel adds its slack.
TEST_P(LoopOn, SleepsAsLongAsAskedFor) {
  auto main = []() -> Task<void> {
    for (auto asked : {1us, 300us, 2000us}) {
      auto before = std::chrono::steady_clock::now();
      co_await sleep_for(asked);
      EXPECT_GE(std::chrono::steady_clock::now() - before, asked);
    }
  };
  run(loop, main());
}

TEST_P(LoopOn, TimersGoOffInTheOrderOfTheirDeadlines) {
  std::vector<int> order;
  auto sleeper = [&](int number, std::chrono::microseconds time) -> Task<void> {
    co_await sleep_for(time);
    order.push_back(number);
  };
  auto main = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(sleeper(3, 900us));
      n.start(sleeper(1, 100us));
      n.start(sleeper(2, 500us));
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, main());
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

// A turn has a part for everyone.
TEST_P(LoopOn, ATaskThatYieldsForEverStarvesNeitherTimersNorPostsNorIO) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  Descriptor in{UniqueFd(pipe_ends[0])}, out{UniqueFd(pipe_ends[1])};
  bool posted = false, slept = false, read = false;
  auto busy = [&]() -> Task<void> {
    while (!posted || !slept || !read) co_await yield();
  };
  auto sleeps = [&]() -> Task<void> {
    co_await sleep_for(1ms);
    slept = true;
  };
  auto reads = [&]() -> Task<void> {
    std::byte byte[1];
    Result<std::size_t> got = co_await in.read(std::span(byte));
    EXPECT_TRUE(got);
    read = true;
  };
  std::thread other;
  auto main = [&]() -> Task<void> {
    other = std::thread([&] {
      std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(loop.post([&] { posted = true; }));
      EXPECT_EQ(::write(out.number(), "x", 1), 1);
    });
    co_await all_of(busy(), sleeps(), reads());
  };
  run(loop, main());
  other.join();
}

TEST_P(LoopOn, ZeroAndPastDeadlinesYieldOnce) {
  std::vector<int> order;
  auto one = [&](int number) -> Task<void> {
    order.push_back(number);
    co_await sleep_for(0s);
    order.push_back(number);
    co_await sleep_until(now() - 1h);
    order.push_back(number);
  };
  run(loop, all_of(one(1), one(2)));
  EXPECT_EQ(order, (std::vector{1, 2, 1, 2, 1, 2}));
}

TEST_P(LoopOn, StopEndsTheRun) {
  std::thread stopper([&] {
    std::this_thread::sleep_for(2ms);
    loop.stop();
  });
  EXPECT_THROW(run(loop, test::parked()), TaskCancelled);
  stopper.join();
}

TEST_P(LoopOn, WakeWithNothingToDoIsHarmless) {
  std::thread waker([&] {
    for (int i = 0; i < 100; ++i) loop.wake();
  });
  run(loop, sleep_for(2ms));
  waker.join();
}

TEST_P(LoopOn, ATimerOnOneLoopIsCancelledFromAnother) {
  weft::testing::LoopThread other;
  auto main = [&]() -> Task<void> {
    auto sleeper = sleep_for(1h);
    auto task = on(other.executor(), std::move(sleeper));
    auto result = co_await timeout(1ms, std::move(task));
    EXPECT_FALSE(result);
  };
  run(loop, main());
}

// Two loops that answer each other at once learn to spin, and stop to wake each other.
TEST(EventLoopSpin, TwoBusyLoopsExchangeMessagesWithoutTheKernel) {
  if (std::thread::hardware_concurrency() < 2) return;  // it never spins there
  IOContext ctx{{.workers = 2, .spin = 50ms}};
  std::uint64_t woken = 0;
  auto main = [&]() -> Task<void> {
    auto hops = [&](int count) -> Task<void> {
      for (int i = 0; i < count; ++i) {
        co_await resume_on(ctx.loop(1));
        co_await resume_on(ctx.loop(0));
      }
    };
    co_await hops(200);
    auto before = co_await ctx.statistics();
    co_await hops(2000);
    auto after = co_await ctx.statistics();
    woken = after[1].loop.wakeups - before[1].loop.wakeups;
  };
  ctx.run(main());
  EXPECT_LT(woken, 1000u);
}

TEST(EventLoopSpin, CanBeSwitchedOff) {
  IOContext ctx{{.workers = 2, .spin = 0ns}};
  auto main = [&]() -> Task<void> {
    for (int i = 0; i < 50; ++i) {
      co_await resume_on(ctx.loop(1));
      co_await resume_on(ctx.loop(0));
    }
    auto all = co_await ctx.statistics();
    EXPECT_EQ(all[0].loop.spins + all[1].loop.spins, 0u);
  };
  ctx.run(main());
}

// --- The driver ---------------------------------------------------------------------------------

class DriverVariable {
 public:
  explicit DriverVariable(const char* value) {
    if (const char* before = std::getenv("WEFT_DRIVER")) before_ = before;
    setenv("WEFT_DRIVER", value, 1);
  }
  ~DriverVariable() {
    if (before_.empty()) {
      unsetenv("WEFT_DRIVER");
    } else {
      setenv("WEFT_DRIVER", before_.c_str(), 1);
    }
  }

 private:
  std::string before_;
};

TEST(DriverChoice, TheEnvironmentOverrides) {
  DriverVariable variable("poll");
  EventLoop loop{{.driver = Driver::epoll}};
  EXPECT_EQ(loop.driver(), Driver::poll);
  EXPECT_EQ(run(loop, just(1)), 1);
}

TEST(DriverChoice, AnUnknownNameIsRefused) {
  DriverVariable variable("kqueue");
  EXPECT_THROW(EventLoop(), UsageError);
}

TEST(DriverChoice, AutomaticIsNeverWhatRuns) {
  EXPECT_NE(choose_driver(Driver::automatic), Driver::automatic);
}

TEST(EventLoopSignals, ABrokenPipeIsAnErrorAndNoSignal) {
  EventLoop loop;
  struct sigaction now;
  ::sigaction(SIGPIPE, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

}  // namespace
