// SPDX-License-Identifier: MIT
#include "weft/core/nursery.h"

#include <memory>
#include <stdexcept>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;

constexpr CancelReason kWhy{"the test said so"};

struct NurseryTest : EachLoopTest {};

Task<void> note_after(Events& events, int turns, std::string name) {
  co_await yields(turns);
  events.push_back(name);
}

LOOP_TEST(NurseryTest, JoinsItsChildrenWhileTheCallersLocalsLive) {
  auto root = []() -> Task<int> {
    int sum = 0;  // children refer to it
    auto add = [&sum](int value) -> Task<void> {
      co_await yields(value);
      sum += value;
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(add(1));
      n.start(add(2));
      n.start(add(3));
      co_return join;
    };
    co_await with_nursery(body);
    co_return sum;
  };
  EXPECT_EQ(run_on(loop, root()), 6);
}

LOOP_TEST(NurseryTest, AnEmptyNurseryEnds) {
  auto root = []() -> Task<void> {
    auto body = [](Nursery&) -> Task<NurseryEnd> { co_return join; };
    co_await with_nursery(body);
  };
  run_on(loop, root());
}

LOOP_TEST(NurseryTest, ABodyThatReturnsCancelCancelsItsChildren) {
  Events events;
  auto root = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(parked_with(events, "a"));
      n.start(parked_with(events, "b"));
      co_await yields(2);
      co_return cancel;
    };
    co_await with_nursery(body);
    events.push_back("after");
    EXPECT_FALSE(mine.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~a", "~b", "after"}));
}

LOOP_TEST(NurseryTest, SizeCountsTheBodyAndEveryChildThatHasNotEnded) {
  auto root = []() -> Task<void> {
    auto body = [](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_EQ(n.size(), 1u);
      n.start(yields(1));
      n.start(yields(5));
      EXPECT_EQ(n.size(), 3u);
      co_await yields(3);
      EXPECT_EQ(n.size(), 2u);
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
}

LOOP_TEST(NurseryTest, CancelReachesEveryChildInStartOrderBeforeAnyTaskRuns) {
  Events events;
  auto child = [&](int number) -> Task<void> {
    Scope& scope = co_await current_scope();
    auto note = [&events, number] { events.push_back("cancel " + std::to_string(number)); };
    CancelHook hook(scope, note);
    Marker marker(events, "child " + std::to_string(number));
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 3; ++i) n.start(child(i));
      co_await yields(2);
      n.cancel();
      events.push_back("asked");
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"asked", "cancel 0", "cancel 1", "cancel 2", "~child 0", "~child 1",
                            "~child 2"}));
}

LOOP_TEST(NurseryTest, CancellingTheAwaitingTaskCancelsBodyAndChildrenWithItsReason) {
  Events events;
  const CancelReason* seen = nullptr;
  auto user = [&]() -> Task<void> {
    Marker marker(events, "user");
    auto child = [&]() -> Task<void> {
      StartedTask<void> inner = parked().start_in_current_scope();
      auto guard = co_await ignore_cancellation();
      Scope& scope = co_await current_scope();
      while (!scope.is_cancelled()) co_await yield();
      inner.cancel();
      Outcome<void> how = co_await inner.outcome();
      EXPECT_TRUE(how.is_cancelled());
      events.push_back("child saw it");
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      Marker in_body(events, "body");
      n.start(child());
      co_await suspend_forever();
      co_return join;
    };
    co_await with_nursery(body);
    ADD_FAILURE() << "a cancelled nursery does not resume";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = user().start_in_current_scope();
    co_await yields(3);
    s.cancel(kWhy);
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) seen = &how.reason();
  };
  run_on(loop, root());
  EXPECT_EQ(seen, &kWhy);
  EXPECT_EQ(events, (Events{"~body", "child saw it", "~user"}));
}

LOOP_TEST(NurseryTest, CancellingTheNurseryNeverTouchesTheCallersWord) {
  auto root = []() -> Task<void> {
    Scope& mine = co_await current_scope();
    auto body = [](Nursery& n) -> Task<NurseryEnd> {
      n.cancel(kWhy);
      EXPECT_TRUE(n.is_cancelled());
      co_await suspend_forever();
      ADD_FAILURE() << "the body is a child of its nursery";
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_FALSE(mine.is_cancelled());
    co_await yield();  // and the caller goes on
  };
  run_on(loop, root());
}

LOOP_TEST(NurseryTest, StartingAfterCancelRunsTheChildToItsFirstAwait) {
  Events events;
  auto child = [&]() -> Task<void> {
    events.push_back("entered");
    co_await yield();
    events.push_back("passed");
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.cancel();
      n.start(child());
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"entered"}));
}

LOOP_TEST(NurseryTest, AwaitedByACancelledTaskItRunsBodyAndChildrenToTheirFirstAwait) {
  Events events;
  auto user = [&]() -> Task<void> {
    Scope& mine = co_await current_scope();
    mine.cancel(kWhy);
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_TRUE(n.is_cancelled());
      n.start(note_after(events, 1, "passed"));
      events.push_back("body");
      co_await suspend_forever();
      co_return join;
    };
    co_await with_nursery(body);
    ADD_FAILURE();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = user().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"body"}));
}

LOOP_TEST(NurseryTest, ANurseryWhoseTasksAllFinishedDespiteTheCancelDelivers) {
  bool after = false;
  auto user = [&]() -> Task<void> {
    auto body = [](Nursery&) -> Task<NurseryEnd> {
      auto guard = co_await ignore_cancellation();
      co_await yields(4);
      co_return join;
    };
    co_await with_nursery(body);
    after = true;
    co_await yield();
    ADD_FAILURE() << "the request strikes at the next await";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = user().start_in_current_scope();
    co_await yields(2);
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_TRUE(after);
}

LOOP_TEST(NurseryTest, AChildsErrorCancelsTheRestAndIsRethrownOnceAllEnded) {
  Events events;
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      Marker in_body(events, "body");
      n.start(parked_with(events, "sibling"));
      n.start(throws_after(2, "child"));
      co_await suspend_forever();
      co_return join;
    };
    try {
      co_await with_nursery(body);
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      events.push_back(error.what());
    }
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~body", "~sibling", "child"}));
}

LOOP_TEST(NurseryTest, ABodysErrorCancelsTheChildren) {
  Events events;
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(parked_with(events, "child"));
      co_await yield();
      throw std::runtime_error("body");
    };
    try {
      co_await with_nursery(body);
    } catch (const std::runtime_error& error) {
      events.push_back(error.what());
    }
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~child", "body"}));
}

LOOP_TEST(NurseryTest, AChildStartsSiblings) {
  Events events;
  auto root = [&]() -> Task<void> {
    auto child = [&](Nursery& n) -> Task<void> {
      co_await yields(2);
      n.start(note_after(events, 2, "grandchild"));
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(child(n));
      co_return join;
    };
    co_await with_nursery(body);
    events.push_back("after");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"grandchild", "after"}));
}

LOOP_TEST(NurseryTest, ACallbackOfTheLoopStartsChildren) {
  Events events;
  struct Callback : Runnable {
    Callback(Nursery& of, Events& log) : Runnable(&call), nursery(&of), events(&log) {}
    static void call(Runnable& work) noexcept {
      auto& self = static_cast<Callback&>(work);
      self.nursery->start(note_after(*self.events, 1, "from a callback"));
    }
    Nursery* nursery;
    Events* events;
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      Callback callback(n, events);
      EXPECT_TRUE(loop.loop().post(callback));
      co_await yields(4);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"from a callback"}));
}

LOOP_TEST(NurseryTest, StartKeepsACallableAndItsArgumentsAlive) {
  int got = 0;
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(
          [&got, held = Counted(3)](std::unique_ptr<int> more) -> Task<int> {
            co_await yields(3);
            got = held.value() + *more;
            co_return 1;  // dropped
          },
          std::make_unique<int>(4));
      EXPECT_EQ(Counted::live, 1);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(got, 7);
  EXPECT_EQ(Counted::live, 0);
}

LOOP_TEST(NurseryTest, AHandleInANurseryOwnsItsError) {
  auto root = []() -> Task<void> {
    auto body = [](Nursery& n) -> Task<NurseryEnd> {
      StartedTask<void> s = throws_after(1, "mine").start(n);
      Outcome<void> how = co_await s.outcome();
      EXPECT_TRUE(how.has_error());
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
}

LOOP_TEST(NurseryTest, NurseriesNest) {
  Events events;
  auto root = [&]() -> Task<void> {
    auto inner = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(note_after(events, 3, "inner child"));
      co_return join;
    };
    auto outer = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(note_after(events, 9, "outer child"));
      co_await with_nursery(inner);
      events.push_back("inner ended");
      co_return join;
    };
    co_await with_nursery(outer);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"inner child", "inner ended", "outer child"}));
}

LOOP_TEST(NurseryTest, ADescriptionOutlivesTheBodyThatItWasMadeOf) {
  int sum = 0;
  auto describe = [&sum](int n) {
    auto body = [&sum, n](Nursery&) -> Task<NurseryEnd> {
      co_await yield();
      sum += n;
      co_return join;
    };
    auto named = std::make_unique<decltype(body)>(body);
    return with_nursery(*named);
  };
  auto root = [&]() -> Task<void> {
    auto description = describe(4);
    co_await std::move(description);
  };
  run_on(loop, root());
  EXPECT_EQ(sum, 4);
}

LOOP_TEST(NurseryTest, ANamedBodyThatCannotBeCopiedIsReferredTo) {
  int seen = 0;
  auto root = [&]() -> Task<void> {
    auto body = [&seen, kept = std::make_unique<int>(5)](Nursery&) -> Task<NurseryEnd> {
      co_await yield();
      seen = *kept;
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(seen, 5);
}

}  // namespace
