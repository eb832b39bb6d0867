// SPDX-License-Identifier: MIT
// Seed 001: the scope tree. Joining and cancelling.
#include "weft/core/scope.h"

#include <thread>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

constexpr CancelReason kWhy{"the test said so"};

struct ScopeTest : EachLoopTest {};

Task<void> ends_after(Events& events, int turns, std::string name) {
  co_await yields(turns);
  events.push_back(name);
}

// --- Joining ------------------------------------------------------------------------------------

LOOP_TEST(ScopeTest, FinalSuspendWaitsForEveryChild) {
  Events events;
  auto parent = [&]() -> Task<int> {
    Marker local(events, "locals");
    ends_after(events, 5, "slow").start_in_current_scope().detach();
    ends_after(events, 2, "quick").start_in_current_scope().detach();
    co_return 1;
  };
  auto root = [&]() -> Task<void> {
    int value = co_await parent();
    EXPECT_EQ(value, 1);
    events.push_back("parent ended");
  };
  run_on(loop, root());
  // The locals die first: that is why children take their arguments by value.
  EXPECT_EQ(events, (Events{"~locals", "quick", "slow", "parent ended"}));
}

LOOP_TEST(ScopeTest, AChildsFrameIsGoneBeforeItsParentEnds) {
  Events events;
  auto child = [](Marker) -> Task<void> { co_await yields(3); };
  auto parent = [&]() -> Task<void> {
    child(Marker(events, "child's argument")).start_in_current_scope().detach();
    co_return;
  };
  auto root = [&]() -> Task<void> {
    co_await parent();
    events.push_back("parent ended");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~child's argument", "parent ended"}));
}

LOOP_TEST(ScopeTest, AStartedParentWaitsForGrandchildrenToo) {
  Events events;
  auto child = [&]() -> Task<void> {
    ends_after(events, 6, "grandchild").start_in_current_scope().detach();
    co_return;
  };
  auto parent = [&]() -> Task<void> {
    child().start_in_current_scope().detach();
    co_return;
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parent().start_in_current_scope();
    co_await std::move(s);
    events.push_back("parent ended");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"grandchild", "parent ended"}));
}

LOOP_TEST(ScopeTest, AnOuterFrameOfTheStrandIsAScopeOfItsOwn) {
  Events events;
  auto inner = [&](Scope& outer) -> Task<void> {
    ends_after(events, 4, "in outer").start(outer).detach();
    ends_after(events, 1, "in inner").start_in_current_scope().detach();
    co_return;
  };
  auto outer = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    co_await inner(mine);
    events.push_back("inner ended");
  };
  auto root = [&]() -> Task<void> {
    co_await outer();
    events.push_back("outer ended");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"in inner", "inner ended", "in outer", "outer ended"}));
}

LOOP_TEST(ScopeTest, AChildMayStartSiblingsWhileItsParentWaits) {
  Events events;
  auto child = [&](Scope& scope) -> Task<void> {
    co_await yields(2);
    ends_after(events, 3, "sibling").start(scope).detach();
  };
  auto parent = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    child(scope).start(scope).detach();
  };
  auto root = [&]() -> Task<void> {
    co_await parent();
    events.push_back("parent ended");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"sibling", "parent ended"}));
}

// --- Cancelling ---------------------------------------------------------------------------------

LOOP_TEST(ScopeTest, CancellingAScopeThatAlreadyWaitsReachesItsChildren) {
  Events events;
  auto parent = [&]() -> Task<int> {
    parked_with(events, "child").start_in_current_scope().detach();
    co_return 4;
  };
  auto root = [&]() -> Task<void> {
    StartedTask<int> s = parent().start_in_current_scope();
    co_await yields(3);
    EXPECT_FALSE(s.is_done());
    s.cancel();
    int value = co_await std::move(s);  // it had ended with a value, and only waited
    EXPECT_EQ(value, 4);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~child"}));
}

LOOP_TEST(ScopeTest, CancellingAnInlineFrameThatWaitsReachesItsChildren) {
  Events events;
  auto inner = [&]() -> Task<void> {
    parked_with(events, "child").start_in_current_scope().detach();
    co_return;
  };
  auto outer = [&]() -> Task<void> {
    Marker marker(events, "outer");
    co_await inner();
    co_await yield();
    ADD_FAILURE() << "the request strikes at the next await";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = outer().start_in_current_scope();
    co_await yields(3);
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~child", "~outer"}));
}

LOOP_TEST(ScopeTest, CancellationReachesTheChildrenOfEveryFrameInnermostDiesFirst) {
  Events events;
  auto leaf = [&]() -> Task<void> {
    parked_with(events, "leaf's child").start_in_current_scope().detach();
    Marker marker(events, "leaf");
    co_await suspend_forever();
  };
  auto trunk = [&]() -> Task<void> {
    parked_with(events, "trunk's child").start_in_current_scope().detach();
    Marker marker(events, "trunk");
    co_await leaf();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = trunk().start_in_current_scope();
    co_await yields(3);
    s.cancel(kWhy);
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  // Children end before the frame that they belong to is destroyed; frames go innermost first.
  EXPECT_EQ(events, (Events{"~leaf's child", "~trunk's child", "~leaf", "~trunk"}));
}

LOOP_TEST(ScopeTest, AReasonTravelsDownTheTree) {
  const CancelReason* seen = nullptr;
  auto child = [](StartedTask<void>* out) -> Task<void> {
    *out = parked().start_in_current_scope();
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> grandchild;
    StartedTask<void> s = child(&grandchild).start_in_current_scope();
    co_await yields(2);
    s.cancel(kWhy);
    Outcome<void> how = co_await grandchild.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) seen = &how.reason();
  };
  run_on(loop, root());
  EXPECT_EQ(seen, &kWhy);
}

LOOP_TEST(ScopeTest, AChildStartedInACancelledScopeRunsToItsFirstCancelPoint) {
  Events events;
  auto child = [&]() -> Task<void> {
    events.push_back("entered");
    co_await yield();
    events.push_back("passed");
  };
  auto parent = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    scope.cancel(kWhy);
    StartedTask<void> s = child().start(scope);
    EXPECT_TRUE(scope.is_cancelled());
    auto guard = [&]() -> Task<void> { co_return; };
    co_await guard();  // no cancel point
    s.detach();
  };
  EXPECT_THROW(
      {
        run_on(loop, parent());
        throw TaskCancelled(kWhy);  // a parent that ends by co_return is not cancelled
      },
      TaskCancelled);
  EXPECT_EQ(events, (Events{"entered"}));
}

LOOP_TEST(ScopeTest, CancelNeverRunsUserCodeOnItsCallersStack) {
  Events events;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto note = [&events] { events.push_back("hook"); };
    CancelHook hook(scope, note);
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_immediate_in_current_scope();
    s.cancel();
    events.push_back("cancel returned");
    co_await yield();
    events.push_back("next turn");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"cancel returned", "hook", "next turn"}));
}

LOOP_TEST(ScopeTest, ABusyTaskSeesACancelFromAnotherThread) {
  auto busy = [](CancelHandle& self) -> Task<int> {
    Scope& scope = co_await current_scope();
    StopToken token = scope.stop_token();
    EXPECT_FALSE(scope.is_cancelled());
    EXPECT_FALSE(token.stop_requested());
    std::thread([handle = std::move(self)] { handle.cancel(); }).join();
    EXPECT_TRUE(scope.is_cancelled());
    EXPECT_TRUE(scope.is_effectively_cancelled());
    EXPECT_TRUE(token.stop_requested());
    co_return 1;
  };
  auto root = [&]() -> Task<int> {
    CancelHandle self;
    StartedTask<int> s = busy(self).start_in_current_scope();
    self = s.cancel_handle();
    co_return co_await std::move(s);
  };
  EXPECT_EQ(run_on(loop, root()), 1);
}

LOOP_TEST(ScopeTest, EveryFrameOfAStrandSharesOneWord) {
  auto inner = [](Scope& outer) -> Task<void> {
    Scope& mine = co_await current_scope();
    EXPECT_NE(&mine, &outer);
    mine.cancel();
    EXPECT_TRUE(outer.is_cancelled());
  };
  auto body = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    co_await inner(mine);
  };
  run_on(loop, body());
}

LOOP_TEST(ScopeTest, CancellingAChildDoesNotTouchItsParentOrSiblings) {
  auto root = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> victim = parked().start(scope);
    StartedTask<void> other = yields(5).start(scope);
    victim.cancel();
    Outcome<void> how = co_await other.outcome();
    EXPECT_TRUE(how.has_value());
    EXPECT_FALSE(scope.is_cancelled());
  };
  run_on(loop, root());
}

LOOP_TEST(ScopeTest, FinishIfCancelledIsACancelPointAndNothingElse) {
  bool passed = false;
  auto child = [&]() -> Task<void> {
    co_await finish_if_cancelled();
    passed = true;
    Scope& scope = co_await current_scope();
    scope.cancel();
    co_await finish_if_cancelled();
    ADD_FAILURE();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_TRUE(passed);
}

}  // namespace
