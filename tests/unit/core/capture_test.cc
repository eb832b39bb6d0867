// SPDX-License-Identifier: MIT
// Executor::capture(): runs what a function made ready before it returns (seed 002).
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"
#include "weft/core/executor.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

struct CaptureTest : LoopTest<VirtualLoop> {
  Events events;
  Gate gate;
  auto waits(const char* name) {
    return [this, name]() -> Task<void> {
      co_await gate;
      events.push_back(name);
    };
  }
};

TEST_F(CaptureTest, WhatTheFunctionMakesReadyRunsInTheMiddleOfAStep) {
  auto root = [&]() -> Task<void> {
    auto wait = waits("captured");
    StartedTask<void> s = wait().start_immediate_in_current_scope();
    Executor::current("test").capture([&] { gate.fire(); });
    EXPECT_TRUE(s.is_done());
    events.push_back("same step");
    co_return;
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"captured", "same step"}));
}

TEST_F(CaptureTest, WhatWasReadyBeforeWaitsForItsTurn) {
  auto root = [&]() -> Task<void> {
    auto ready = [&]() -> Task<void> {
      events.push_back("was ready");
      co_return;
    };
    auto fresh = [&]() -> Task<void> {
      co_await yield();
      events.push_back("fresh");
    };
    Scope& scope = co_await current_scope();
    StartedTask<void> a = ready().start(scope);
    StartedTask<void> b;
    Executor::current("test").capture([&] { b = fresh().start(scope); });
    events.push_back("same step");
    co_await std::move(a);
    co_await std::move(b);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"fresh", "same step", "was ready"}));
}

TEST_F(CaptureTest, ACancelInsideIsCarriedOutBeforeItReturns) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parked_with(events, "child").start_immediate_in_current_scope();
    Executor::current("test").capture([&] { s.cancel(); });
    events.push_back("same step");
    co_return;
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"~child", "same step"}));
}

TEST_F(CaptureTest, AFunctionThatThrowsLosesNothing) {
  auto root = [&]() -> Task<void> {
    auto note = [&](const char* name) -> Task<void> {
      events.push_back(name);
      co_return;
    };
    Scope& scope = co_await current_scope();
    StartedTask<void> a = note("before").start(scope);
    StartedTask<void> b;
    auto fn = [&] {
      b = note("inside").start(scope);
      throw std::runtime_error("fn");
    };
    EXPECT_THROW(Executor::current("test").capture(fn), std::runtime_error);
    events.push_back("same step");
    co_await std::move(a);
    co_await std::move(b);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"same step", "before", "inside"}));
}

TEST_F(CaptureTest, TheCurrentTaskIsTheSameAfterwards) {
  auto root = [&]() -> Task<void> {
    auto wait = waits("captured");
    StartedTask<void> s = wait().start_immediate_in_current_scope();
    Executor::current("test").capture([&] { gate.fire(); });
    StartedTask<void> child = yields(1).start_in_current_scope();  // needs a running task
    co_await std::move(child);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"captured"}));
}

// An awaiter that is done before its await_suspend() returns, and captures what that makes ready.
struct ReadyInsideCapture {
  static bool await_ready() noexcept { return false; }
  static void await_suspend(std::coroutine_handle<> handle) {
    Executor::current_or_null()->capture([&] { handle.resume(); });
  }
  static void await_resume() noexcept {}
};

TEST(Capture, ATaskIsNotRunInsideItself) {
  weft::testing::VirtualLoop loop;
  Events events;
  auto task = [&]() -> Task<void> {
    Marker marker(events, "task");
    co_await ReadyInsideCapture();
    events.push_back("went on");
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(task());
    co_return join;
  };
  auto main = [&]() -> Task<void> { co_await with_nursery(body); };
  run_on(loop, main());
  EXPECT_EQ(events, (Events{"went on", "~task"}));
}

}  // namespace
