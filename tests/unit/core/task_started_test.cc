// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "support/loop_fixture.h"

namespace weft::test {
namespace {

struct TaskStartedTest : EachLoopTest {};

Task<void> serve(Events& events, int port, TaskStarted<int> started) {
  Marker marker(events, "server");
  co_await yield();
  started(port);
  co_await suspend_forever();
}
Task<void> fails_first(TaskStarted<int>) {
  co_await yield();
  throw std::runtime_error("no port");
}
Task<void> never_reports(TaskStarted<int>) { co_await yield(); }
Task<void> slow_to_start(Events& events, TaskStarted<int> started) {
  Marker marker(events, "slow");
  co_await suspend_forever();
  started(1);
}
Task<void> fails_when_cancelled(TaskStarted<int>) {
  auto body = []() { return suspend_forever(); };
  auto cleanup = []() -> Task<void> {
    co_await yield();
    throw std::runtime_error("late");
  };
  co_await try_(body).finally(cleanup);
}

LOOP_TEST(TaskStartedTest, TheStarterGetsTheReportAndTheNurseryTheChild) {
  Events events;
  auto test = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      int port = co_await n.start<int>(serve, std::ref(events), 80);
      EXPECT_EQ(port, 80);
      EXPECT_EQ(n.size(), 2u);
      EXPECT_TRUE(events.empty());
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_EQ(events, Events{"~server"});
  };
  run_on(loop, test());
}

LOOP_TEST(TaskStartedTest, AnErrorBeforeTheReportGoesToTheStarter) {
  auto test = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_THROW(co_await n.start<int>(fails_first), std::runtime_error);
      EXPECT_FALSE(n.is_cancelled());
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, test());
}

LOOP_TEST(TaskStartedTest, EndingWithoutAReportIsAUsageError) {
  auto test = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_THROW(co_await n.start<int>(never_reports), UsageError);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, test());
}

LOOP_TEST(TaskStartedTest, CancellingTheStarterCancelsTheChildThatHasNotReported) {
  Events events;
  auto test = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      auto [started, gave_up] =
          co_await any_of(n.start<int>(slow_to_start, std::ref(events)), yields(3));
      EXPECT_FALSE(started.has_value());
      EXPECT_EQ(events, Events{"~slow"});
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, test());
}

// FIELD, corral: the exception of a child whose start() was cancelled is swallowed.
LOOP_TEST(TaskStartedTest, TheErrorOfAChildWhoseStartWasCancelledIsNotSwallowed) {
  auto test = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_THROW(co_await any_of(n.start<int>(fails_when_cancelled), yields(3)),
                   std::runtime_error);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, test());
}

// FIELD, corral: a nursery join() ignores a pending start(TaskStarted).
LOOP_TEST(TaskStartedTest, TheNurseryStaysOpenWhileAStartIsUnderWay) {
  Events events;
  auto test = [&]() -> Task<void> {
    Nursery* open = nullptr;
    auto starter = [&]() -> Task<void> {
      int port = co_await open->start<int>(serve, std::ref(events), 81);
      EXPECT_EQ(port, 81);
      events.push_back("started");
      open->cancel();
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      open = &n;
      co_await yield();
      co_return join;
    };
    co_await all_of(with_nursery(body), starter);
    EXPECT_EQ(events, (Events{"started", "~server"}));
  };
  run_on(loop, test());
}

LOOP_TEST(TaskStartedTest, ReportingTwiceIsRefused) {
  auto child = [](TaskStarted<int> started) -> Task<void> {
    started(1);
    EXPECT_THROW(started(2), UsageError);
    co_return;
  };
  auto test = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_EQ(co_await n.start<int>(child), 1);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, test());
}

LOOP_TEST(TaskStartedTest, OpenNurseryServesAnObjectUntilCancelled) {
  Events events;
  auto test = [&]() -> Task<void> {
    Nursery* owned = nullptr;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      co_await n.start<void>(open_nursery, std::ref(owned));
      EXPECT_NE(owned, nullptr);
      owned->start(parked_with(events, "child"));
      co_await yield();
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_EQ(owned, nullptr);
    EXPECT_EQ(events, Events{"~child"});
  };
  run_on(loop, test());
}

}  // namespace
}  // namespace weft::test
