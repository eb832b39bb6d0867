// SPDX-License-Identifier: MIT
// on(), resume_on(), start_on(), guests and stop(), in this order. One file, because all of them
// share the two fixtures of several loops below.
#include "weft/core/moving.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

constexpr CancelReason kWhy{"the test said so"};

Executor* here() { return Executor::current_or_null(); }

// Two loops of one thread: everything in a known order.
class Moving : public ::testing::Test {
 protected:
  ~Moving() override {
    EXPECT_EQ(a.strand_count(), 0u);
    EXPECT_EQ(b.strand_count(), 0u);
  }
  VirtualLoop a;
  VirtualLoop b{a};
  VirtualLoop c{a};
};
// The same, with a thread for each but the first.
class MovingThreads : public ::testing::Test {
 protected:
  ThreadLoop a;
  LoopThread b_thread, c_thread;
  Executor& b = b_thread.executor();
  Executor& c = c_thread.executor();
};

template <class Error, class Fn>
std::string what_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
::testing::AssertionResult says(const std::string& text, const char* words) {
  if (text.find(words) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not say \"" << words << "\"";
}

// --- resume_on ----------------------------------------------------------------------------------

TEST_F(Moving, ResumeOnMovesTheWholeTask) {
  std::vector<Executor*> seen;
  auto inner = [&]() -> Task<void> {
    seen.push_back(here());
    co_await resume_on(b);
    seen.push_back(here());
    co_await sleep_for(1ms);
    seen.push_back(here());
  };
  auto outer = [&]() -> Task<int> {
    co_await inner();
    seen.push_back(here());
    EXPECT_EQ(a.strand_count(), 0u);
    EXPECT_EQ(b.strand_count(), 1u);
    co_await yield();
    co_await resume_on(a);
    seen.push_back(here());
    EXPECT_EQ(b.strand_count(), 0u);
    co_return 5;
  };
  EXPECT_EQ(run(a, outer()), 5);
  EXPECT_EQ(seen, (std::vector<Executor*>{&a, &b, &b, &b, &a}));
}

TEST_F(MovingThreads, ResumeOnMovesTheWholeTask) {
  std::thread::id main = std::this_thread::get_id();
  auto root = [&]() -> Task<int> {
    auto words = std::make_unique<std::string>("carried along");
    co_await resume_on(b);
    EXPECT_NE(std::this_thread::get_id(), main);
    co_await sleep_for(1us);
    co_await resume_on(c);
    EXPECT_EQ(here(), &c);
    EXPECT_EQ(*words, "carried along");
    co_await resume_on(a);
    EXPECT_EQ(std::this_thread::get_id(), main);
    co_return 5;
  };
  for (int i = 0; i < 50; ++i) EXPECT_EQ(run(a, root()), 5);
}

TEST_F(Moving, ResumeOnTheSameLoopDoesNothingButIsACancelPoint) {
  Events events;
  auto other = [&]() -> Task<void> {
    events.push_back("other");
    co_return;
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = other().start_in_current_scope();
    co_await resume_on(a);  // children do not matter: nothing moves
    events.push_back("root");
    co_await std::move(s);
    auto ends = [&]() -> Task<void> {
      (co_await current_scope()).cancel(kWhy);
      co_await resume_on(a);
      events.push_back("not reached");
    };
    StartedTask<void> e = ends().start_in_current_scope();
    Outcome<void> how = co_await e.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"root", "other"}));
}

TEST_F(Moving, ResumeOnIsRefusedWhileAFrameHasChildren) {
  auto inner = [&]() -> Task<void> { co_await resume_on(b); };
  auto root = [&]() -> Task<std::string> {
    StartedTask<void> child = parked().start_in_current_scope();
    std::string why;
    try {
      co_await inner();  // the frame outside has the child
    } catch (const UsageError& error) {
      why = error.what();
    }
    EXPECT_EQ(here(), &a);
    child.cancel();
    static_cast<void>(co_await child.outcome());
    co_await inner();
    EXPECT_EQ(here(), &b);
    co_return why;
  };
  std::string why = run(a, root());
  EXPECT_TRUE(says(why, "children"));
  EXPECT_TRUE(says(why, "resume_on()"));
}

TEST_F(Moving, ResumeOnIsRefusedWhileAFrameHasLeases) {
  auto root = [&]() -> Task<void> {
    PromiseChildLease lease = (co_await current_scope()).lease();
    bool refused = false;
    try {
      co_await resume_on(b);
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    lease.reset();
    co_await resume_on(b);
    EXPECT_EQ(here(), &b);
  };
  run(a, root());
}

TEST_F(Moving, ACancelledTaskEndsWhereItIs) {
  Executor* died = nullptr;
  auto child = [&]() -> Task<void> {
    OnExit note([&] { died = here(); });
    (co_await current_scope()).cancel(kWhy);
    co_await resume_on(b);
    ADD_FAILURE() << "cancelled before the move";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    static_cast<void>(co_await s.outcome());
  };
  run(a, root());
  EXPECT_EQ(died, &a);
}

TEST_F(Moving, ATaskCancelledUnderWayEndsWhereItArrives) {
  Executor* died = nullptr;
  Executor* told = nullptr;
  auto child = [&]() -> Task<void> {
    OnExit note([&] { died = here(); });
    Scope& scope = co_await current_scope();
    CancelHook hook(scope, [&] { told = here(); });
    co_await resume_on(b);
    ADD_FAILURE() << "cancelled before it arrived";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    co_await yield();  // it has left
    EXPECT_EQ(b.strand_count(), 0u);
    s.cancel(kWhy);
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &kWhy);
    }
  };
  run(a, root());
  EXPECT_EQ(died, &b);
  EXPECT_EQ(told, &b);
}

// A kick on its way to a home that the task has left. The guard lets the task go on although it is
// cancelled; the frame outside of it is told where the task arrives.
TEST_F(Moving, AKickFollowsATaskThatHasLeft) {
  Executor* told = nullptr;
  CancelHandle self;
  auto guarded = [&]() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    // From a thread without a loop: the kick lies in the inbox, and the task leaves.
    std::thread([&] { self.cancel(kWhy); }).join();
    co_await resume_on(b);
    EXPECT_EQ(told, &b);
    co_await resume_on(c);
    co_await yields(3);
  };
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    CancelHook hook(scope, [&] { told = here(); });
    co_await guarded();
    co_await yield();
    ADD_FAILURE() << "cancelled";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    self = s.cancel_handle();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(a, root());
}

TEST_F(Moving, ANurseryChildMayEndOnAnotherLoop) {
  Events events;
  auto child = [&](std::string name, Executor& to) -> Task<void> {
    Marker mark(events, name);
    co_await resume_on(to);
    co_await sleep_for(1ms);
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(child("b", b));
    n.start(child("c", c));
    n.start(child("a", a));
    EXPECT_EQ(n.size(), 4u);
    co_return join;
  };
  auto root = [&]() -> Task<void> {
    co_await with_nursery(body);
    events.push_back("joined");
  };
  run(a, root());
  EXPECT_EQ(events.size(), 4u);
  EXPECT_EQ(events.back(), "joined");
}

TEST_F(Moving, ANurseryCancelsChildrenThatHaveMoved) {
  Events events;
  auto child = [&](std::string name, Executor& to) -> Task<void> {
    Marker mark(events, name + " on " + (&to == &b ? "b" : "c"));
    co_await resume_on(to);
    co_await suspend_forever();
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(child("one", b));
    n.start(child("two", c));
    co_await sleep_for(1ms);
    EXPECT_EQ(b.strand_count(), 1u);
    EXPECT_EQ(c.strand_count(), 1u);
    co_return cancel;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  run(a, root());
  EXPECT_EQ(events, (Events{"~one on b", "~two on c"}));
}

TEST_F(Moving, AnErrorOfAMovedChildIsItsScopes) {
  auto child = [&]() -> Task<void> {
    co_await resume_on(b);
    throw std::runtime_error("over there");
  };
  Events events;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(parked_with(events, "sibling"));
    n.start(child());
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  EXPECT_TRUE(says(what_of<std::runtime_error>([&] { run(a, root()); }), "over there"));
  EXPECT_EQ(events, (Events{"~sibling"}));
}

// The body has a waiter and a parent on the loop that it left; both look at it once.
TEST_F(Moving, ANurserysBodyMayMove) {
  for (NurseryEnd end : {join, cancel}) {
    Events events;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      if (end == cancel) n.start(parked_with(events, "child"));
      co_await resume_on(b);
      bool refused = false;
      try {
        n.start(parked());
      } catch (const UsageError&) {
        refused = true;
      }
      EXPECT_TRUE(refused) << "the nursery has not moved";
      co_return end;
    };
    auto root = [&]() -> Task<void> {
      co_await with_nursery(body);
      EXPECT_EQ(here(), &a);
    };
    run(a, root());
    EXPECT_EQ(events.size(), end == cancel ? 1u : 0u);
  }
  auto body = [&](Nursery&) -> Task<NurseryEnd> {
    co_await resume_on(b);
    throw std::runtime_error("body");
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  EXPECT_TRUE(says(what_of<std::runtime_error>([&] { run(a, root()); }), "body"));
}

TEST_F(Moving, ABranchThatMovedComesBackToItsCombinator) {
  auto branch = [&](Executor& to, int value) -> Task<int> {
    co_await resume_on(to);
    co_await yield();
    co_return value;
  };
  auto forever = [&](Executor& to) -> Task<int> {
    co_await resume_on(to);
    co_await suspend_forever();
    co_return 0;
  };
  auto root = [&]() -> Task<int> {
    auto [x, y] = co_await all_of(branch(b, 1), branch(c, 2));
    EXPECT_EQ(here(), &a);
    auto [u, v] = co_await any_of(branch(b, 3), forever(c));
    EXPECT_EQ(here(), &a);
    EXPECT_FALSE(v.has_value());
    auto late = co_await timeout(1ms, forever(b));
    EXPECT_FALSE(late.has_value());
    co_return x * 100 + y * 10 + u.value_or(0);
  };
  EXPECT_EQ(run(a, root()), 123);
}

TEST_F(Moving, AMovedBranchThatEndsCancelledUnaskedCancelsTheWaiter) {
  auto branch = [&]() -> Task<int> {
    co_await resume_on(b);
    (co_await current_scope()).cancel(kWhy);
    co_await suspend_forever();
    co_return 0;
  };
  auto waits = [&]() -> Task<void> {
    co_await all_of(branch(), sleep_for(1h));
    ADD_FAILURE();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = waits().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &kWhy);
    }
    EXPECT_EQ(a.elapsed(), 0ns);
  };
  run(a, root());
}

TEST_F(Moving, AHandleIsAwaitedWhereverItsTaskIs) {
  auto child = [&]() -> Task<int> {
    co_await resume_on(b);
    co_await sleep_for(1ms);
    co_await resume_on(c);
    co_return 4;
  };
  auto root = [&]() -> Task<int> {
    StartedTask<int> s = child().start_in_current_scope();
    int value = co_await std::move(s);
    EXPECT_EQ(here(), &a);
    StartedTask<int> dropped = child().start_in_current_scope();
    co_await yields(3);
    co_return value;
  };
  EXPECT_EQ(run(a, root()), 4);
}

// Errors of children lie in a book of the loop; they must be found where the task ends.
TEST_F(Moving, ErrorsOfEndedChildrenTravelWithTheirFrame) {
  for (bool cancelled : {false, true}) {
    auto child = [&]() -> Task<void> {
      throws_after(0, "child").start_in_current_scope().detach();
      co_await yields(3);
      co_await resume_on(b);
      co_await yield();
      if (cancelled) co_await suspend_forever();
    };
    auto root = [&]() -> Task<void> {
      StartedTask<void> s = child().start_in_current_scope();
      co_await sleep_for(1ms);
      s.cancel();
      co_await std::move(s);
    };
    EXPECT_TRUE(says(what_of<std::runtime_error>([&] { run(a, root()); }), "child"));
  }
}

TEST_F(Moving, HooksMoveWithTheirFrame) {
  Executor* told = nullptr;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    CancelHook outer(scope, [&] { told = here(); });
    {
      CancelHook inner(scope, [&] { ADD_FAILURE(); });
      co_await resume_on(b);
    }
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    co_await sleep_for(1ms);
    s.cancel();
    static_cast<void>(co_await s.outcome());
  };
  run(a, root());
  EXPECT_EQ(told, &b);
}

class CountedNode final : public HeapCancelNode {
 public:
  explicit CountedNode(int& live) : live_(live) { ++live_; }
  ~CountedNode() override { --live_; }

 private:
  void do_cancel() noexcept override { ADD_FAILURE() << "it was disarmed"; }
  void do_cleanup() noexcept override { ADD_FAILURE() << "it was disarmed"; }
  int& live_;
};

TEST_F(Moving, ANodeDisarmedOnTheOldLoopLeavesTheNewOne) {
  int live = 0;
  auto* node = new CountedNode(live);
  auto child = [&]() -> Task<void> {
    (co_await current_scope()).publish_cancel_node(*node);
    co_await resume_on(b);
    co_await yields(4);
    EXPECT_EQ(live, 0) << "L8: it leaves at once";
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    co_await yield();  // it is under way
    EXPECT_TRUE(node->disarm());
    node->drop_ref();
    co_await std::move(s);
  };
  run(a, root());
  EXPECT_EQ(live, 0);
}

// The post that takes a disarmed node out of its scope goes to the loop that the scope then leaves.
TEST_F(MovingThreads, ANodeDisarmedByAThreadLeavesWhereItsScopeIs) {
  auto child = [&]() -> Task<void> {
    int live = 0;
    auto* node = new CountedNode(live);
    Scope& scope = co_await current_scope();
    scope.publish_cancel_node(*node);
    std::thread([&] {
      EXPECT_TRUE(node->disarm());
      node->drop_ref();
    }).join();
    co_await resume_on(b);
    while (live > 0) {
      CancelHook hook(scope, [] {});  // beside it, in the same list
      co_await yield();
    }
  };
  for (int i = 0; i < 20; ++i) run(a, child());
}

TEST_F(Moving, TaskLocalsMoveWithTheTask) {
  TaskLocal<int> local;
  auto child = [&]() -> Task<int> {
    co_await resume_on(b);
    auto grandchild = [&]() -> Task<int> { co_return *local; };
    StartedTask<int> s = grandchild().start_in_current_scope();
    co_return *local * 100 + co_await std::move(s);
  };
  auto root = [&]() -> Task<int> {
    int value = co_await local.with(7, child());
    EXPECT_EQ(local.get(), nullptr);
    co_return value;
  };
  EXPECT_EQ(run(a, root()), 707);
}

TEST_F(Moving, TheTreeSaysOnWhichLoopATaskIs) {
  auto child = [&]() -> Task<void> {
    co_await resume_on(b);
    co_await sleep_for(1ms);
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> s = child().start(scope);
    co_await yields(3);
    std::string tree = task_tree(scope);
    EXPECT_TRUE(says(tree, ("task on another loop, number " + std::to_string(b.home())).c_str()));
    co_await std::move(s);
  };
  run(a, root());
}

TEST_F(MovingThreads, FramesThatAreFreedElsewhereGoHome) {
  std::int64_t before = frame_stats().blocks_live;
  auto child = [&]() -> Task<int> { co_return 1; };
  auto root = [&]() -> Task<int> {
    co_await resume_on(b);
    int sum = 0;
    for (int i = 0; i < 100; ++i) sum += co_await child();
    co_await resume_on(c);
    for (int i = 0; i < 100; ++i) sum += co_await on(b, child());
    co_return sum;
  };
  EXPECT_EQ(run(a, root()), 200);
  b_thread.stop();
  c_thread.stop();
  EXPECT_EQ(frame_stats().blocks_live, before);
}

// --- on -----------------------------------------------------------------------------------------

TEST_F(Moving, OnRunsThereAndComesBack) {
  auto there = [&](int value) -> Task<int> {
    EXPECT_EQ(here(), &b);
    co_await sleep_for(1ms);
    EXPECT_EQ(here(), &b);
    co_return value;
  };
  auto root = [&]() -> Task<int> {
    int value = co_await on(b, there(3));
    EXPECT_EQ(here(), &a);
    co_await on(b, sleep_for(1ms));        // any awaitable
    auto call = [&] { return there(4); };  // or a callable, which is called there
    value = value * 10 + co_await on(b, call);
    auto call_awaitable = [&] {
      EXPECT_EQ(here(), &b);
      return just(5);
    };
    co_return value * 10 + co_await on(b, call_awaitable);
  };
  EXPECT_EQ(run(a, root()), 345);
}

TEST_F(Moving, OnTheSameLoopWorks) {
  auto root = [&]() -> Task<int> { co_return co_await on(a, returns(3)); };
  EXPECT_EQ(run(a, root()), 3);
}

TEST_F(Moving, OnNests) {
  auto leaf = [&]() -> Task<Executor*> { co_return here(); };
  auto middle = [&]() -> Task<Executor*> {
    Executor* seen = co_await on(c, leaf());
    EXPECT_EQ(here(), &b);
    EXPECT_EQ(co_await on(a, leaf()), &a);
    co_return seen;
  };
  auto root = [&]() -> Task<void> { EXPECT_EQ(co_await on(b, middle()), &c); };
  run(a, root());
}

TEST_F(Moving, OnPassesExceptionsOn) {
  auto root = [&]() -> Task<void> { co_await on(b, throws_after(1, "there")); };
  EXPECT_TRUE(says(what_of<std::runtime_error>([&] { run(a, root()); }), "there"));
}

TEST_F(Moving, CancellingTheWaiterCancelsTheTaskThereAndWaitsForIt) {
  Events events;
  auto there = [&]() -> Task<void> {
    Marker mark(events, "there");
    co_await with(until_cancelled_and(sleep_for(5ms)), suspend_forever());
  };
  auto waiter = [&]() -> Task<void> {
    Marker mark(events, "waiter");
    co_await on(b, there());
    ADD_FAILURE();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = waiter().start_in_current_scope();
    co_await sleep_for(1ms);
    s.cancel(kWhy);
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_EQ(a.elapsed(), 6ms);
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"~there", "~waiter"}));
}

TEST_F(Moving, ACancelledWaiterStillEntersTheTaskThere) {
  bool entered = false;
  auto there = [&]() -> Task<int> {
    entered = here() == &b;
    co_return 3;
  };
  auto waiter = [&]() -> Task<int> {
    (co_await current_scope()).cancel();
    co_return co_await on(b, there());  // as `co_await task`: no cancel point of its own
  };
  auto root = [&]() -> Task<int> {
    StartedTask<int> s = waiter().start_in_current_scope();
    co_return co_await std::move(s);
  };
  EXPECT_EQ(run(a, root()), 3);
  EXPECT_TRUE(entered);
}

TEST_F(Moving, ATaskThatEndsCancelledUnaskedThereCancelsItsWaiter) {
  auto there = [&]() -> Task<void> {
    (co_await current_scope()).cancel(kWhy);
    co_await suspend_forever();
  };
  auto waiter = [&]() -> Task<void> {
    co_await on(b, there());
    ADD_FAILURE();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = waiter().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &kWhy);
    }
    bool thrown = false;
    try {
      co_await noncancellable(on(b, there()));
    } catch (const TaskCancelled& error) {
      thrown = &error.reason() == &kWhy;
    }
    EXPECT_TRUE(thrown) << "shielded: it cannot be cancelled along";
  };
  run(a, root());
}

TEST_F(Moving, OnRacesInCombinators) {
  auto after = [&](std::chrono::milliseconds time, int value) -> Task<int> {
    co_await sleep_for(time);
    co_return value;
  };
  auto root = [&]() -> Task<void> {
    auto [x, y] = co_await any_of(on(b, after(2ms, 1)), on(c, after(1ms, 2)));
    EXPECT_FALSE(x.has_value());
    EXPECT_EQ(y, 2);
    auto [u, v] = co_await all_of(on(b, after(2ms, 3)), on(c, after(1ms, 4)));
    EXPECT_EQ(u * 10 + v, 34);
    auto late = co_await timeout(1ms, on(b, after(1h, 0)));
    EXPECT_FALSE(late.has_value());
    EXPECT_EQ(a.elapsed(), 4ms);
  };
  run(a, root());
}

TEST_F(MovingThreads, OnRacesInCombinators) {
  auto forever = [&]() -> Task<int> {
    co_await suspend_forever();
    co_return 0;
  };
  auto quick = [&]() -> Task<int> {
    co_await yield();
    co_return 1;
  };
  auto root = [&]() -> Task<int> {
    int sum = 0;
    for (int i = 0; i < 50; ++i) {
      auto [x, y] = co_await any_of(on(b, forever()), on(c, quick()));
      sum += y.value_or(100);
    }
    co_return sum;
  };
  EXPECT_EQ(run(a, root()), 50);
}

TEST_F(Moving, ATaskThatOnRunsMayMoveOn) {
  auto there = [&]() -> Task<Executor*> {
    co_await resume_on(c);
    co_await sleep_for(1ms);
    co_return here();
  };
  auto back = [&]() -> Task<Executor*> {
    co_await resume_on(a);
    co_return here();
  };
  auto root = [&]() -> Task<void> {
    EXPECT_EQ(co_await on(b, there()), &c);
    EXPECT_EQ(co_await on(b, back()), &a);
    EXPECT_EQ(here(), &a);
  };
  run(a, root());
}

TEST_F(Moving, OnAndResumeOnAllocateNothingButFrames) {
  auto there = [&]() -> Task<int> { co_return 1; };
  auto root = [&]() -> Task<std::int64_t> {
    Task<int> first = there(), second = there();
    std::int64_t before = frame_stats().blocks_live;
    static_cast<void>(co_await on(b, std::move(first)));
    co_await resume_on(b);
    co_await resume_on(a);
    static_cast<void>(co_await on(b, std::move(second)));
    co_return frame_stats().blocks_live - before;
  };
  EXPECT_EQ(run(a, root()), -2);
}

// --- start_on -----------------------------------------------------------------------------------

TEST_F(Moving, StartOnStartsAChildOnAnotherLoop) {
  std::vector<Executor*> seen;
  auto child = [&](int value) -> Task<void> {
    co_await sleep_for(std::chrono::milliseconds(value));
    seen.push_back(here());
  };
  auto returns_awaitable = [&] { return sleep_for(1ms); };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start_on(b, child(1));
    n.start_on(c, child, 2);
    n.start_on(a, child(3));
    n.start_on(b, returns_awaitable);
    EXPECT_EQ(n.size(), 5u);
    co_return join;
  };
  auto root = [&]() -> Task<void> {
    co_await with_nursery(body);
    seen.push_back(here());
  };
  run(a, root());
  EXPECT_EQ(seen, (std::vector<Executor*>{&b, &c, &a, &a}));
}

TEST_F(Moving, ChildrenOnOtherLoopsAreCancelledLikeLocalOnes) {
  Events events;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start_on(b, parked_with(events, "b"));
    n.start(parked_with(events, "a"));
    n.start_on(c, parked_with(events, "c"));
    co_await sleep_for(1ms);
    n.cancel();
    n.start_on(b, parked_with(events, "late"));  // runs to its first await
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  run(a, root());
  EXPECT_EQ(events.size(), 4u);
}

TEST_F(Moving, AnErrorOfAChildElsewhereEndsTheRest) {
  Events events;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start_on(b, parked_with(events, "b"));
    n.start_on(c, throws_after(1, "from c"));
    n.start(parked_with(events, "a"));
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  EXPECT_TRUE(says(what_of<std::runtime_error>([&] { run(a, root()); }), "from c"));
  EXPECT_EQ(events.size(), 2u);
}

TEST_F(Moving, StartOnIsForTheNurserysHome) {
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    auto wrong = [&]() -> Task<void> {
      EXPECT_THROW(n.start_on(a, parked()), UsageError);
      EXPECT_THROW(n.start_on(b, parked()), UsageError);
      co_return;
    };
    co_await on(b, wrong());
    EXPECT_THROW(n.start_on(b, Task<void>()), UsageError);
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  run(a, root());
}

TEST_F(MovingThreads, ManyChildrenOnManyLoops) {
  std::atomic<int> ran = 0;
  auto child = [&](bool parks) -> Task<void> {
    ++ran;
    if (parks) co_await suspend_forever();
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    for (int i = 0; i < 200; ++i) {
      n.start_on(b, child, i % 2 == 0);
      n.start_on(c, child, i % 2 == 0);
    }
    while (ran < 400) co_await yield();
    co_return cancel;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  run(a, root());
  EXPECT_EQ(ran, 400);
}

TEST_F(Moving, ATaskStartedIsCalledAtTheNurserysHome) {
  auto child = [&](TaskStarted<int> started) -> Task<void> {
    co_await resume_on(b);
    EXPECT_THROW(started(1), UsageError);
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    bool refused = false;
    try {
      static_cast<void>(co_await n.start<int>(child));
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused) << "it ended without a report";
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  run(a, root());
}

TEST_F(Moving, AnExpectedNurseryHearsOfAMovedChildsError) {
  auto child = [&]() -> Task<std::expected<void, int>> {
    co_await resume_on(b);
    co_return std::unexpected(13);
  };
  auto body = [&](ExpectedNursery<int>& n) -> Task<std::expected<NurseryEnd, int>> {
    n.start(child());
    n.start(parked());
    co_return join;
  };
  auto root = [&]() -> Task<int> {
    std::expected<void, int> result = co_await with_expected_nursery<int>(body);
    co_return result ? 0 : result.error();
  };
  EXPECT_EQ(run(a, root()), 13);
}

// --- Loops come and go --------------------------------------------------------------------------

TEST_F(Moving, AStoppedLoopTakesNoMoreTasks) {
  b.stop();
  auto child = [&]() -> Task<void> { co_await resume_on(b); };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    EXPECT_TRUE(says(what_of<LoopStopped>([&] { n.start_on(b, parked()); }), "start_on()"));
    EXPECT_EQ(n.size(), 1u);
    co_return join;
  };
  auto root = [&]() -> Task<int> {
    int refused = 0;
    try {
      co_await on(b, returns(1));
    } catch (const LoopStopped&) {
      ++refused;
    }
    try {
      co_await child();
    } catch (const LoopStopped&) {
      ++refused;
    }
    EXPECT_EQ(here(), &a);
    co_await with_nursery(body);
    co_return refused;
  };
  EXPECT_EQ(run(a, root()), 2);
  auto again = [&]() -> Task<int> { co_return co_await on(a, returns(4)); };
  EXPECT_THROW(run(b, parked()), TaskCancelled) << "stop() before run() is not lost";
  EXPECT_EQ(run(b, again()), 4) << "and the next run() opens it again";
  auto from_a = [&]() -> Task<int> { co_return co_await on(b, returns(5)); };
  EXPECT_EQ(run(a, from_a()), 5);
}

TEST_F(Moving, StopCancelsTheRootAndAllGuests) {
  Events events;
  auto moved = [&]() -> Task<void> {
    Marker mark(events, "moved");
    co_await resume_on(b);
    co_await suspend_forever();
  };
  auto waits = [&](std::string name) -> Task<void> {
    Marker mark(events, name + "'s waiter");
    co_await on(b, parked_with(events, name));
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start_on(b, parked_with(events, "started"));
    n.start(moved());
    n.start(waits("on"));
    co_await sleep_for(1ms);
    EXPECT_EQ(b.strand_count(), 3u);
    b.stop();
    co_return join;
  };
  auto root = [&]() -> Task<void> {
    co_await with_nursery(body);
    EXPECT_EQ(b.strand_count(), 0u);
  };
  run(a, root());
  EXPECT_EQ(events.size(), 4u);
}

TEST_F(Moving, ATaskUnderWayToALoopThatStopsIsCancelledThere) {
  Events events;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start_on(b, parked_with(events, "child"));
    b.stop();
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(body); };
  run(a, root());
  EXPECT_EQ(events, (Events{"~child"}));
}

TEST_F(Moving, RunWaitsForGuests) {
  bool ended = false;
  auto guest = [&]() -> Task<void> {
    co_await sleep_for(2ms);
    ended = true;
  };
  // Starts a guest on b from a task of a, and lets go of it.
  StartedTask<void> kept;
  auto root = [&]() -> Task<void> {
    auto there = [&]() -> Task<void> { co_await on(b, guest()); };
    co_await all_of(there(), sleep_for(3ms));
  };
  auto on_b = [&]() -> Task<void> {
    auto beside = [&]() -> Task<void> { co_await on(a, root()); };
    co_await beside();
  };
  run(b, on_b());
  EXPECT_TRUE(ended);
  EXPECT_EQ(a.elapsed(), 3ms);
}

TEST_F(MovingThreads, AThreadsEndCancelsItsGuestsAndWaitsForThem) {
  std::atomic<bool> destroyed = false;
  auto waits = [&](Executor& loop, std::promise<void>& there) -> Task<void> {
    auto guest = [&]() -> Task<void> {
      OnExit note([&] { destroyed = true; });
      there.set_value();
      co_await suspend_forever();
    };
    co_await on(loop, guest());
  };
  StartedTask<void> waiter;
  {
    LoopThread d;
    std::promise<void> there;
    waiter = waits(d.executor(), there).start_with_parent_scope(b_thread.lease());
    there.get_future().wait();
    EXPECT_FALSE(destroyed);
  }
  EXPECT_TRUE(destroyed);
  auto read = [&]() -> Task<void> {
    Outcome<void> how = co_await waiter.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &reasons::loop_stopped);
    }
  };
  run(a, read());
}

TEST_F(MovingThreads, ALoopThreadThatWasStoppedTakesNoMoreTasks) {
  b_thread.stop();
  auto root = [&]() -> Task<bool> {
    try {
      co_await on(b, returns(1));
    } catch (const LoopStopped&) {
      co_return true;
    }
    co_return false;
  };
  EXPECT_TRUE(run(a, root()));
}

TEST_F(MovingThreads, ALoopBetweenTwoRunsIsClosed) {
  struct Nothing : Runnable {
    Nothing() : Runnable([](Runnable& self) noexcept { static_cast<Nothing&>(self).ran = true; }) {}
    bool ran = false;
  };
  Nothing before, between, after;
  EXPECT_TRUE(a.post(before)) << "a new loop is open";
  run(a, yields(2));
  EXPECT_TRUE(before.ran);
  EXPECT_FALSE(a.post(between));
  run(a, yields(2));
  EXPECT_FALSE(between.ran);
  a.stop();
  EXPECT_THROW(run(a, parked()), TaskCancelled);
  EXPECT_FALSE(a.post(after));
}

TEST_F(MovingThreads, StopFromAnotherThreadEndsARun) {
  std::promise<void> runs;
  auto root = [&]() -> Task<void> {
    runs.set_value();
    co_await suspend_forever();
  };
  std::thread other([&] {
    runs.get_future().wait();
    a.stop();
  });
  EXPECT_THROW(run(a, root()), TaskCancelled);
  other.join();
  EXPECT_EQ(run(a, returns(3)), 3);
}

TEST_F(MovingThreads, TheRootMayEndElsewhereWhileItsLoopSleeps) {
  auto root = [&]() -> Task<int> {
    co_await resume_on(b);
    co_await sleep_for(1ms);
    co_return 3;
  };
  EXPECT_EQ(run(a, root()), 3);
}

TEST_F(Moving, ALoopThatIsDestroyedCancelsItsGuests) {
  Events events;
  auto waits = [&](VirtualLoop& loop) -> Task<void> {
    co_await on(loop, parked_with(events, "guest"));
    ADD_FAILURE();
  };
  auto root = [&]() -> Task<void> {
    auto d = std::make_unique<VirtualLoop>(a);
    StartedTask<void> s = waits(*d).start_in_current_scope();
    co_await sleep_for(1ms);
    EXPECT_EQ(d->strand_count(), 1u);
    d.reset();
    EXPECT_EQ(events, (Events{"~guest"}));
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(a, root());
}

// --- The stack of a task whose waiter is elsewhere ------------------------------------------------

Task<std::string> trace() { co_return async_stack_trace(); }
Task<std::string> trace_through_a_branch() {
  auto [text, nothing] = co_await all_of(trace(), yields(1));
  co_return text;
}

TEST_F(MovingThreads, AnAsyncStackTraceEndsAtTheLoopsBorder) {
  auto body = [&]() -> Task<void> {
    for (int i = 0; i < 100; ++i) {
      std::string far = co_await on(b, trace_through_a_branch());
      EXPECT_TRUE(says(far, "awaited, as a branch, by"));
      std::string near = co_await trace_through_a_branch();
      EXPECT_GT(std::ranges::count(near, '\n'), std::ranges::count(far, '\n')) << near << far;
    }
  };
  run_on(a, body());
}

}  // namespace
