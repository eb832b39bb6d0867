// SPDX-License-Identifier: MIT
// L9, the way out, and L14, errors are not lost.
#include "weft/core/errors.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "support/ending.h"
#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;

struct ErrorsTest : EachLoopTest {};

// What a task threw, as text; "none" if it did not.
template <class T>
std::string error_of(AnyLoop& loop, Task<T> task) {
  try {
    static_cast<void>(run_on(loop, std::move(task)));
  } catch (const TaskCancelled&) {
    return "cancelled";
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

Task<void> ends_after(Events& events, int turns, std::string name) {
  Marker marker(events, name);
  co_await yields(turns);
  events.push_back(name + " ended");
}

// --- L9 -----------------------------------------------------------------------------------------

LOOP_TEST(ErrorsTest, CoReturnJoinsChildrenAndDoesNotCancelThem) {
  Events events;
  auto parent = [&]() -> Task<void> {
    Marker locals(events, "locals");
    ends_after(events, 3, "child").start_in_current_scope().detach();
    co_return;
  };
  auto root = [&]() -> Task<void> {
    co_await parent();
    events.push_back("parent");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~locals", "child ended", "~child", "parent"}));
}

LOOP_TEST(ErrorsTest, AHandleDroppedByCoReturnCancelsItsChild) {
  Events events;
  auto parent = [&]() -> Task<void> {
    StartedTask<void> s = parked_with(events, "child").start_immediate_in_current_scope();
    co_return;
  };
  run_on(loop, parent());
  EXPECT_EQ(events, (Events{"~child"}));
}

LOOP_TEST(ErrorsTest, AnEscapingExceptionCancelsChildrenThenJoinsThem) {
  Events events;
  const CancelReason* why = nullptr;
  auto parent = [&](StartedTask<void>& out) -> Task<void> {
    Marker locals(events, "locals");
    out = parked_with(events, "child").start_immediate_in_current_scope();
    throw std::runtime_error("parent");
    co_return;
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> child;
    try {
      co_await parent(child);
    } catch (const std::runtime_error& error) {
      events.push_back(error.what());
    }
    Outcome<void> how = co_await child.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) why = &how.reason();
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~locals", "~child", "parent"}));
  EXPECT_EQ(why, &reasons::parent_failed);
}

LOOP_TEST(ErrorsTest, CancellationCancelsAndJoinsChildrenThenLocalsDie) {
  Events events;
  auto stubborn = [&]() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(4);
    events.push_back("child ended");
  };
  auto parent = [&]() -> Task<void> {
    Marker locals(events, "locals");
    stubborn().start_immediate_in_current_scope().detach();
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parent().start_immediate_in_current_scope();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"child ended", "~locals"}));
}

LOOP_TEST(ErrorsTest, AnExceptionWhileSiblingsAreShieldedWaitsForThem) {
  Events events;
  auto shielded = [&]() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(5);
    events.push_back("shielded ended");
  };
  auto parent = [&]() -> Task<void> {
    shielded().start_immediate_in_current_scope().detach();
    parked_with(events, "parked").start_immediate_in_current_scope().detach();
    co_await yield();
    throw std::runtime_error("parent");
  };
  EXPECT_EQ(error_of(loop, parent()), "parent");
  EXPECT_EQ(events, (Events{"~parked", "shielded ended"}));
}

// --- L14: who is owed an error ------------------------------------------------------------------

LOOP_TEST(ErrorsTest, TheErrorOfADetachedChildBelongsToItsScope) {
  auto waiting = []() -> Task<int> {  // at its end when the child fails
    throws_after(3, "child").start_in_current_scope().detach();
    co_return 1;
  };
  EXPECT_EQ(error_of(loop, waiting()), "child");
  auto running = []() -> Task<int> {  // the child has failed and is gone when the parent ends
    throws_after(0, "child").start_in_current_scope().detach();
    co_await yields(4);
    co_return 1;
  };
  EXPECT_EQ(error_of(loop, running()), "child");
}

LOOP_TEST(ErrorsTest, TheErrorOfADetachedChildOfAnInlineFrameReachesItsCaller) {
  auto inner = [](int turns) -> Task<int> {
    throws_after(0, "child").start_in_current_scope().detach();
    co_await yields(turns);
    co_return 1;
  };
  auto outer = [&](int turns) -> Task<std::string> {
    try {
      static_cast<void>(co_await inner(turns));
    } catch (const std::runtime_error& error) {
      co_return error.what();
    }
    co_return "none";
  };
  EXPECT_EQ(run_on(loop, outer(0)), "child");
  EXPECT_EQ(run_on(loop, outer(4)), "child");
}

LOOP_TEST(ErrorsTest, AFailedChildCancelsItsSiblingsInAFramesScope) {
  Events events;
  const CancelReason* why = nullptr;
  auto parent = [&]() -> Task<void> {
    StartedTask<void> sibling = parked_with(events, "sibling").start_immediate_in_current_scope();
    throws_after(0, "child").start_in_current_scope().detach();
    Outcome<void> how = co_await sibling.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) why = &how.reason();
  };
  EXPECT_EQ(error_of(loop, parent()), "child");
  EXPECT_EQ(why, &reasons::sibling_failed);
}

LOOP_TEST(ErrorsTest, AnErrorIsOwedToTheHandleWhileOneExists) {
  auto parent = []() -> Task<void> {
    StartedTask<void> s = throws_after(0, "handle's").start_in_current_scope();
    co_await yields(3);
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.has_error());
    if (how.has_error()) {
      EXPECT_EQ(text_of(how.error()), "handle's");
    }
  };
  LogCapture log;
  EXPECT_EQ(error_of(loop, parent()), "none");
  EXPECT_TRUE(log.take().empty());
}

LOOP_TEST(ErrorsTest, AnErrorDroppedUnreadGoesToTheLog) {
  auto parent = []() -> Task<void> {
    StartedTask<void> s = throws_after(0, "nobody reads me").start_in_current_scope();
    co_await yields(3);
  };
  LogCapture log;
  EXPECT_EQ(error_of(loop, parent()), "none");
  std::vector<std::string> lines = log.take();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("nobody reads me"), std::string::npos) << lines[0];
}

LOOP_TEST(ErrorsTest, AHandleDroppedBeforeTheErrorLeavesItToTheScope) {
  auto fails_when_cancelled = []() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(3);
    throw std::runtime_error("late");
  };
  auto parent = [&]() -> Task<void> {
    {
      StartedTask<void> s = fails_when_cancelled().start_immediate_in_current_scope();
    }
    co_return;
  };
  LogCapture log;
  EXPECT_EQ(error_of(loop, parent()), "late");
  EXPECT_TRUE(log.take().empty());
}

LOOP_TEST(ErrorsTest, AnErrorOfACancelledTaskBeatsItsCancellation) {
  // A child fails while its parent is being cancelled: the error is not lost.
  auto failing = []() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(3);
    throw std::runtime_error("failed on the way out");
  };
  auto parent = [&]() -> Task<void> {
    failing().start_immediate_in_current_scope().detach();
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parent().start_immediate_in_current_scope();
    s.cancel();
    co_await std::move(s);
  };
  EXPECT_EQ(error_of(loop, root()), "failed on the way out");
}

LOOP_TEST(ErrorsTest, AnErrorInAnInnerFramesChildReachesTheFirstFrameWhenCancelled) {
  auto failing = []() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(3);
    throw std::runtime_error("inner");
  };
  auto inner = [&]() -> Task<void> {
    failing().start_immediate_in_current_scope().detach();
    co_await suspend_forever();
  };
  auto outer = [&]() -> Task<void> { co_await inner(); };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = outer().start_immediate_in_current_scope();
    s.cancel();
    co_await std::move(s);
  };
  EXPECT_EQ(error_of(loop, root()), "inner");
}

// --- L14: the first, and the others -------------------------------------------------------------

LOOP_TEST(ErrorsTest, TheFirstErrorIsRethrownUnchangedAndTheOthersCanBeRead) {
  struct First : std::runtime_error {
    explicit First(const void* id) : std::runtime_error("first"), self(id) {}
    const void* self;
  };
  int identity = 0;
  auto first = [&]() -> Task<void> {
    co_await yields(1);
    throw First(&identity);
  };
  auto later = [](std::string what) -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(3);
    throw std::runtime_error(what);
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(later("b"));
      n.start(later("c"));
      n.start(first());
      co_return join;
    };
    try {
      co_await with_nursery(body);
      ADD_FAILURE();
    } catch (const First& error) {
      EXPECT_EQ(error.self, &identity);
      OtherErrors others = other_errors();
      EXPECT_EQ(others.count, 2u);
      EXPECT_EQ(others.kept.size(), 2u);
      if (others.kept.size() == 2) {
        EXPECT_EQ(text_of(others.kept[0]), "b");
        EXPECT_EQ(text_of(others.kept[1]), "c");
      }
    }
  };
  run_on(loop, root());
}

LOOP_TEST(ErrorsTest, UpToABoundTheOthersAreKeptAndAllAreCounted) {
  constexpr int kChildren = 2 * static_cast<int>(kErrorsKept) + 3;
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kChildren; ++i) n.start(throws_after(0, std::to_string(i)));
      co_return join;
    };
    try {
      co_await with_nursery(body);
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "0");
      OtherErrors others = other_errors();
      EXPECT_EQ(others.count, std::size_t{kChildren - 1});
      EXPECT_EQ(others.kept.size(), kErrorsKept);
    }
  };
  run_on(loop, root());
}

LOOP_TEST(ErrorsTest, AFramesOwnErrorComesFirstAndItsChildrensAfter) {
  auto failing = []() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(3);
    throw std::runtime_error("child");
  };
  auto inner = [&]() -> Task<void> {
    failing().start_immediate_in_current_scope().detach();
    co_await yield();
    throw std::runtime_error("own");
  };
  auto outer = [&]() -> Task<void> {
    try {
      co_await inner();
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "own");
      OtherErrors others = other_errors();
      EXPECT_EQ(others.count, 1u);
      if (others.count == 1) {
        EXPECT_EQ(text_of(others.kept[0]), "child");
      }
    }
  };
  run_on(loop, outer());
}

LOOP_TEST(ErrorsTest, OtherErrorsIsEmptyOutsideAHandlerAndForALoneError) {
  EXPECT_EQ(other_errors().count, 0u);
  auto root = []() -> Task<void> {
    try {
      co_await throws_after(0, "alone");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(other_errors().count, 0u);
    }
  };
  run_on(loop, root());
}

}  // namespace
