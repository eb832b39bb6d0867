// SPDX-License-Identifier: MIT
// What a turn of a loop is, and in which order a cancelled scope is told.
#include <chrono>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

Task<void> sleep_an_hour() { co_await sleep_for(1h); }

// entries_run() moves on at the end of a turn, which is how a task sees one go by.
TEST(Turn, GoesOnBatchAfterBatchWhileNothingElseIsThere) {
  weft::testing::ThreadLoop loop;
  auto body = [&]() -> Task<void> {
    const std::uint64_t before = loop.entries_run();
    for (int i = 0; i < 10; ++i) co_await yield();
    EXPECT_EQ(loop.entries_run(), before);
    for (std::size_t i = 0; i < Executor::kTurnBudget; ++i) co_await yield();
    EXPECT_GT(loop.entries_run(), before) << "a turn has a budget";
  };
  run_on(loop, body());
}

TEST(Turn, IsOneBatchWhileATimerIsArmed) {
  weft::testing::ThreadLoop loop;
  auto body = [&]() -> Task<void> {
    StartedTask<void> sleeper = sleep_an_hour().start_in_current_scope();
    co_await yield();  // the sleeper arms its timer, in the middle of a turn of many batches
    for (int i = 0; i < 10; ++i) {
      const std::uint64_t before = loop.entries_run();
      co_await yield();
      EXPECT_GT(loop.entries_run(), before) << "L2: a yield lets timers through";
    }
    sleeper.cancel();
    static_cast<void>(co_await sleeper.outcome());
    co_await yield();
    const std::uint64_t before = loop.entries_run();
    for (int i = 0; i < 10; ++i) co_await yield();
    EXPECT_EQ(loop.entries_run(), before) << "no timer is armed any more";
  };
  run_on(loop, body());
}

TEST(Turn, TakesWhatOthersSentBetweenBatches) {
  weft::testing::ThreadLoop loop;
  struct Flag : Runnable {
    Flag() : Runnable([](Runnable& self) noexcept { static_cast<Flag&>(self).set = true; }) {}
    bool set = false;
  };
  auto body = [&]() -> Task<void> {
    Flag sent;
    const std::uint64_t before = loop.entries_run();
    EXPECT_TRUE(loop.post(sent));
    for (int i = 0; i < 3 && !sent.set; ++i) co_await yield();
    EXPECT_TRUE(sent.set);
    EXPECT_EQ(loop.entries_run(), before) << "... and within the same turn";
  };
  run_on(loop, body());
}

struct CancelOrder : EachLoopTest {};

Task<void> sleeping(Events& events, const char* name) {
  Marker marker(events, name);
  co_await sleep_for(1h);
}
Task<void> inner(Events& events, const char* name) { co_await parked_with(events, name); }
// Has a child of its own, which is told before it.
Task<void> with_child(Events& events, const char* name, const char* child) {
  Marker marker(events, name);
  parked_with(events, child).start_in_current_scope().detach();
  co_await suspend_forever();
}
// Had one.
Task<void> without_child_any_more(Events& events, const char* name) {
  Marker marker(events, name);
  StartedTask<void> child = yields(1).start_in_current_scope();
  co_await std::move(child);
  co_await suspend_forever();
}

// Leaves are kicked in the walk over their scope, all others through the list of kicks, and nobody
// can tell.
LOOP_TEST(CancelOrder, IsStartOrderWhateverTheChildrenWaitFor) {
  Events events;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(parked_with(events, "a"));
    n.start(sleeping(events, "b"));
    n.start(inner(events, "c"));
    n.start(parked_with(events, "d"));
    n.start(without_child_any_more(events, "e"));
    n.start(sleeping(events, "f"));
    co_await yields(8);
    co_return cancel;
  };
  auto main = [&]() -> Task<void> { co_await with_nursery(body); };
  run_on(loop, main());
  EXPECT_EQ(events, (Events{"~a", "~b", "~c", "~d", "~e", "~f"}));
}

LOOP_TEST(CancelOrder, AChildGoesBeforeItsParent) {
  Events events;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(parked_with(events, "a"));
    n.start(with_child(events, "b", "b's"));
    n.start(parked_with(events, "c"));
    co_await yields(8);
    co_return cancel;
  };
  auto main = [&]() -> Task<void> { co_await with_nursery(body); };
  run_on(loop, main());
  EXPECT_EQ(events, (Events{"~a", "~c", "~b's", "~b"}));
}

// A hook of a waiting child runs before any task does, whichever of its frames has it.
Task<void> hooked(Events& events) {
  auto note = [&events] { events.push_back("hook"); };
  CancelHook hook(co_await current_scope(), note);
  co_await suspend_forever();
}
Task<void> hooked_outside(Events& events) {
  auto note = [&events] { events.push_back("outer hook"); };
  CancelHook hook(co_await current_scope(), note);
  co_await inner(events, "inner");
}

LOOP_TEST(CancelOrder, HooksRunBeforeTasks) {
  Events events;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(parked_with(events, "a"));
    n.start(hooked_outside(events));
    n.start(hooked(events));
    co_await yields(8);
    co_return cancel;
  };
  auto main = [&]() -> Task<void> { co_await with_nursery(body); };
  run_on(loop, main());
  EXPECT_EQ(events, (Events{"outer hook", "hook", "~a", "~inner"}));
}

LOOP_TEST(CancelOrder, AHookOfALoneChildRunsBeforeTasks) {
  for (bool outside : {false, true}) {
    Events events;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(parked_with(events, "a"));
      n.start(outside ? hooked_outside(events) : hooked(events));
      co_await yields(8);
      co_return cancel;
    };
    auto main = [&]() -> Task<void> { co_await with_nursery(body); };
    run_on(loop, main());
    ASSERT_GE(events.size(), 2u);
    EXPECT_EQ(events[0], outside ? "outer hook" : "hook");
    EXPECT_EQ(events[1], "~a");
  }
}

// A leaf that ignores cancellation is no leaf: nobody ends it before its guard is gone.
LOOP_TEST(CancelOrder, AnIgnoringChildIsNotEndedInTheWalk) {
  Events events;
  auto ignoring = [&]() -> Task<void> {
    Marker marker(events, "ignoring");
    auto guard = co_await ignore_cancellation();
    co_await sleep_for(1us);
    events.push_back("went on");
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(parked_with(events, "parked"));
    n.start(ignoring());
    co_await yield();
    co_return cancel;
  };
  auto main = [&]() -> Task<void> { co_await with_nursery(body); };
  run_on(loop, main());
  EXPECT_EQ(events, (Events{"~parked", "went on", "~ignoring"}));
}

}  // namespace
