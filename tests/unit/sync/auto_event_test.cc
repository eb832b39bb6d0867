// SPDX-License-Identifier: MIT
#include "weft/sync/auto_event.h"

#include <memory>
#include <string>
#include <thread>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct AutoEventTest : SyncTest {
  AutoEvent event{"test"};

  Task<void> visit(std::string name) {
    ++asked;
    co_await event.wait();
    events.push_back(name);
  }
};

LOOP_TEST(AutoEventTest, ASignalThatNobodyWaitsForIsKeptOnce) {
  auto root = [&]() -> Task<void> {
    event.set();
    event.set();
    EXPECT_TRUE(event.is_set());
    co_await event.wait();
    EXPECT_FALSE(event.is_set());
    auto second = co_await timeout(1ms, event.wait());
    EXPECT_FALSE(second);
    EXPECT_FALSE(event.try_wait());
    event.set();
    EXPECT_TRUE(event.try_wait());
    event.set();
    event.reset();
    EXPECT_FALSE(event.try_wait());
  };
  run_on(loop, root());
}

LOOP_TEST(AutoEventTest, EachSetLetsTheLongestWaitingOneThrough) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    StartedTask<void> b = co_await begin(scope, visit("b"));
    StartedTask<void> c = co_await begin(scope, visit("c"));
    event.set();
    events.push_back("set");  // never inside of set()
    EXPECT_FALSE(event.is_set());
    EXPECT_FALSE(event.try_wait());  // it is a's
    co_await std::move(a);
    co_await yields(3);
    EXPECT_EQ(events, (Events{"set", "a"}));
    event.set();
    event.set();
    co_await std::move(b);
    co_await std::move(c);
    EXPECT_FALSE(event.is_set());
  };
  run_on(loop, root());
  EXPECT_EQ(in_any_order(events), (Events{"a", "b", "c", "set"}));
}

LOOP_TEST(AutoEventTest, CancelWhileWaitingTakesNothing) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    StartedTask<void> b = co_await begin(scope, visit("b"));
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    event.set();
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"b"}));
}

LOOP_TEST(AutoEventTest, CancelWhileNotifiedPassesTheSignalToTheNext) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    StartedTask<void> b = co_await begin(scope, visit("b"));
    event.set();  // a's, and it has not gone on
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    EXPECT_FALSE(event.is_set());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"b"}));
}

LOOP_TEST(AutoEventTest, CancelWhileNotifiedWithoutOthersLeavesItSet) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    event.set();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(event.is_set());
  };
  run_on(loop, root());
  EXPECT_TRUE(events.empty());
}

LOOP_TEST(AutoEventTest, TheTreeSaysWhereOneStands) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, visit("a"));
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("AutoEvent 'test', 1 of 1 waiting"), std::string::npos) << tree;
    event.set();
    co_await std::move(a);
  };
  run_on(loop, root());
}

// The post is under way to the other loop when the cancel comes.
TEST(AutoEventLoops, CancelWhileNotifiedFromAnotherLoopPassesTheSignalOn) {
  AutoEvent event;
  auto wait = [&] { return event.wait(); };
  auto notify = [&] {
    event.set();
    EXPECT_FALSE(event.is_set());
  };
  cancel_while_notified_elsewhere(wait, notify);
  EXPECT_TRUE(event.is_set());
}

// One signal goes round among tasks of several loops, some of which give up: it is neither lost nor
// doubled.
TEST(AutoEventThreads, OneSignalGoesRound) {
  constexpr int kTasks = 10;
  constexpr int kRounds = 200;
  AutoEvent event;
  int inside = 0;  // guarded by the signal
  auto visitor = [&]() -> Task<void> {
    for (int i = 0; i < kRounds; ++i) {
      auto mine = co_await timeout(100us, event.wait());
      if (!mine) continue;
      EXPECT_EQ(++inside, 1);
      if (i % 7 == 0) co_await yield();
      --inside;
      event.set();
    }
  };
  ThreadLoop loop;
  LoopThread others[2];
  event.set();
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kTasks; ++i) {
        n.start(visitor());
        for (LoopThread& other : others) n.start_on(other.executor(), visitor());
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
  EXPECT_TRUE(event.is_set());
}

TEST(AutoEventMisuse, WaitingOffAnyLoopIsRefused) {
  AutoEvent event;
  event.set();
  auto awaiter = event.wait().operator co_await();
  EXPECT_THROW(static_cast<void>(awaiter.await_ready()), UsageError);
  EXPECT_TRUE(event.is_set());
}

TEST(AutoEventDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto wait = [](AutoEvent& event) { return event.wait(); };
  EXPECT_DEATH(destroy_while_awaited(std::make_unique<AutoEvent>("short-lived"), wait),
               "AutoEvent 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
