// SPDX-License-Identifier: MIT
// Seed 001's four resumes, and who the current task is in each: cancel callback, timer, transfer,
// scheduled completion.
#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"
#include "weft/core/resume.h"

namespace {

using namespace weft;
using namespace weft::test;

struct CurrentTaskTest : EachLoopTest {};

// nullptr where there is no current task.
Scope* current() {
  try {
    return &detail::running_scope("test");
  } catch (const UsageError&) {
    return nullptr;
  }
}

LOOP_TEST(CurrentTaskTest, IsNoneInACancelHook) {
  bool none = false;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto look = [&none] { none = current() == nullptr; };
    CancelHook hook(scope, look);
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    StartedTask<void> s = child().start_immediate_in_current_scope();
    s.cancel();
    EXPECT_EQ(current(), &mine);
    co_await yield();
    EXPECT_EQ(current(), &mine);
  };
  run_on(loop, root());
  EXPECT_TRUE(none);
}

LOOP_TEST(CurrentTaskTest, IsNoneInAHookThatACaptureRunsInTheMiddleOfATask) {
  bool called = false;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto look = [&called] {
      called = true;
      EXPECT_EQ(current(), nullptr);
    };
    CancelHook hook(scope, look);
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    StartedTask<void> s = child().start_immediate_in_current_scope();
    auto cancel_it = [&s] { s.cancel(); };
    loop.loop().capture(cancel_it);
    EXPECT_TRUE(called);
    EXPECT_TRUE(s.is_done());
    EXPECT_EQ(current(), &mine);
  };
  run_on(loop, root());
}

LOOP_TEST(CurrentTaskTest, IsNoneInATimerAndTheSleeperAfterIt) {
  struct Timer : detail::TimerNode {
    Gate gate;
    bool none = false;
  };
  auto root = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    Timer timer;
    timer.fire = [](detail::TimerNode& node) noexcept {
      auto& self = static_cast<Timer&>(node);
      self.none = current() == nullptr;
      self.gate.fire();
    };
    loop.loop().arm_timer(timer, loop.loop().now_ns());
    co_await timer.gate;
    EXPECT_TRUE(timer.none);
    EXPECT_EQ(current(), &mine);
  };
  run_on(loop, root());
}

LOOP_TEST(CurrentTaskTest, FollowsTransfersIntoAndOutOfAnInlineTask) {
  auto inner = [](Scope& outer) -> Task<void> {
    Scope& mine = co_await current_scope();
    EXPECT_EQ(current(), &mine);
    EXPECT_NE(current(), &outer);
    co_await yield();
    EXPECT_EQ(current(), &mine);
  };
  auto failing = []() -> Task<void> {
    co_await yield();
    throw 1;
  };
  auto body = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    co_await inner(mine);
    EXPECT_EQ(current(), &mine);
    try {
      co_await failing();
    } catch (int) {
      EXPECT_EQ(current(), &mine);
    }
  };
  run_on(loop, body());
}

LOOP_TEST(CurrentTaskTest, IsTheWaiterAfterAScheduledCompletion) {
  auto inner = []() -> Task<void> {
    yields(3).start_in_current_scope().detach();
    co_return;  // completes when the child does: from the ready ring, not by a transfer
  };
  auto body = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    co_await inner();
    EXPECT_EQ(current(), &mine);
  };
  run_on(loop, body());
}

LOOP_TEST(CurrentTaskTest, IsRestoredAfterAnImmediateStart) {
  auto child = []() -> Task<void> {
    Scope& mine = co_await current_scope();
    EXPECT_EQ(current(), &mine);
    co_await yield();
    EXPECT_EQ(current(), &mine);
  };
  auto body = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    StartedTask<void> s = child().start_immediate(mine);
    EXPECT_EQ(current(), &mine);
    co_await std::move(s);
    EXPECT_EQ(current(), &mine);
  };
  run_on(loop, body());
  EXPECT_EQ(current(), nullptr);
}

}  // namespace
