// SPDX-License-Identifier: MIT
#include "weft/sync/event.h"

#include <memory>
#include <string>
#include <thread>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

template <class L>
struct EventTest : SyncTest<L> {
  Event event{"test"};

  Task<void> visit(std::string name) {
    ++this->asked;
    co_await event.wait();
    this->events.push_back(name);
  }
};
TYPED_TEST_SUITE(EventTest, LoopTypes);

TYPED_TEST(EventTest, WaitAfterSetDoesNotSuspend) {
  auto root = [&]() -> Task<void> {
    EXPECT_FALSE(this->event.is_set());
    this->event.set();
    EXPECT_TRUE(this->event.is_set());
    auto other = [&]() -> Task<void> {
      this->events.push_back("another task");
      co_return;
    };
    StartedTask<void> started = other().start_in_current_scope();
    co_await this->event.wait();
    co_await this->event.wait();
    this->events.push_back("through");
    co_await std::move(started);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"through", "another task"}));
}

TYPED_TEST(EventTest, SetWakesAllInTheOrderOfTheirComingAndLater) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int count = 0; const char* name : {"a", "b", "c"}) {
        n.start(this->visit(name));
        co_await this->until_asked(++count);
      }
      EXPECT_TRUE(this->events.empty());
      this->event.set();
      this->events.push_back("set");  // never inside of set()
      EXPECT_EQ(this->events.size(), 1u);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(this->loop, root());
  EXPECT_EQ(in_ring_order(this->events), in_ring_order({"set", "a", "b", "c"}));
}

TYPED_TEST(EventTest, AResetTakesNoWakeUpBackAndMakesLaterOnesWait) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> early = this->visit("early").start_in_current_scope();
    co_await this->until_asked(1);
    this->event.set();
    this->event.reset();
    EXPECT_FALSE(this->event.is_set());
    StartedTask<void> late = this->visit("late").start_in_current_scope();
    co_await std::move(early);
    co_await this->until_asked(2);
    co_await yields(3);
    EXPECT_EQ(this->events, (Events{"early"}));
    this->event.set();
    co_await std::move(late);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"early", "late"}));
}

TYPED_TEST(EventTest, CancelWhileWaitingLeavesTheOthers) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = this->visit("a").start_in_current_scope();
    StartedTask<void> b = this->visit("b").start_in_current_scope();
    StartedTask<void> c = this->visit("c").start_in_current_scope();
    co_await this->until_asked(3);
    b.cancel();
    Outcome<void> how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    this->event.set();
    co_await std::move(a);
    co_await std::move(c);
  };
  run_on(this->loop, root());
  EXPECT_EQ(in_ring_order(this->events), (Events{"a", "c"}));
}

TYPED_TEST(EventTest, CancelWhileNotifiedEndsCancelled) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = this->visit("a").start_in_current_scope();
    StartedTask<void> b = this->visit("b").start_in_current_scope();
    co_await this->until_asked(2);
    this->event.set();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"b"}));
}

TYPED_TEST(EventTest, WaitIsACancelPointAlsoWhenItIsSet) {
  auto root = [&]() -> Task<void> {
    this->event.set();
    auto wait = [&] { return this->event.wait(); };
    co_await wait_when_cancelled(wait);
  };
  run_on(this->loop, root());
}

TYPED_TEST(EventTest, ATimeoutEndsTheWait) {
  auto root = [&]() -> Task<void> {
    auto in_time = co_await timeout(1ms, this->event.wait());
    EXPECT_FALSE(in_time);
    this->event.set();
    auto at_once = co_await timeout(1ms, this->event.wait());
    EXPECT_TRUE(at_once);
  };
  run_on(this->loop, root());
}

TYPED_TEST(EventTest, TheTreeSaysWhereOneStands) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = this->visit("a").start_in_current_scope();
    StartedTask<void> b = this->visit("b").start_in_current_scope();
    co_await this->until_asked(2);
    Scope& scope = co_await current_scope();
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("Event 'test', 1 of 2 waiting"), std::string::npos) << tree;
    EXPECT_NE(tree.find("Event 'test', 2 of 2 waiting"), std::string::npos) << tree;
    this->event.set();
    const std::string later = task_tree(scope);
    EXPECT_NE(later.find("Event 'test', just set"), std::string::npos) << later;
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(this->loop, root());
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
