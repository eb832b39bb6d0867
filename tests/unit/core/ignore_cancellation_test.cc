// SPDX-License-Identifier: MIT
// Seed 001: ignore_cancellation(), its nesting, its races and the walk that it defers.
#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"
#include "weft/core/primitives.h"

namespace {

using namespace weft;
using namespace weft::test;

constexpr CancelReason kWhy{"the test said so"};

struct IgnoreTest : EachLoopTest {};

// Starts `task`, lets it run for some turns, cancels it and returns how it ended.
Task<Outcome<void>> cancelled_after(int turns, Task<void> task) {
  StartedTask<void> s = std::move(task).start_in_current_scope();
  co_await yields(turns);
  s.cancel(kWhy);
  co_return co_await s.outcome();
}

LOOP_TEST(IgnoreTest, IgnoreBeforeCancelPutsItOffUntilTheGuardIsLeft) {
  Events events;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    {
      auto guard = co_await ignore_cancellation();
      co_await yields(4);
      EXPECT_TRUE(scope.is_cancelled());
      EXPECT_FALSE(scope.is_effectively_cancelled());
      EXPECT_FALSE(scope.stop_token().stop_requested());
      co_await finish_if_cancelled();  // no cancel point in here
      events.push_back("went on");
    }
    EXPECT_TRUE(scope.is_effectively_cancelled());
    events.push_back("guard left");
    co_await yield();
    ADD_FAILURE();
  };
  Outcome<void> how = run_on(loop, cancelled_after(2, child()));
  EXPECT_TRUE(how.is_cancelled());
  EXPECT_EQ(&how.reason(), &kWhy);
  EXPECT_EQ(events, (Events{"went on", "guard left"}));
}

LOOP_TEST(IgnoreTest, CancelBeforeIgnoreEndsTheTask) {
  auto child = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    scope.cancel();
    auto guard = co_await ignore_cancellation();
    ADD_FAILURE() << "cancellation came first";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
}

LOOP_TEST(IgnoreTest, OnlyTheOutermostGuardCounts) {
  Events events;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    {
      auto outer = co_await ignore_cancellation();
      {
        auto inner = co_await ignore_cancellation();
        co_await yields(3);
        EXPECT_TRUE(scope.is_cancelled());
        auto third = co_await ignore_cancellation();  // nested: allowed although cancelled
      }
      EXPECT_FALSE(scope.is_effectively_cancelled());
      co_await yield();
      events.push_back("still shielded");
    }
    EXPECT_TRUE(scope.is_effectively_cancelled());
    co_await yield();
    ADD_FAILURE();
  };
  Outcome<void> how = run_on(loop, cancelled_after(2, child()));
  EXPECT_TRUE(how.is_cancelled());
  EXPECT_EQ(events, (Events{"still shielded"}));
}

LOOP_TEST(IgnoreTest, GuardsNestAcrossInlineFrames) {
  Events events;
  auto inner = [&]() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(3);
    events.push_back("inner");
  };
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    {
      auto guard = co_await ignore_cancellation();
      co_await inner();
      EXPECT_FALSE(scope.is_effectively_cancelled());
      co_await yield();
      events.push_back("outer");
    }
    co_await yield();
    ADD_FAILURE();
  };
  Outcome<void> how = run_on(loop, cancelled_after(2, child()));
  EXPECT_TRUE(how.is_cancelled());
  EXPECT_EQ(events, (Events{"inner", "outer"}));
}

LOOP_TEST(IgnoreTest, AGuardInAnInnerFrameEndsWithIt) {
  Events events;
  auto inner = [&]() -> Task<int> {
    auto guard = co_await ignore_cancellation();
    co_await yields(3);
    co_return 5;
  };
  auto child = [&]() -> Task<void> {
    int value = co_await inner();
    events.push_back(std::to_string(value));  // delivered, and the request is still there
    co_await yield();
    ADD_FAILURE();
  };
  Outcome<void> how = run_on(loop, cancelled_after(2, child()));
  EXPECT_TRUE(how.is_cancelled());
  EXPECT_EQ(events, (Events{"5"}));
}

LOOP_TEST(IgnoreTest, ItDefersTheWalkOverItsFramesChildrenAndHooks) {
  Events events;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto note = [&events] { events.push_back("hook"); };
    CancelHook hook(scope, note);
    StartedTask<void> kept = parked_with(events, "child").start_immediate_in_current_scope();
    {
      auto guard = co_await ignore_cancellation();
      co_await yields(5);
      EXPECT_FALSE(kept.is_done());
      events.push_back("leaving");
    }
    events.push_back("left");
    co_await suspend_forever();
  };
  Outcome<void> how = run_on(loop, cancelled_after(2, child()));
  EXPECT_TRUE(how.is_cancelled());
  EXPECT_EQ(events, (Events{"leaving", "hook", "left", "~child"}));
}

LOOP_TEST(IgnoreTest, FramesOutsideTheGuardAreWalkedAtOnce) {
  Events events;
  auto inner = [&]() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(6);
    events.push_back("inner done");
  };
  auto child = [&]() -> Task<void> {
    StartedTask<void> outside = parked_with(events, "outside").start_immediate_in_current_scope();
    co_await inner();
    co_await suspend_forever();
  };
  Outcome<void> how = run_on(loop, cancelled_after(2, child()));
  EXPECT_TRUE(how.is_cancelled());
  EXPECT_EQ(events, (Events{"~outside", "inner done"}));
}

LOOP_TEST(IgnoreTest, AChildStartedUnderTheGuardIsCancelledWhenItIsLeft) {
  Events events;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    {
      auto guard = co_await ignore_cancellation();
      scope.cancel(kWhy);
      parked_with(events, "child").start(scope).detach();
      co_await yields(3);
      events.push_back("leaving");
    }
  };
  run_on(loop, child());
  EXPECT_EQ(events, (Events{"leaving", "~child"}));
}

LOOP_TEST(IgnoreTest, AChildOfAnOuterFrameStartedUnderTheGuardIsCancelledWhenItIsLeft) {
  Events events;
  auto inner = [&](Scope& outer) -> Task<void> {
    auto guard = co_await ignore_cancellation();
    outer.cancel(kWhy);
    co_await yield();  // the kick has been here
    parked_with(events, "child").start(outer).detach();
    co_await yields(3);
    events.push_back("leaving");
  };
  auto outer = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    co_await inner(mine);
    // Ends by co_return, at no cancel point: its child is joined, so it must have been told.
  };
  run_on(loop, outer());
  EXPECT_EQ(events, (Events{"leaving", "~child"}));
}

LOOP_TEST(IgnoreTest, ANurseryUnderTheGuardIsNotCancelledByTheTasksCancel) {
  Events events;
  auto child = [&]() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(yields(3));
      co_await yields(5);
      events.push_back("body");
      co_return join;
    };
    co_await with_nursery(body);
    events.push_back("joined");
  };
  Outcome<void> how = run_on(loop, cancelled_after(2, child()));
  EXPECT_TRUE(how.has_value());
  EXPECT_EQ(events, (Events{"body", "joined"}));
}

LOOP_TEST(IgnoreTest, ACancelThatFoundAWaitUnderTheGuardStrikesAfterIt) {
  // The kick comes while the task is parked under the guard and must not call await_cancel.
  bool resumed = false;
  auto child = [&](Gate& gate) -> Task<void> {
    {
      auto guard = co_await ignore_cancellation();
      co_await gate;
      resumed = true;
    }
    co_await suspend_forever();
    ADD_FAILURE();
  };
  auto root = [&]() -> Task<void> {
    Gate gate;
    StartedTask<void> s = child(gate).start_immediate_in_current_scope();
    s.cancel();
    co_await yields(2);
    EXPECT_TRUE(gate.waiting());
    gate.fire();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_TRUE(resumed);
}

}  // namespace
