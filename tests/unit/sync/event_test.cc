// SPDX-License-Identifier: MIT
#include "weft/sync/event.h"

#include <memory>
#include <string>
#include <thread>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct EventTest : SyncTest {
  Event event{"test"};

  Task<void> visit(std::string name) {
    ++asked;
    co_await event.wait();
    events.push_back(name);
  }
};

LOOP_TEST(EventTest, WaitAfterSetDoesNotSuspend) {
  auto root = [&]() -> Task<void> {
    EXPECT_FALSE(event.is_set());
    event.set();
    EXPECT_TRUE(event.is_set());
    auto other = [&]() -> Task<void> {
      events.push_back("another task");
      co_return;
    };
    StartedTask<void> started = other().start_in_current_scope();
    co_await event.wait();
    co_await event.wait();
    events.push_back("through");
    co_await std::move(started);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"through", "another task"}));
}

LOOP_TEST(EventTest, SetWakesAllInTheOrderOfTheirComingAndLater) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int count = 0; const char* name : {"a", "b", "c"}) {
        n.start(visit(name));
        co_await until_asked(++count);
      }
      EXPECT_TRUE(events.empty());
      event.set();
      events.push_back("set");  // never inside of set()
      EXPECT_EQ(events.size(), 1u);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"set", "a", "b", "c"}));
}

LOOP_TEST(EventTest, AResetTakesNoWakeUpBackAndMakesLaterOnesWait) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> early = visit("early").start_in_current_scope();
    co_await until_asked(1);
    event.set();
    event.reset();
    EXPECT_FALSE(event.is_set());
    StartedTask<void> late = visit("late").start_in_current_scope();
    co_await std::move(early);
    co_await until_asked(2);
    co_await yields(3);
    EXPECT_EQ(events, (Events{"early"}));
    event.set();
    co_await std::move(late);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"early", "late"}));
}

LOOP_TEST(EventTest, CancelWhileWaitingLeavesTheOthers) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = visit("a").start_in_current_scope();
    StartedTask<void> b = visit("b").start_in_current_scope();
    StartedTask<void> c = visit("c").start_in_current_scope();
    co_await until_asked(3);
    b.cancel();
    Outcome<void> how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    event.set();
    co_await std::move(a);
    co_await std::move(c);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), (Events{"a", "c"}));
}

LOOP_TEST(EventTest, CancelWhileNotifiedEndsCancelled) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = visit("a").start_in_current_scope();
    StartedTask<void> b = visit("b").start_in_current_scope();
    co_await until_asked(2);
    event.set();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"b"}));
}

LOOP_TEST(EventTest, WaitIsACancelPointAlsoWhenItIsSet) {
  auto root = [&]() -> Task<void> {
    event.set();
    auto wait = [&] { return event.wait(); };
    co_await wait_when_cancelled(wait);
  };
  run_on(loop, root());
}

LOOP_TEST(EventTest, ATimeoutEndsTheWait) {
  auto root = [&]() -> Task<void> {
    auto in_time = co_await timeout(1ms, event.wait());
    EXPECT_FALSE(in_time);
    event.set();
    auto at_once = co_await timeout(1ms, event.wait());
    EXPECT_TRUE(at_once);
  };
  run_on(loop, root());
}

LOOP_TEST(EventTest, TheTreeSaysWhereOneStands) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = visit("a").start_in_current_scope();
    StartedTask<void> b = visit("b").start_in_current_scope();
    co_await until_asked(2);
    Scope& scope = co_await current_scope();
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("Event 'test', 1 of 2 waiting"), std::string::npos) << tree;
    EXPECT_NE(tree.find("Event 'test', 2 of 2 waiting"), std::string::npos) << tree;
    event.set();
    const std::string later = task_tree(scope);
    EXPECT_NE(later.find("Event 'test', just set"), std::string::npos) << later;
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
}

TEST(EventLoops, AWaiterGoesOnOnTheLoopThatItAwaitedFrom) {
  VirtualLoop a;
  VirtualLoop b{a};
  Event event;
  auto wait_there = [&](Executor* where) -> Task<void> {
    co_await event.wait();
    EXPECT_EQ(Executor::current_or_null(), where);
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, wait_there(&b));
      n.start(wait_there(&a));
      co_await sleep_for(1ms);
      event.set();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(a, root());
}

// The post is under way to the other loop when the cancel comes.
TEST(EventLoops, CancelWhileNotifiedFromAnotherLoop) {
  Event event;
  auto wait = [&] { return event.wait(); };
  auto notify = [&] { event.set(); };
  cancel_while_notified_elsewhere(wait, notify);
}

// V2: the waiter destroys the event as soon as it goes on; set() may be under way still.
TEST(EventThreads, WhoGoesOnMayDestroyIt) {
  ThreadLoop loop;
  auto root = [&]() -> Task<void> {
    for (int i = 0; i < 300; ++i) {
      auto event = std::make_unique<Event>();
      int written = 0;
      std::thread setter([&written, set = event.get()] {
        written = 1;
        set->set();
      });
      co_await event->wait();
      event.reset();
      EXPECT_EQ(written, 1);
      setter.join();
    }
  };
  run(loop, root());
}

TEST(EventThreads, ManyLoopsWaitForOneSet) {
  constexpr int kTasks = 50;
  Event event;
  ThreadLoop loop;
  LoopThread others[2];
  auto visitor = [&]() -> Task<void> { co_await event.wait(); };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kTasks; ++i) {
        n.start(visitor());
        for (LoopThread& other : others) n.start_on(other.executor(), visitor());
      }
      event.set();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

TEST(EventMisuse, WaitingOffAnyLoopIsRefused) {
  Event event;
  event.set();
  auto awaiter = event.wait().operator co_await();
  EXPECT_THROW(static_cast<void>(awaiter.await_ready()), UsageError);
}

TEST(EventDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto wait = [](Event& event) { return event.wait(); };
  EXPECT_DEATH(destroy_while_awaited(std::make_unique<Event>("short-lived"), wait),
               "Event 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
