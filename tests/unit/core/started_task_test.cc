// SPDX-License-Identifier: MIT
#include "weft/core/started_task.h"

#include <stdexcept>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;

constexpr CancelReason kWhy{"the test said so"};

struct StartedTaskTest : EachLoopTest {};

Task<int> slow(int value) {
  co_await yield();
  co_return value;
}

LOOP_TEST(StartedTaskTest, AwaitingTheHandleGivesTheValue) {
  auto root = []() -> Task<int> {
    Scope& scope = co_await current_scope();
    StartedTask<int> a = slow(1).start(scope);
    StartedTask<int> b = slow(2).start(scope);
    int first = co_await std::move(a);
    int second = co_await std::move(b);
    co_return first * 10 + second;
  };
  EXPECT_EQ(run_on(loop, root()), 12);
}

LOOP_TEST(StartedTaskTest, StartRunsFromTheReadyRingAndStartImmediateAtOnce) {
  Events events;
  auto child = [&](std::string name) -> Task<void> {
    events.push_back(name);
    co_await yield();
    events.push_back(name + " again");
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = child("ring").start(scope);
    StartedTask<void> b = child("now").start_immediate(scope);
    events.push_back("root");
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"now", "root", "ring", "now again", "ring again"}));
}

LOOP_TEST(StartedTaskTest, StartsInTheCurrentScopeByName) {
  auto root = []() -> Task<int> {
    StartedTask<int> a = slow(3).start_in_current_scope();
    StartedTask<int> b = slow(4).start_immediate_in_current_scope();
    int first = co_await std::move(a);
    int second = co_await std::move(b);
    co_return first + second;
  };
  EXPECT_EQ(run_on(loop, root()), 7);
}

LOOP_TEST(StartedTaskTest, AnImmediateStartThatEndsAtOnceIsDone) {
  auto root = []() -> Task<int> {
    StartedTask<int> s = returns(5).start_immediate_in_current_scope();
    EXPECT_TRUE(s.is_done());
    co_return co_await std::move(s);
  };
  EXPECT_EQ(run_on(loop, root()), 5);
}

LOOP_TEST(StartedTaskTest, AwaitingTheHandleRethrowsTheError) {
  auto root = []() -> Task<void> {
    StartedTask<void> s = throws_after(1, "child").start_in_current_scope();
    try {
      co_await std::move(s);
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "child");
    }
  };
  run_on(loop, root());  // and the scope was not given it a second time
}

LOOP_TEST(StartedTaskTest, TheDestructorCancelsAndDoesNotWait) {
  Events events;
  auto root = [&]() -> Task<void> {
    {
      StartedTask<void> s = parked_with(events, "child").start_immediate_in_current_scope();
    }
    events.push_back("dropped");
    co_await yield();
    co_await yield();
    events.push_back("later");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"dropped", "~child", "later"}));
}

LOOP_TEST(StartedTaskTest, MoveAssignmentCancelsWhatItReplaces) {
  Events events;
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parked_with(events, "first").start_immediate_in_current_scope();
    s = parked_with(events, "second").start_immediate_in_current_scope();
    co_await yield();
    co_await yield();
    events.push_back("still there");
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~first", "still there", "~second"}));
}

LOOP_TEST(StartedTaskTest, DetachNeitherCancelsNorLeavesTheScope) {
  Events events;
  auto child = [&]() -> Task<void> {
    co_await yields(5);
    events.push_back("child ended");
  };
  auto inner = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    s.detach();
    EXPECT_FALSE(s.valid());
    co_return;
  };
  auto root = [&]() -> Task<void> {
    co_await inner();
    events.push_back("inner joined it");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"child ended", "inner joined it"}));
}

LOOP_TEST(StartedTaskTest, OutcomeTellsValueErrorAndCancelledApart) {
  auto root = []() -> Task<void> {
    StartedTask<int> value = slow(6).start_in_current_scope();
    StartedTask<void> error = throws_after(1, "bad").start_in_current_scope();
    StartedTask<void> cancelled = parked().start_in_current_scope();
    cancelled.cancel(kWhy);

    Outcome<int> a = co_await value.outcome();
    EXPECT_TRUE(a.has_value() && !a.has_error() && !a.is_cancelled());
    EXPECT_EQ(std::move(a).get(), 6);

    Outcome<void> b = co_await error.outcome();
    EXPECT_TRUE(b.has_error());
    EXPECT_THROW(std::rethrow_exception(b.error()), std::runtime_error);
    EXPECT_THROW(std::move(b).get(), std::runtime_error);

    Outcome<void> c = co_await cancelled.outcome();
    EXPECT_TRUE(c.is_cancelled());
    EXPECT_EQ(&c.reason(), &kWhy);
    EXPECT_THROW(std::move(c).get(), TaskCancelled);
  };
  run_on(loop, root());
}

LOOP_TEST(StartedTaskTest, TheFirstReasonStays) {
  static constexpr CancelReason kLater{"too late"};
  auto root = []() -> Task<void> {
    StartedTask<void> s = parked().start_in_current_scope();
    s.cancel(kWhy);
    s.cancel(kLater);
    Outcome<void> how = co_await s.outcome();
    EXPECT_EQ(&how.reason(), &kWhy);
  };
  run_on(loop, root());
}

LOOP_TEST(StartedTaskTest, CancellingTheWaiterCancelsTheTaskAndWaitsForIt) {
  Events events;
  auto waiter = [&]() -> Task<void> {
    StartedTask<void> s = parked_with(events, "child").start_in_current_scope();
    Marker marker(events, "waiter");
    co_await std::move(s);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> w = waiter().start_in_current_scope();
    co_await yields(3);
    w.cancel(kWhy);
    Outcome<void> how = co_await w.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_EQ(&how.reason(), &kWhy);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~child", "~waiter"}));
}

LOOP_TEST(StartedTaskTest, AValueThatCameDespiteTheCancelIsDelivered) {
  auto stubborn = []() -> Task<int> {
    auto guard = co_await ignore_cancellation();
    co_await yields(5);
    co_return 9;
  };
  int got = 0;
  auto waiter = [&]() -> Task<void> {
    StartedTask<int> s = stubborn().start_immediate_in_current_scope();
    got = co_await std::move(s);
    co_await yield();
    ADD_FAILURE() << "the request strikes at the next await";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> w = waiter().start_in_current_scope();
    co_await yields(2);
    w.cancel();
    Outcome<void> how = co_await w.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(got, 9);
}

LOOP_TEST(StartedTaskTest, CancellingAnOutcomeWaitWithdrawsTheWaitOnly) {
  auto root = []() -> Task<void> {
    StartedTask<int> s = slow(1).start_in_current_scope();
    auto wait = [&]() -> Task<void> { static_cast<void>(co_await s.outcome()); };
    StartedTask<void> w = wait().start_immediate_in_current_scope();
    w.cancel();
    Outcome<void> how = co_await w.outcome();
    EXPECT_TRUE(how.is_cancelled());
    int value = co_await std::move(s);
    EXPECT_EQ(value, 1);
  };
  run_on(loop, root());
}

LOOP_TEST(StartedTaskTest, ATaskCancelledUnaskedCancelsItsWaiterWithItsReason) {
  Events events;
  auto waiter = [&](StartedTask<void> s) -> Task<void> {
    Marker marker(events, "waiter");
    try {
      co_await std::move(s);
    } catch (...) {
      ADD_FAILURE() << "cancellation is no exception";
    }
    ADD_FAILURE() << "the waiter went on";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parked().start_in_current_scope();
    CancelHandle cancel = s.cancel_handle();
    StartedTask<void> w = waiter(std::move(s)).start_in_current_scope();
    co_await yields(2);
    cancel.cancel(kWhy);
    Outcome<void> how = co_await w.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &kWhy);
    }
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~waiter"}));
}

LOOP_TEST(StartedTaskTest, AwaitingATaskThatWasCancelledBeforeCancelsTheWaiterToo) {
  auto waiter = [](StartedTask<void> s) -> Task<void> { co_await std::move(s); };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parked().start_in_current_scope();
    s.cancel(kWhy);
    co_await yields(3);
    EXPECT_TRUE(s.is_done());
    StartedTask<void> w = waiter(std::move(s)).start_in_current_scope();
    Outcome<void> how = co_await w.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &kWhy);
    }
  };
  run_on(loop, root());
}

LOOP_TEST(StartedTaskTest, UnderAShieldATaskCancelledUnaskedThrowsTaskCancelled) {
  bool thrown = false;
  auto waiter = [&](StartedTask<void> s) -> Task<void> {
    auto guard = co_await ignore_cancellation();
    try {
      co_await std::move(s);
    } catch (const TaskCancelled& cancelled) {
      thrown = &cancelled.reason() == &kWhy;
    }
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parked().start_in_current_scope();
    CancelHandle cancel = s.cancel_handle();
    StartedTask<void> w = waiter(std::move(s)).start_in_current_scope();
    co_await yields(2);
    cancel.cancel(kWhy);
    Outcome<void> how = co_await w.outcome();
    EXPECT_TRUE(how.has_value());
  };
  run_on(loop, root());
  EXPECT_TRUE(thrown);
}

LOOP_TEST(StartedTaskTest, ACancelHandleOutlivesItsTask) {
  auto root = []() -> Task<void> {
    StartedTask<int> s = slow(1).start_in_current_scope();
    CancelHandle handle = s.cancel_handle();
    CancelHandle copy = handle;
    static_cast<void>(co_await std::move(s));
    copy.cancel();
    handle.cancel();
    CancelHandle().cancel();  // empty: nothing
  };
  run_on(loop, root());
}

LOOP_TEST(StartedTaskTest, ACancelBeforeTheFirstEntryStillEntersTheTask) {
  bool entered = false;
  bool passed = false;
  auto child = [&]() -> Task<void> {
    entered = true;
    co_await yield();
    passed = true;
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_TRUE(entered);
  EXPECT_FALSE(passed);
}

LOOP_TEST(StartedTaskTest, AnUnreadValueIsDestroyedWithTheHandle) {
  auto make = []() -> Task<Counted> { co_return Counted(1); };
  auto root = [&]() -> Task<void> {
    {
      StartedTask<Counted> s = make().start_immediate_in_current_scope();
      EXPECT_EQ(Counted::live, 1);
    }
    EXPECT_EQ(Counted::live, 0);
    co_return;
  };
  run_on(loop, root());
}

LOOP_TEST(StartedTaskTest, TheFrameIsGoneWhenTheHandleSaysDone) {
  Events events;
  auto child = [&](Marker) -> Task<void> { co_await yield(); };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child(Marker(events, "argument")).start_in_current_scope();
    while (!s.is_done()) co_await yield();
    events.push_back("done");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~argument", "done"}));
}

LOOP_TEST(StartedTaskTest, CancelThatRacesTheEndIsHarmless) {
  // Cancelled after its last await, before its end: a husk that waits for its kick.
  auto child = [](Gate& gate, CancelHandle& self) -> Task<int> {
    co_await gate;
    self.cancel();
    co_return 3;
  };
  auto root = [&]() -> Task<int> {
    Gate gate;
    CancelHandle self;
    StartedTask<int> s = child(gate, self).start_immediate_in_current_scope();
    self = s.cancel_handle();
    gate.fire();
    co_return co_await std::move(s);
  };
  EXPECT_EQ(run_on(loop, root()), 3);
}

LOOP_TEST(StartedTaskTest, AnOutcomeMayBeAReferenceOfEitherKind) {
  std::string text = "moved";
  int number = 3;
  auto rvalue = [&]() -> Task<std::string&&> { co_return std::move(text); };
  auto lvalue = [&]() -> Task<const int&> { co_return number; };
  auto root = [&]() -> Task<void> {
    StartedTask<std::string&&> a = rvalue().start_in_current_scope();
    Outcome<std::string&&> how = co_await a.outcome();
    std::string taken = std::move(how).get();
    EXPECT_EQ(taken, "moved");
    EXPECT_EQ(text, "");
    StartedTask<const int&> b = lvalue().start_in_current_scope();
    Outcome<const int&> which = co_await b.outcome();
    EXPECT_EQ(&std::move(which).get(), &number);
  };
  run_on(loop, root());
}

}  // namespace
