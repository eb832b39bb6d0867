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
    if (at % 8 == 7) co_await sleep_for(10us);
  }
}
// What blocks, on the pool's threads.
struct Work {
  std::atomic<int> begun = 0, running = 0;
  std::atomic<int> heard = 0;  // ended because its token said so
};
Task<void> blocks(bool honours, Work& all) {
  Alive alive;
  auto work = [&all, honours](StopToken stop) {
    ++all.running;
    ++all.begun;
    auto until = std::chrono::steady_clock::now() + (honours ? 10s : 20ms);
    while (std::chrono::steady_clock::now() < until && !(honours && stop.stop_requested())) {
      std::this_thread::sleep_for(200us);
    }
    if (honours && stop.stop_requested()) ++all.heard;
    --all.running;
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
        blockers = 3;
        for (int i = 0; i < blockers; ++i) {
          ctx.schedule(blocks(busy == Busy::blocking_honours, work));
        }
        break;
      case Busy::churn:
        for (int i = 0; i < 32; ++i) ctx.schedule(keep_moving(ctx));
        break;
    }
  }

  // A while, so that everybody is at it; and until all that shall block does.
  Task<void> until_busy() {
    co_await sleep_for(3ms);
    while (work.begun < blockers) co_await sleep_for(100us);
  }
  void wait_until_busy() {
    std::this_thread::sleep_for(3ms);
    while (work.begun < blockers) std::this_thread::sleep_for(100us);
  }
  Task<void> stop_soon(IOContext& ctx) {
    co_await until_busy();
    ctx.stop();
    co_await suspend_forever();
  }
  // Not on the worker that has to decide, if there is another.
  Task<void> stop_from_afar(IOContext& ctx) {
    co_await resume_on(ctx.loop(ctx.workers() - 1));
    co_await stop_soon(ctx);
  }

  std::atomic<int> posted = 0, arrived = 0;
  Work work;
  int blockers = 0;  // how many of them
};

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
      ctx.schedule(stop_from_afar(ctx));
      ctx.run();
      break;
    case Who::timer_callback: {
      auto post = [&]() -> Task<void> {
        co_await until_busy();
        ctx.loop(0).post([&] { ctx.stop(); });
        co_await suspend_forever();
      };
      ctx.run(post());
      break;
    }
    case Who::thread:
      stopper = std::thread([&] {
        wait_until_busy();
        ctx.stop();
      });
      ctx.run();
      break;
    case Who::signal_handler: {
      signalled = &ctx;
      auto before = std::signal(SIGUSR2, &stop_it);
      pthread_t runner = pthread_self();
      stopper = std::thread([this, runner] {
        wait_until_busy();
        pthread_kill(runner, SIGUSR2);
      });
      ctx.run();
      std::signal(SIGUSR2, before);
      break;
    }
  }
  if (stopper.joinable()) stopper.join();
  EXPECT_EQ(posted, arrived) << "what was posted was run";
  EXPECT_EQ(posted > 0, busy == Busy::posts);
  EXPECT_EQ(work.running, 0);
  if (who != Who::before_run) {
    EXPECT_EQ(work.begun, blockers);
  }
  if (busy == Busy::blocking_honours) {
    EXPECT_EQ(work.heard, work.begun) << "running work sees its token stopped";
  }
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

// A stop reaches one worker after the other. Until it has come here, what is sent from here to those
// that it has reached is taken, and arrives cancelled.
TEST(ShutdownSpread, WhatWorkersSendEachOtherMeanwhileIsTaken) {
  for (bool moves : {false, true}) {
    live = 0;
    std::atomic<bool> begun = false, reached_first = false;
    bool went_on = false;
    IOContext ctx{{.workers = 2}};
    auto main = [&]() -> Task<void> {
      test::OnExit ended([&] { reached_first = true; });
      co_await suspend_forever();
    };
    // Of worker 1, which the stop reaches last: worker 0 hands it on, and does nothing else until it is taken.
    auto sends = [&](const auto& again) -> Task<void> {
      if (EventLoop::current_or_null() != &ctx.loop(1)) {
        ctx.schedule(again(again));
        while (!begun) std::this_thread::yield();
        co_return;
      }
      begun = true;
      ctx.stop();
      while (!reached_first) std::this_thread::yield();  // and so nothing reaches this worker
      if (moves) {
        co_await resume_on(ctx.loop(0));
      } else {
        co_await on(ctx.loop(0), waits(Alive()));
      }
      went_on = true;
    };
    ctx.schedule(sends(sends));
    ctx.run(main());
    EXPECT_FALSE(went_on);
    EXPECT_EQ(live, 0);
  }
}

TEST(ShutdownWarning, NamesTheBlockingWorkThatIgnoresItsToken) {
  test::LogCapture log;
  Work work;
  live = 0;
  IOContext ctx{{.workers = 2, .shutdown_warn = 2ms}};
  ctx.schedule(blocks(false, work));
  auto main = [&]() -> Task<void> {
    while (work.running == 0) co_await sleep_for(100us);
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
