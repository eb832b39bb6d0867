// SPDX-License-Identifier: MIT
#include "weft/core/task_local.h"

#include <string>

#include <stdexcept>
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

TaskLocal<int> number;
TaskLocal<std::string> name;

struct TaskLocalTest : EachLoopTest {};

int bound() { return number.get() ? *number : -1; }
Task<int> read() {
  co_await yield();
  co_return bound();
}

LOOP_TEST(TaskLocalTest, IsBoundInsideWithAndNowhereElse) {
  auto body = []() -> Task<void> {
    EXPECT_EQ(bound(), -1);
    int inside = co_await number.with(7, read());
    EXPECT_EQ(inside, 7);
    EXPECT_EQ(bound(), -1);
  };
  run_on(loop, body());
  EXPECT_EQ(bound(), -1);
}

LOOP_TEST(TaskLocalTest, TheInnermostBindingIsSeenAndTheOuterComesBack) {
  auto inner = []() -> Task<void> {
    EXPECT_EQ(bound(), 1);
    int nested = co_await number.with(2, read());
    EXPECT_EQ(nested, 2);
    EXPECT_EQ(bound(), 1);
  };
  run_on(loop, number.with(1, inner()));
}

LOOP_TEST(TaskLocalTest, TwoVariablesDoNotMix) {
  auto inner = []() -> Task<void> {
    EXPECT_EQ(*number, 1);
    EXPECT_EQ(*name, "weft");
    EXPECT_EQ(name->size(), 4u);
    co_return;
  };
  auto outer = [&]() -> Task<void> { co_await name.with("weft", inner()); };
  run_on(loop, number.with(1, outer()));
}

LOOP_TEST(TaskLocalTest, StartedChildrenShareItAndKeepItWhileTheyRun) {
  StartedTask<int> later;
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto starter = [&]() -> Task<int*> {
      later = read().start(scope);
      co_return number.get();
    };
    int* there = co_await number.with(5, starter());
    EXPECT_NE(there, nullptr);
    EXPECT_EQ(bound(), -1);  // the binding is over here
    int kept = co_await std::move(later);
    EXPECT_EQ(kept, 5);
  };
  run_on(loop, root());
}

LOOP_TEST(TaskLocalTest, NurseryChildrenInheritIt) {
  auto inner = []() -> Task<void> {
    int seen = 0;
    auto child = [&seen]() -> Task<void> { seen = co_await read(); };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_EQ(bound(), 3);
      n.start(child());
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_EQ(seen, 3);
  };
  run_on(loop, number.with(3, inner()));
}

LOOP_TEST(TaskLocalTest, AChildsBindingIsNotSeenByItsParent) {
  auto child = []() -> Task<void> {
    int inside = co_await number.with(9, read());
    EXPECT_EQ(inside, 9);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    co_await yields(2);
    EXPECT_EQ(bound(), -1);
    co_await std::move(s);
  };
  run_on(loop, root());
}

LOOP_TEST(TaskLocalTest, TheValueDiesWithTheLastTaskThatHoldsIt) {
  static TaskLocal<Counted> counted;
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> child;
    auto starter = [&]() -> Task<void> {
      child = yields(5).start(scope);
      co_return;
    };
    co_await counted.with(Counted(1), starter());
    EXPECT_EQ(Counted::live, 1);
    co_await std::move(child);
    EXPECT_EQ(Counted::live, 0);
  };
  run_on(loop, root());
  EXPECT_EQ(Counted::live, 0);
}

LOOP_TEST(TaskLocalTest, DestructorsOfTheBoundTasksLocalsStillSeeIt) {
  int seen = 0;
  auto inner = [&]() -> Task<void> {
    OnExit look([&seen] { seen = bound(); });
    co_await suspend_forever();
  };
  auto user = [&]() -> Task<void> { co_await number.with(4, inner()); };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = user().start_immediate_in_current_scope();
    co_await yields(2);
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(seen, 4);
}

LOOP_TEST(TaskLocalTest, ErrorsPassThroughWith) {
  auto root = []() -> Task<void> { co_await number.with(1, throws_after(1, "inside")); };
  EXPECT_THROW(run_on(loop, root()), std::runtime_error);
}

LOOP_TEST(TaskLocalTest, ABoundTaskThatCancelsItselfCancelsItsWaiter) {
  static constexpr CancelReason kWhy{"itself"};
  auto inner = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    scope.cancel(kWhy);
    co_await yield();
  };
  auto user = [&]() -> Task<void> {
    co_await number.with(1, inner());
    ADD_FAILURE();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = user().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &kWhy);
    }
  };
  run_on(loop, root());
}

LOOP_TEST(TaskLocalTest, AnUnboundReadThroughTheStarIsRefused) {
  auto body = []() -> Task<void> {
    EXPECT_THROW(static_cast<void>(*number), UsageError);
    co_return;
  };
  run_on(loop, body());
  EXPECT_THROW(static_cast<void>(*number), UsageError);
}

// A value whose n-th move throws.
struct Brittle {
  explicit Brittle(int& m) : moves_left(&m) {}
  Brittle(Brittle&& other) : moves_left(other.moves_left) {
    if ((*moves_left)-- == 0) throw std::runtime_error("cannot be moved");
  }
  int* moves_left;
};

LOOP_TEST(TaskLocalTest, AValueWhoseMoveThrowsLeavesTheOuterBindingsAlone) {
  static TaskLocal<Counted> counted;
  static TaskLocal<Brittle> brittle;
  // Returns: true if so many moves were enough.
  auto bind = [&](int moves) {
    auto inner = [&]() -> Task<void> { co_await brittle.with(Brittle(moves), yields(1)); };
    auto root = [&]() -> Task<void> { co_await counted.with(Counted(1), inner()); };
    try {
      run_on(loop, root());
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "cannot be moved");
      return false;
    }
    return true;
  };
  int moves = 0;
  while (!bind(moves)) {
    EXPECT_EQ(Counted::live, 0) << "thrown after moves: " << moves;
    ++moves;
  }
  EXPECT_GE(moves, 1);
}

TEST(TaskLocalThreads, AChildOnAnotherLoopKeepsTheBindings) {
  static TaskLocal<std::string> name;
  weft::testing::LoopThread other;
  weft::testing::ThreadLoop loop;
  auto grandchild = []() -> Task<std::string> {
    co_await yield();
    co_return *name + " and hers";
  };
  auto child = [&]() -> Task<std::string> {
    EXPECT_EQ(Executor::current_or_null(), &other.executor());
    co_await yield();
    StartedTask<std::string> s = grandchild().start_in_current_scope();
    co_return co_await std::move(s);
  };
  auto starter = [&](StartedTask<std::string>& out) -> Task<void> {
    out = child().start_with_parent_scope(other.lease());
    co_return;
  };
  auto root = [&]() -> Task<void> {
    StartedTask<std::string> s;
    co_await name.with("the parent's", starter(s));  // the binding ends here, the child's does not
    EXPECT_EQ(name.get(), nullptr);
    std::string seen = co_await std::move(s);
    EXPECT_EQ(seen, "the parent's and hers");
  };
  for (int i = 0; i < 20; ++i) run_on(loop, root());
}

}  // namespace
