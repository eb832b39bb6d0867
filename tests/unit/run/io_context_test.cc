// SPDX-License-Identifier: MIT
#include "weft/run/io_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using weft::test::Counted;
using weft::test::parked;
using weft::test::throws_after;

Task<int> answer() {
  co_await yield();
  co_return 42;
}
Task<void> add_one(std::atomic<int>& to) {
  ++to;
  co_return;
}
Task<void> schedule_many(IOContext& ctx, int count, std::atomic<int>& to) {
  for (int i = 0; i < count; ++i) ctx.schedule(add_one(to));
  co_return;
}

class ContextTest : public ::testing::TestWithParam<unsigned> {
 protected:
  IOContext ctx{{.workers = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Workers, ContextTest, ::testing::Values(1u, 2u, 4u));

// --- run() --------------------------------------------------------------------------------------

TEST_P(ContextTest, RunReturnsTheValueOfItsTaskAndCanBeRunAgain) {
  EXPECT_EQ(ctx.run(answer()), 42);
  EXPECT_EQ(ctx.run(answer()), 42);
  EXPECT_FALSE(ctx.is_running());
}

TEST_P(ContextTest, RunTakesAnyAwaitable) { EXPECT_EQ(ctx.run(just(7)), 7); }

TEST_P(ContextTest, RunJoinsEverythingThatWasScheduled) {
  std::atomic<int> count = 0;
  for (int i = 0; i < 10; ++i) ctx.schedule(add_one(count));  // before run()
  ctx.run(schedule_many(ctx, 1000, count));
  EXPECT_EQ(count, 1010);
}

TEST_P(ContextTest, WhatForeignThreadsScheduleRuns) {
  std::atomic<int> count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) ctx.schedule(add_one(count));
    });
  }
  auto wait = [&]() -> Task<void> {
    while (count < 600) co_await sleep_for(1ms);
  };
  ctx.run(wait());
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(count, 600);
}

TEST_P(ContextTest, RunInsideOfItsOwnTaskIsRefused) {
  auto nested = [&]() -> Task<void> {
    EXPECT_THROW(ctx.run(answer()), UsageError);
    co_return;
  };
  ctx.run(nested());
}

TEST_P(ContextTest, AnotherContextRunsInsideOfATask) {
  IOContext inner{{.workers = 2}};
  auto nested = [&]() -> Task<int> {
    int result = inner.run(answer());
    EXPECT_EQ(IOContext::current_or_null(), &ctx);
    co_return result;
  };
  EXPECT_EQ(ctx.run(nested()), 42);
}

TEST_P(ContextTest, CurrentOrNullIsTheContextOfTheTask) {
  EXPECT_EQ(IOContext::current_or_null(), nullptr);
  EXPECT_EQ(EventLoop::current_or_null(), nullptr);
  auto look = [&]() -> Task<void> {
    EXPECT_EQ(IOContext::current_or_null(), &ctx);
    EXPECT_EQ(EventLoop::current_or_null(), &ctx.loop(0));
    co_return;
  };
  ctx.run(look());
}

TEST_P(ContextTest, LoopsAreCountedFromZero) {
  EXPECT_EQ(ctx.workers(), GetParam());
  EXPECT_THROW(static_cast<void>(ctx.loop(GetParam())), UsageError);
}

TEST(ContextOptions, TooManyWorkersAreRefused) {
  EXPECT_THROW(IOContext({.workers = IOContext::kWorkersMax + 1}), UsageError);
}

TEST(ContextOptions, PinnedWorkersRun) {
  IOContext ctx{{.workers = 3, .pin_threads = true}};
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  EXPECT_EQ(ctx.run(answer()), 42);
  sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "the caller's thread is as it was";
}

// --- schedule() ---------------------------------------------------------------------------------

TEST_P(ContextTest, AScheduledFunctionAndItsArgumentsAreKeptAlive) {
  Counted::live = 0;
  std::atomic<int> sum = 0;
  {
    Counted captured(40);
    auto fn = [captured, &sum](Counted given) -> Task<void> {
      co_await yield();
      sum += captured.value() + given.value();
    };
    ctx.schedule(fn, Counted(2));
  }
  ctx.run(answer());
  EXPECT_EQ(sum, 42);
  EXPECT_EQ(Counted::live, 0);
}

TEST_P(ContextTest, WhatNeverRanIsDestroyedWithTheContext) {
  Counted::live = 0;
  auto hold = [](Counted) -> Task<void> { co_return; };
  {
    IOContext never{{.workers = GetParam()}};
    for (int i = 0; i < 100; ++i) never.schedule(hold(Counted(i)));
    EXPECT_EQ(Counted::live, 100);
  }
  EXPECT_EQ(Counted::live, 0);
}

TEST_P(ContextTest, ScheduledBetweenRunsWaitsForTheNext) {
  std::atomic<int> count = 0;
  ctx.run(answer());
  ctx.schedule(add_one(count));
  EXPECT_EQ(count, 0);
  ctx.run(answer());
  EXPECT_EQ(count, 1);
}

// The scheduling task does not let go of its loop before all have run: only another worker can have.
TEST(ContextSteal, IdleWorkersTakeWhatABusyOneHasQueued) {
  IOContext ctx{{.workers = 2}};
  std::atomic<int> count = 0;
  auto busy = [&]() -> Task<void> {
    for (int i = 0; i < 500; ++i) ctx.schedule(add_one(count));
    while (count < 500) std::this_thread::yield();
    co_return;
  };
  ctx.run(busy());
  EXPECT_EQ(count, 500);
}

TEST(ContextSteal, ChildrenOfANurseryAreTakenToo) {
  IOContext ctx{{.workers = 2}};
  std::atomic<int> count = 0;
  auto busy = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 500; ++i) n.schedule(add_one(count));
      while (count < 500) std::this_thread::yield();
      co_return join;
    };
    co_await with_nursery(body);
  };
  ctx.run(busy());
  EXPECT_EQ(count, 500);
}

TEST_P(ContextTest, StartedTasksStayHome) {
  std::atomic<int> moved = 0;
  auto stay = [&]() -> Task<void> {
    Executor* home = Executor::current_or_null();
    for (int i = 0; i < 5; ++i) {
      co_await yield();
      if (Executor::current_or_null() != home) ++moved;
      co_await sleep_for(100us);
      if (Executor::current_or_null() != home) ++moved;
    }
  };
  for (int i = 0; i < 50; ++i) ctx.schedule(stay);
  ctx.run(answer());
  EXPECT_EQ(moved, 0);
}

TEST_P(ContextTest, NurseryChildrenElsewhereAreJoinedAndCancelled) {
  std::atomic<int> ended = 0;
  auto child = [&]() -> Task<void> {
    test::OnExit exit([&] { ++ended; });
    co_await suspend_forever();
  };
  auto main = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 100; ++i) n.schedule(child);
      for (int i = 0; i < 100; ++i) co_await yield();
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_EQ(ended, 100) << "L7";
  };
  ctx.run(main());
  EXPECT_EQ(ended, 100);
}

TEST_P(ContextTest, AnErrorOfAScheduledChildCancelsItsSiblingsAndIsRethrown) {
  auto main = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 20; ++i) n.schedule(parked());
      n.schedule(throws_after(2, "a child"));
      co_return join;
    };
    co_await with_nursery(body);
  };
  EXPECT_THROW(ctx.run(main()), std::runtime_error);
}

TEST(NurserySchedule, NeedsWorkers) {
  weft::testing::ThreadLoop loop;
  auto main = []() -> Task<void> {
    auto body = [](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_THROW(n.schedule(parked()), UsageError);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, main());
}

TEST_P(ContextTest, TaskLocalsAreInherited) {
  static TaskLocal<int> local;
  std::atomic<int> seen = 0;
  auto child = [&]() -> Task<void> {
    seen = *local;
    co_return;
  };
  auto outer = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.schedule(child);
      co_return join;
    };
    co_await with_nursery(body);
  };
  ctx.run(local.with(17, outer()));
  EXPECT_EQ(seen, 17);
}

// --- Errors -------------------------------------------------------------------------------------

TEST_P(ContextTest, AnErrorOfMainCancelsTheRestAndIsRethrown) {
  for (int i = 0; i < 5; ++i) ctx.schedule(parked());
  EXPECT_THROW(ctx.run(throws_after(3, "main")), std::runtime_error);
  EXPECT_EQ(ctx.run(answer()), 42) << "and it can be run again";
}

TEST_P(ContextTest, AnErrorOfAScheduledTaskStopsTheContextAndIsRethrown) {
  ctx.schedule(throws_after(3, "scheduled"));
  ctx.schedule(parked());
  try {
    ctx.run();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "scheduled");
  }
}

TEST_P(ContextTest, AllErrorsOfScheduledTasksAreKept) {
  for (int i = 0; i < 4; ++i) ctx.schedule(throws_after(0, "scheduled"));
  try {
    ctx.run();
    FAIL();
  } catch (const std::runtime_error&) {
    EXPECT_EQ(other_errors().count, 3u);
  }
}

TEST(ContextErrors, OnErrorDecidesAndTheOthersGoOn) {
  for (unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> errors = 0, count = 0;
    auto on_error = [&](std::exception_ptr) { ++errors; };
    IOContext ctx{{.workers = workers, .on_error = on_error}};
    for (int i = 0; i < 10; ++i) {
      ctx.schedule(throws_after(i, "scheduled"));
      ctx.schedule(add_one(count));
    }
    ctx.run(answer());
    EXPECT_EQ(errors, 10);
    EXPECT_EQ(count, 10);
  }
}

TEST(ContextErrors, AnOnErrorThatThrowsStopsTheContext) {
  auto on_error = [](std::exception_ptr) { throw std::logic_error("handler"); };
  IOContext ctx{{.workers = 2, .on_error = on_error}};
  ctx.schedule(throws_after(1, "scheduled"));
  EXPECT_THROW(ctx.run(), std::logic_error);
}

// --- stop() -------------------------------------------------------------------------------------

TEST_P(ContextTest, StopBeforeRunIsNotLost) {
  for (int i = 0; i < 5; ++i) ctx.schedule(parked());
  ctx.stop();
  ctx.run();
  EXPECT_EQ(ctx.run(answer()), 42) << "one run() has answered it";
}

TEST_P(ContextTest, AStoppedRunWithAValueThrowsTaskCancelled) {
  auto wait = []() -> Task<int> {
    co_await suspend_forever();
    co_return 1;
  };
  ctx.stop();
  EXPECT_THROW(static_cast<void>(ctx.run(wait())), TaskCancelled);
}

TEST_P(ContextTest, StopFromATaskEndsTheOthers) {
  std::atomic<int> ended = 0;
  auto wait = [&]() -> Task<void> {
    test::OnExit exit([&] { ++ended; });
    co_await suspend_forever();
  };
  for (int i = 0; i < 20; ++i) ctx.schedule(wait);
  auto main = [&]() -> Task<void> {
    co_await sleep_for(1ms);
    ctx.stop();
    co_await suspend_forever();
  };
  ctx.run(main());
  EXPECT_EQ(ended, 20);
}

TEST_P(ContextTest, TheStopOfAWorkersLoopIsThatOfTheContext) {
  ctx.loop(GetParam() - 1).stop();
  ctx.run();
}

TEST_P(ContextTest, AMainThatWasCancelledByItselfIsReported) {
  auto main = []() -> Task<void> {
    auto& scope = co_await current_scope();
    scope.cancel();
    co_await yield();
  };
  EXPECT_THROW(ctx.run(main()), TaskCancelled);
}

TEST_P(ContextTest, GuestsOfOtherLoopsEndWithAStop) {
  std::atomic<bool> there = false, ended = false;
  weft::testing::LoopThread other;
  auto guest = [&]() -> Task<void> {
    test::OnExit exit([&] { ended = true; });
    there = true;
    co_await suspend_forever();
  };
  auto visit = [&]() -> Task<void> { co_await on(ctx.loop(GetParam() - 1), guest()); };
  auto main = [&]() -> Task<void> {
    other.lease().start(detail::run_callable(visit));
    while (!there) co_await sleep_for(100us);
    ctx.stop();
  };
  ctx.run(main());
  EXPECT_TRUE(ended);
}

TEST_P(ContextTest, LeasesStartTasksOnWorkerZero) {
  EXPECT_THROW(static_cast<void>(ctx.lease()), UsageError);
  std::atomic<bool> there = false;
  auto child = [&]() -> Task<void> {
    there = EventLoop::current_or_null() == &ctx.loop(0);
    co_return;
  };
  auto main = [&]() -> Task<void> {
    PromiseChildLease lease = ctx.lease();
    auto start = [&, lease = std::move(lease)]() mutable {
      lease.start(detail::run_callable(child));
      lease.reset();
    };
    std::thread(std::move(start)).join();
    co_return;
  };
  ctx.run(main());
  EXPECT_TRUE(there);
}

// --- Looking at it ------------------------------------------------------------------------------

TEST_P(ContextTest, StatisticsCountTheTasksThatBegan) {
  std::atomic<int> count = 0;
  std::uint64_t begun = 0;
  auto main = [&]() -> Task<void> {
    for (int i = 0; i < 100; ++i) ctx.schedule(add_one(count));
    while (count < 100) co_await yield();
    std::vector<IOContext::WorkerStatistics> all = co_await ctx.statistics();
    EXPECT_EQ(all.size(), GetParam());
    for (auto& each : all) {
      begun += each.tasks_run;
      EXPECT_LE(each.tasks_stolen, each.tasks_run);
      EXPECT_EQ(each.queue_depth, 0u);
    }
    EXPECT_GE(all[0].loop.tasks, 1u);
    EXPECT_GE(all[0].frames.blocks_handed_out, 100u);
  };
  ctx.run(main());
  EXPECT_EQ(begun, 100u);
}

TEST_P(ContextTest, TheTreeNamesWorkersAndTasks) {
  std::string text;
  auto sleeper = []() -> Task<void> { co_await sleep_for(1h); };
  ctx.schedule(sleeper);
  auto main = [&]() -> Task<void> {
    co_await sleep_for(2ms);
    text = co_await ctx.task_tree();
    ctx.stop();
  };
  ctx.run(main());
  EXPECT_NE(text.find("worker 0"), std::string::npos) << text;
  EXPECT_NE(text.find("worker " + std::to_string(GetParam() - 1)), std::string::npos) << text;
  EXPECT_NE(text.find("sleep"), std::string::npos) << text;
}

}  // namespace
