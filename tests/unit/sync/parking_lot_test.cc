// SPDX-License-Identifier: MIT
#include "weft/sync/parking_lot.h"

#include <memory>
#include <string>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct ParkingLotTest : SyncTest {
  ParkingLot lot{"test"};

  Task<void> visit(std::string name) {
    ++asked;
    co_await lot.park();
    events.push_back(name);
  }
};

LOOP_TEST(ParkingLotTest, EachUnparkWakesTheLongestParkedOne) {
  auto root = [&]() -> Task<void> {
    EXPECT_FALSE(lot.unpark_one());  // remembers nothing
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    StartedTask<void> b = co_await begin(scope, visit("b"));
    StartedTask<void> c = co_await begin(scope, visit("c"));
    EXPECT_TRUE(lot.unpark_one());
    events.push_back("unparked");  // never inside of it
    co_await std::move(a);
    co_await yields(3);
    EXPECT_EQ(events, (Events{"unparked", "a"}));
    lot.unpark_all();
    co_await std::move(b);
    co_await std::move(c);
  };
  run_on(loop, root());
  EXPECT_EQ(in_any_order(events), (Events{"a", "b", "c", "unparked"}));
}

LOOP_TEST(ParkingLotTest, CancelWhileWaitingLeavesTheOthers) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    StartedTask<void> b = co_await begin(scope, visit("b"));
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(lot.unpark_one());
    co_await std::move(b);
    EXPECT_FALSE(lot.unpark_one());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"b"}));
}

LOOP_TEST(ParkingLotTest, CancelWhileNotifiedPassesTheUnparkOn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    StartedTask<void> b = co_await begin(scope, visit("b"));
    StartedTask<void> c = co_await begin(scope, visit("c"));
    lot.unpark_one();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    co_await yields(2);
    EXPECT_EQ(events, (Events{"b"}));  // one went on, and no more
    lot.unpark_one();
    co_await std::move(c);
  };
  run_on(loop, root());
}

LOOP_TEST(ParkingLotTest, AnUnparkOfAllIsNotPassedOn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    lot.unpark_all();
    StartedTask<void> later = visit("later").start_immediate_in_current_scope();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await yields(3);
    EXPECT_TRUE(events.empty());  // it was not parked then
    EXPECT_TRUE(lot.unpark_one());
    co_await std::move(later);
  };
  run_on(loop, root());
}

LOOP_TEST(ParkingLotTest, TheTreeSaysWhereOneStands) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("ParkingLot 'test', 1 of 1 waiting"), std::string::npos) << tree;
    lot.unpark_one();
    co_await std::move(a);
  };
  run_on(loop, root());
}

// The post is under way to the other loop when the cancel comes.
TEST(ParkingLotLoops, CancelWhileNotifiedPassesTheUnparkToAnotherLoop) {
  VirtualLoop a;
  VirtualLoop b{a};
  ParkingLot lot;
  Events events;
  auto visit = [&](std::string name, Executor* where) -> Task<void> {
    co_await lot.park();
    EXPECT_EQ(Executor::current_or_null(), where);
    events.push_back(name);
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> here;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, visit("there", &b));
      co_await sleep_for(1ms);
      here = visit("here", &a).start(scope);
      co_await sleep_for(1ms);
      lot.unpark_one();
      co_return cancel;
    };
    co_await with_nursery(body);
    co_await std::move(here);
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"here"}));
}

TEST(ParkingLotMisuse, ParkingOffAnyLoopIsRefused) {
  ParkingLot lot;
  auto awaiter = lot.park().operator co_await();
  EXPECT_THROW(static_cast<void>(awaiter.await_ready()), UsageError);
}

TEST(ParkingLotDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto wait = [](ParkingLot& lot) { return lot.park(); };
  EXPECT_DEATH(destroy_while_awaited(std::make_unique<ParkingLot>("short-lived"), wait),
               "ParkingLot 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
