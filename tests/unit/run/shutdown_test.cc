// SPDX-License-Identifier: MIT
// The shutdown matrix: who says stop, and what is under way then. Each ends as L12 says: run() returns
// when everything is gone, and nothing is leaked.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;

enum class Who { before_run, task, scheduled_task, timer_callback, thread, signal_handler };
enum class Busy { nothing, parked_tasks, posts, kicks, blocking_honours, blocking_ignores, churn };

const char* name_of(Who who) {
  constexpr const char* names[] = {"BeforeRun",     "Task",   "ScheduledTask",
                                   "TimerCallback", "Thread", "SignalHandler"};
  return names[static_cast<int>(who)];
}
const char* name_of(Busy busy) {
  constexpr const char* names[] = {"Nothing", "Parked",  "Posts", "Kicks",
                                   "Honours", "Ignores", "Churn"};
  return names[static_cast<int>(busy)];
}

using Case = std::tuple<Who, Busy, unsigned>;

std::atomic<int> live = 0;

struct Alive {
  Alive() { ++live; }
  Alive(const Alive&) { ++live; }
  ~Alive() { --live; }
};

Task<void> waits(Alive) { co_await suspend_forever(); }
Task<void> short_lived(Alive) { co_await yield(); }

// Work that goes on until it is cancelled.
Task<void> keep_posting(EventLoop& to, std::atomic<int>& posted, std::atomic<int>& arrived) {
  Alive alive;
  for (;;) {
    if (to.post([&arrived] { ++arrived; })) ++posted;
    co_await yield();
  }
}
Task<void> keep_kicking(IOContext& ctx) {
  Alive alive;
  for (;;) {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 4; ++i) n.schedule(waits(Alive()));
      co_await yield();
      co_return cancel;
    };
    co_await with_nursery(body);
    ctx.schedule(short_lived(Alive()));
  }
}
Task<void> keep_moving(IOContext& ctx) {
  Alive alive;
  for (std::size_t at = 0;; ++at) {
    co_await resume_on(ctx.loop(at % ctx.workers()));
    co_await on(ctx.loop((at + 1) % ctx.workers()), short_lived(Alive()));
    co_await sleep_for(10us);
  }
}
Task<void> blocks(bool honours, std::atomic<int>& running) {
  Alive alive;
  auto work = [&running, honours](StopToken stop) {
    ++running;
    auto until = std::chrono::steady_clock::now() + (honours ? 10s : 20ms);
    while (std::chrono::steady_clock::now() < until && !(honours && stop.stop_requested())) {
      std::this_thread::sleep_for(200us);
    }
    --running;
  };
  co_await blocking(work);
}

IOContext* signalled = nullptr;
void stop_it(int) { signalled->stop(); }

class ShutdownTest : public ::testing::TestWithParam<Case> {
 protected:
  ShutdownTest() { live = 0; }
  ~ShutdownTest() override { EXPECT_EQ(live, 0) << "something was not destroyed"; }

  void make_busy(IOContext& ctx, Busy busy) {
    switch (busy) {
      case Busy::nothing:
        break;
      case Busy::parked_tasks:
        for (int i = 0; i < 50; ++i) ctx.schedule(waits(Alive()));
        break;
      case Busy::posts:
        for (std::size_t i = 0; i < 2 * ctx.workers(); ++i) {
          ctx.schedule(keep_posting(ctx.loop(i % ctx.workers()), posted, arrived));
        }
        break;
      case Busy::kicks:
        for (int i = 0; i < 4; ++i) ctx.schedule(keep_kicking(ctx));
        break;
      case Busy::blocking_honours:
      case Busy::blocking_ignores:
        for (int i = 0; i < 3; ++i) ctx.schedule(blocks(busy == Busy::blocking_honours, running));
        break;
      case Busy::churn:
        for (int i = 0; i < 8; ++i) ctx.schedule(keep_moving(ctx));
        break;
    }
  }

  std::atomic<int> posted = 0, arrived = 0, running = 0;
};

Task<void> stop_soon(IOContext& ctx) {
  co_await sleep_for(3ms);
  ctx.stop();
  co_await suspend_forever();
}

TEST_P(ShutdownTest, EndsAndLeavesNothing) {
  auto [who, busy, workers] = GetParam();
  IOContext ctx{{.workers = workers}};
  make_busy(ctx, busy);
  std::thread stopper;
  switch (who) {
    case Who::before_run:
      ctx.stop();
      ctx.run();
      break;
    case Who::task:
      ctx.run(stop_soon(ctx));
      break;
    case Who::scheduled_task:
      ctx.schedule(stop_soon(ctx));
      ctx.run();
      break;
    case Who::timer_callback: {
      auto post = [&]() -> Task<void> {
        co_await sleep_for(2ms);
        ctx.loop(0).post([&] { ctx.stop(); });
        co_await suspend_forever();
      };
      ctx.run(post());
      break;
    }
    case Who::thread:
      stopper = std::thread([&] {
        std::this_thread::sleep_for(3ms);
        ctx.stop();
      });
      ctx.run();
      break;
    case Who::signal_handler: {
      signalled = &ctx;
      auto before = std::signal(SIGUSR2, &stop_it);
      pthread_t runner = pthread_self();
      stopper = std::thread([runner] {
        std::this_thread::sleep_for(3ms);
        pthread_kill(runner, SIGUSR2);
      });
      ctx.run();
      std::signal(SIGUSR2, before);
      break;
    }
  }
  if (stopper.joinable()) stopper.join();
  EXPECT_EQ(running, 0);
  EXPECT_EQ(posted, arrived) << "what was posted was run";
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, ShutdownTest,
    ::testing::Combine(::testing::Values(Who::before_run, Who::task, Who::scheduled_task,
                                         Who::timer_callback, Who::thread, Who::signal_handler),
                       ::testing::Values(Busy::nothing, Busy::parked_tasks, Busy::posts,
                                         Busy::kicks, Busy::blocking_honours,
                                         Busy::blocking_ignores, Busy::churn),
                       ::testing::Values(1u, 2u, 4u)),
    [](const ::testing::TestParamInfo<Case>& info) {
      return std::string(name_of(std::get<0>(info.param))) + name_of(std::get<1>(info.param)) +
             std::to_string(std::get<2>(info.param));
    });

TEST(ShutdownWarning, NamesTheBlockingWorkThatIgnoresItsToken) {
  test::LogCapture log;
  std::atomic<int> running = 0;
  live = 0;
  IOContext ctx{{.workers = 2, .shutdown_warn = 2ms}};
  ctx.schedule(blocks(false, running));
  auto main = [&]() -> Task<void> {
    while (running == 0) co_await sleep_for(100us);
    ctx.stop();
  };
  ctx.run(main());
  std::string all;
  for (const std::string& line : log.take()) all += line + "\n";
  EXPECT_NE(all.find("stop() waits"), std::string::npos) << all;
  EXPECT_NE(all.find("blocking"), std::string::npos) << all;
}

TEST(ShutdownWarning, IsNotGivenWhereNoneIsDue) {
  test::LogCapture log;
  IOContext ctx{{.workers = 2}};
  ctx.schedule(test::parked());
  ctx.stop();
  ctx.run();
  for (const std::string& line : log.take()) {
    EXPECT_EQ(line.find("stop() waits"), std::string::npos) << line;
  }
}

}  // namespace
