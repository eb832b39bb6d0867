// SPDX-License-Identifier: MIT
#include "weft/sync/auto_event.h"

#include <memory>
#include <string>
#include <thread>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

template <class L>
struct AutoEventTest : SyncTest<L> {
  AutoEvent event{"test"};

  Task<void> visit(std::string name) {
    ++this->asked;
    co_await event.wait();
    this->events.push_back(name);
  }
};
TYPED_TEST_SUITE(AutoEventTest, LoopTypes);

TYPED_TEST(AutoEventTest, ASignalThatNobodyWaitsForIsKeptOnce) {
  auto root = [&]() -> Task<void> {
    this->event.set();
    this->event.set();
    EXPECT_TRUE(this->event.is_set());
    co_await this->event.wait();
    EXPECT_FALSE(this->event.is_set());
    auto second = co_await timeout(1ms, this->event.wait());
    EXPECT_FALSE(second);
    EXPECT_FALSE(this->event.try_wait());
    this->event.set();
    EXPECT_TRUE(this->event.try_wait());
    this->event.set();
    this->event.reset();
    EXPECT_FALSE(this->event.try_wait());
  };
  run_on(this->loop, root());
}

TYPED_TEST(AutoEventTest, EachSetLetsTheLongestWaitingOneThrough) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    StartedTask<void> c = co_await this->begin(scope, this->visit("c"));
    this->event.set();
    this->events.push_back("set");  // never inside of set()
    EXPECT_FALSE(this->event.is_set());
    EXPECT_FALSE(this->event.try_wait());  // it is a's
    co_await std::move(a);
    co_await yields(3);
    EXPECT_EQ(this->events, (Events{"set", "a"}));
    this->event.set();
    this->event.set();
    co_await std::move(b);
    co_await std::move(c);
    EXPECT_FALSE(this->event.is_set());
  };
  run_on(this->loop, root());
  EXPECT_EQ(in_any_order(this->events), (Events{"a", "b", "c", "set"}));
}

TYPED_TEST(AutoEventTest, CancelWhileWaitingTakesNothing) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    this->event.set();
    co_await std::move(b);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"b"}));
}

TYPED_TEST(AutoEventTest, CancelWhileNotifiedPassesTheSignalToTheNext) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    this->event.set();  // a's, and it has not gone on
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    EXPECT_FALSE(this->event.is_set());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"b"}));
}

TYPED_TEST(AutoEventTest, CancelWhileNotifiedWithoutOthersLeavesItSet) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    this->event.set();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(this->event.is_set());
  };
  run_on(this->loop, root());
  EXPECT_TRUE(this->events.empty());
}

TYPED_TEST(AutoEventTest, TheTreeSaysWhereOneStands) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("AutoEvent 'test', 1 of 1 waiting"), std::string::npos) << tree;
    this->event.set();
    co_await std::move(a);
  };
  run_on(this->loop, root());
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
