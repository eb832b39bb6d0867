// SPDX-License-Identifier: MIT
// Where others break (shared/FIELD.md: corral and the scope tree), one test each, named after it.
// Depth and allocations beyond what a unit test can show: tests/stress/depth*, unit/time/allocation.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "support/ending.h"
#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

struct FieldRegressionTest : LoopTest<VirtualLoop> {
  Events events;
  // Cancels the subject from outside at 1 ms; Stuck if it does not end.
  template <class Fn>
  Outcome<void> cancelled(Fn subject) {
    return cancelled_midway(loop, subject);
  }
};

// --- corral -------------------------------------------------------------------------------------

template <class L>
void yield_loop_and_timer(L& loop, std::chrono::nanoseconds duration) {
  auto root = [&]() -> Task<void> {
    bool fired = false;
    auto sleeper = [&]() -> Task<void> {
      co_await sleep_for(duration);
      fired = true;
    };
    auto spinner = [&]() -> Task<void> {
      while (!fired) co_await yield();
    };
    co_await all_of(sleeper, spinner, spinner);
  };
  run(loop, root());
}
TEST_F(FieldRegressionTest, YieldLoopsDoNotStarveTimers) {
  yield_loop_and_timer(loop, 0ns);
  ThreadLoop real;
  yield_loop_and_timer(real, 1ns);
}

TEST_F(FieldRegressionTest, YieldLoopsDoNotStarveOtherThreads) {
  ThreadLoop real;
  auto root = [&]() -> Task<void> {
    std::atomic<bool> posted = false;
    bool arrived = false;
    std::thread other;
    auto init = [&](auto done) {
      other = std::thread([&posted, done] {
        posted = true;
        done();
      });
    };
    auto waits = [&]() -> Task<void> {
      co_await until_callback(init);
      arrived = true;
    };
    auto spinner = [&]() -> Task<void> {
      while (!arrived) co_await yield();
    };
    co_await all_of(waits, spinner);
    other.join();
    EXPECT_TRUE(posted);
  };
  run(real, root());
}

TEST_F(FieldRegressionTest, CancelInsideCatchAllHandlerDoesNotRethrow) {
  auto subject = [&]() -> Task<void> {
    auto body = []() -> Task<void> { throw std::runtime_error("handled"); };
    auto handler = [&](const std::exception_ptr&) { return parked_with(events, "handler"); };
    co_await try_(body).catch_(handler);
  };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
  EXPECT_EQ(events, (Events{"~handler"}));
}

TEST_F(FieldRegressionTest, ErrorOfACancelledChildIsNotSwallowed) {
  auto failing = []() -> Task<void> {
    co_await noncancellable(sleep_for(2ms));
    throw std::runtime_error("while cancelled");
  };
  auto subject = [&]() -> Task<void> {
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      nursery.start(failing());
      co_return join;
    };
    co_await with_nursery(body);
  };
  EXPECT_TRUE(cancelled(subject).has_error());
}

TEST_F(FieldRegressionTest, NurseryJoinWaitsForAPendingStart) {
  auto child = [&](TaskStarted<int> started) -> Task<void> {
    co_await sleep_for(1ms);
    started(5);
    co_await sleep_for(1ms);
    events.push_back("child ends");
  };
  auto starts = [&](Nursery& nursery) -> Task<int> {
    co_return co_await nursery.start<int>(child);
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<int> starter;
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      starter = starts(nursery).start(scope);
      co_await yield();
      co_return join;
    };
    co_await with_nursery(body);
    events.push_back("joined");
    int reported = co_await std::move(starter);
    EXPECT_EQ(reported, 5);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"child ends", "joined"}));
}

TEST_F(FieldRegressionTest, ErrorOfAChildWhoseStartWasCancelledIsNotSwallowed) {
  auto child = [](TaskStarted<int>) -> Task<void> {
    co_await noncancellable(sleep_for(2ms));
    throw std::runtime_error("while starting");
  };
  auto subject = [&]() -> Task<void> {
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      static_cast<void>(co_await nursery.start<int>(child));
      co_return join;
    };
    co_await with_nursery(body);
  };
  EXPECT_TRUE(cancelled(subject).has_error());
}

TEST_F(FieldRegressionTest, TreeDumpDuringWithSetUp) {
  std::string dump;
  auto root = [&]() -> Task<int> {
    Scope& scope = co_await current_scope();
    // An awaiter whose await_suspend() dumps the tree while with() still starts its branches.
    class Dumps {
     public:
      Dumps(Scope& scope, std::string& text) : scope_(scope), text_(text) {}
      static bool await_ready() noexcept { return false; }
      bool await_suspend(std::coroutine_handle<>) {
        text_ += task_tree(scope_);
        return false;
      }
      static void await_resume() noexcept {}

     private:
      Scope& scope_;
      std::string& text_;
    };
    auto subject = [&]() -> Task<int> {
      Dumps dumps(scope, dump);
      co_return co_await with(std::move(dumps), noncancellable(returns(4)));
    };
    StartedTask<int> s = subject().start(scope);
    co_return co_await std::move(s);
  };
  EXPECT_EQ(run(loop, root()), 4);
  EXPECT_NE(dump.find("with"), std::string::npos) << dump;
}

TEST_F(FieldRegressionTest, ADeepChainIsCancelledWithoutOverflow) {
  struct Chain {
    static Task<int> link(int depth) {
      if (depth > 0) co_return co_await link(depth - 1) + 1;
      co_await suspend_forever();
      co_return 0;
    }
  };
  auto subject = []() -> Task<void> { static_cast<void>(co_await Chain::link(50'000)); };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
}

TEST_F(FieldRegressionTest, LaterErrorsAreKept) {
  auto root = []() -> Task<void> {
    auto body = [](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < 3; ++i) nursery.start(throws_after(1, std::to_string(i)));
      co_return join;
    };
    try {
      co_await with_nursery(body);
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "0");
      EXPECT_EQ(other_errors().count, 2u);
      EXPECT_EQ(other_errors().kept.size(), 2u);
    }
    try {
      co_await all_of(throws_after(1, "a"), throws_after(1, "b"));
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "a");
      EXPECT_EQ(other_errors().count, 1u);
    }
  };
  run(loop, root());
}

TEST_F(FieldRegressionTest, AResumeFromABareLoopCallbackRunsNothingInline) {
  Gate gate;
  struct Fire : Runnable {
    Fire(Gate& g, Events& e) : Runnable(&fire), gate(g), events(e) {}
    static void fire(Runnable& self) noexcept {
      auto& here = static_cast<Fire&>(self);
      here.gate.fire();
      here.events.push_back("callback ends");
    }
    Gate& gate;
    Events& events;
  };
  auto root = [&]() -> Task<void> {
    Fire fire(gate, events);
    loop.post(fire);
    co_await gate;
    events.push_back("task");
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"callback ends", "task"}));
}

TEST_F(FieldRegressionTest, StartOfACapturingLambdaTakesTwoBlocks) {
  auto root = []() -> Task<void> {
    auto body = [](Nursery& nursery) -> Task<NurseryEnd> {
      auto held = std::make_shared<int>(1);
      auto lambda = [held]() -> Task<void> { co_await yield(); };
      std::uint64_t before = frame_stats().blocks_handed_out;
      nursery.start(lambda);
      co_await yield();
      co_await yield();
      EXPECT_LE(frame_stats().blocks_handed_out - before, 2u);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

// --- The scope tree -----------------------------------------------------------------------------

TEST_F(FieldRegressionTest, CancellingInFlightTimeoutFromOutsideEnds) {
  auto leaf = []() -> Task<void> { static_cast<void>(co_await timeout(1h, suspend_forever())); };
  auto task = []() -> Task<void> { static_cast<void>(co_await timeout(1h, parked())); };
  EXPECT_TRUE(cancelled(leaf).is_cancelled());
  EXPECT_TRUE(cancelled(task).is_cancelled());
  EXPECT_EQ(loop.elapsed(), 2ms);
}
TEST_F(FieldRegressionTest, CancellingInFlightAnyOfFromOutsideEnds) {
  auto subject = []() -> Task<void> { co_await any_of(parked(), sleep_for(1h)); };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
  EXPECT_EQ(loop.elapsed(), 1ms);
}
TEST_F(FieldRegressionTest, CancellingInFlightAllOfFromOutsideEnds) {
  auto subject = []() -> Task<void> { co_await all_of(parked(), parked(), yields(1)); };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
}

TEST_F(FieldRegressionTest, AwaitErrorCancelsLiveChildren) {
  using Result = std::expected<int, int>;
  auto subject = [&](bool by_await) -> Task<Result> {
    StartedTask<void> child = parked_with(events, "child").start_immediate_in_current_scope();
    child.detach();
    if (by_await) {
      int never = co_await ok(just(Result(std::unexpected(3))));
      co_return never;
    }
    throw 3;
  };
  auto root = [&]() -> Task<void> {
    Result result = co_await subject(true);
    EXPECT_EQ(result, std::unexpected(3));
    events.push_back("ok");
    try {
      static_cast<void>(co_await subject(false));
    } catch (int) {
      events.push_back("throw");
    }
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"~child", "ok", "~child", "throw"}));
}

TEST_F(FieldRegressionTest, ResultIsPublishedAfterTheFrameIsGone) {
  LoopThread other;
  std::atomic<bool> gone = false;
  std::atomic<bool> read = false;
  std::atomic<int> turns = 0;
  auto child = [&]() -> Task<int> {
    OnExit slow([&] {
      // The waiter's loop goes round and round; a result that was published would be read by now.
      for (int from = turns; turns < from + 10 && !read;) std::this_thread::yield();
      gone = true;
    });
    co_return 1;
  };
  ThreadLoop here;
  auto counter = [&]() -> Task<void> {
    for (; !gone; ++turns) co_await yield();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> counting = counter().start_in_current_scope();
    StartedTask<int> s = child().start_with_parent_scope(other.lease());
    int value = co_await std::move(s);
    read = true;
    EXPECT_EQ(value, 1);
    EXPECT_TRUE(gone);
    co_await std::move(counting);
  };
  run(here, root());
}

TEST_F(FieldRegressionTest, FinishedChildrenAndSleepsLeaveTheirScopeAtOnce) {
  auto root = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    std::int64_t before = 0;
    for (int i = 0; i < 1000; ++i) {
      StartedTask<void> s = yields(1).start(scope);
      co_await std::move(s);
      co_await sleep_for(1ns);
      if (i == 10) before = frame_stats().blocks_live;
    }
    EXPECT_EQ(frame_stats().blocks_live, before);
  };
  run(loop, root());
}

TEST_F(FieldRegressionTest, TimerArmedOnOneLoopCancelledFromAnother) {
  LoopThread other;
  ThreadLoop here;
  std::atomic<bool> asleep = false;
  auto sleeper = [](std::atomic<bool>& flag) -> Task<void> {
    flag = true;
    co_await sleep_for(1h);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = sleeper(asleep).start_with_parent_scope(other.lease());
    while (!asleep) co_await yield();
    auto late = co_await timeout(1h, sleep_for(1us));  // a timer of this loop, meanwhile
    EXPECT_TRUE(late.has_value());
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(here, root());
}

TEST_F(FieldRegressionTest, TimeoutAndCancellationAreDifferentThings) {
  std::expected<void, TimedOut> late;
  auto times_out = [&]() -> Task<void> { late = co_await timeout(500us, parked()); };
  auto is_cancelled = [&]() -> Task<void> { late = co_await timeout(1h, parked()); };
  EXPECT_TRUE(cancelled(times_out).has_value());
  EXPECT_FALSE(late.has_value());
  late = {};
  EXPECT_TRUE(cancelled(is_cancelled).is_cancelled());
  EXPECT_TRUE(late.has_value()) << "not assigned";
}

TEST_F(FieldRegressionTest, AllOfLazyTasksRunsThemAtTheSameTime) {
  auto nap = []() -> Task<void> { co_await sleep_for(1ms); };
  auto root = [&]() -> Task<void> { co_await all_of(nap(), nap(), nap()); };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 1ms);
}

TEST_F(FieldRegressionTest, CancelOffALoopThreadWorks) {
  ThreadLoop real;
  auto root = []() -> Task<void> {
    StartedTask<void> s = parked().start_in_current_scope();
    CancelHandle handle = s.cancel_handle();
    std::thread stranger([&] { handle.cancel(); });
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
    stranger.join();
  };
  run(real, root());
}

}  // namespace
