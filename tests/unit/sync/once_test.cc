// SPDX-License-Identifier: MIT
#include "weft/sync/once.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct OnceTest : SyncTest {
  Once once{"test"};
  Event may_end;

  // Calls it with a callable that takes some turns, and as long as the test likes.
  Task<void> visit(std::string name) {
    auto work = [&]() -> Task<void> {
      events.push_back(name + " runs");
      co_await yields(3);
      co_await may_end.wait();
    };
    ++asked;
    co_await once.call(work);
    events.push_back(name);
  }
  Task<void> fails(std::string name) {
    auto work = [&]() -> Task<void> {
      events.push_back(name + " runs");
      co_await yields(3);
      co_await may_end.wait();
      throw std::runtime_error(name);
    };
    ++asked;
    co_await once.call(work);
    events.push_back(name);
  }
};

LOOP_TEST(OnceTest, TheFirstRunsItAndTheOthersWaitForIt) {
  auto root = [&]() -> Task<void> {
    EXPECT_FALSE(once.is_done());
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int count = 0; const char* name : {"a", "b", "c"}) {
        n.start(visit(name));
        co_await until_asked(++count);
      }
      EXPECT_EQ(events, (Events{"a runs"}));
      may_end.set();
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_TRUE(once.is_done());
    co_await visit("late");
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"a runs", "a", "b", "c", "late"}));
  EXPECT_EQ(events.back(), "late");
}

LOOP_TEST(OnceTest, IfItThrowsTheNextRunsIt) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = fails("a").start_in_current_scope();
    co_await until_asked(1);
    StartedTask<void> b = visit("b").start_in_current_scope();
    co_await until_asked(2);
    StartedTask<void> c = visit("c").start_in_current_scope();
    co_await until_asked(3);
    may_end.set();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.has_error());
    co_await std::move(b);
    co_await std::move(c);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"a runs", "b runs", "b", "c"}));
}

LOOP_TEST(OnceTest, IfItThrowsAndNobodyWaitsTheNextCallerRunsIt) {
  auto root = [&]() -> Task<void> {
    may_end.set();
    StartedTask<void> a = fails("a").start_in_current_scope();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.has_error());
    EXPECT_FALSE(once.is_done());
    co_await visit("b");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"a runs", "b runs", "b"}));
}

LOOP_TEST(OnceTest, IfItIsCancelledTheNextRunsIt) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = visit("a").start_in_current_scope();
    co_await until_asked(1);
    StartedTask<void> b = visit("b").start_in_current_scope();
    co_await until_asked(2);
    StartedTask<void> c = visit("c").start_in_current_scope();
    co_await until_asked(3);
    may_end.set();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    co_await std::move(c);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"a runs", "b runs", "b", "c"}));
}

LOOP_TEST(OnceTest, CancelWhileWaitingLeavesTheOthers) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = visit("a").start_in_current_scope();
    co_await until_asked(1);
    StartedTask<void> b = visit("b").start_in_current_scope();
    StartedTask<void> c = visit("c").start_in_current_scope();
    co_await until_asked(3);
    b.cancel();
    Outcome<void> how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    may_end.set();
    co_await std::move(a);
    co_await std::move(c);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"a runs", "a", "c"}));
}

LOOP_TEST(OnceTest, TheTreeSaysWhereOneStands) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = visit("a").start_in_current_scope();
    StartedTask<void> b = visit("b").start_in_current_scope();
    co_await until_asked(2);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("Once 'test', 1 of 1 waiting"), std::string::npos) << tree;
    may_end.set();
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
}

// The turn is under way to another loop when its task is cancelled there: the next has it.
TEST(OnceLoops, CancelWhileNotifiedPassesTheTurnOn) {
  VirtualLoop a;
  VirtualLoop b{a};
  Once once;
  Events events;
  auto visit = [&](std::string name) -> Task<void> {
    auto work = [&]() -> Task<void> {
      events.push_back(name + " runs");
      co_return;
    };
    co_await once.call(work);
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> last;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      auto work = [&]() -> Task<void> {
        n.start_on(b, visit("there"));
        co_await sleep_for(1ms);
        last = visit("last").start(scope);
        co_await sleep_for(1ms);
        throw std::runtime_error("on purpose");
      };
      try {
        co_await once.call(work);
      } catch (const std::runtime_error&) {
        events.push_back("passed on");
      }
      co_return cancel;
    };
    co_await with_nursery(body);
    co_await std::move(last);
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"passed on", "last runs"}));
  EXPECT_TRUE(once.is_done());
}

TEST(OnceThreads, ManyLoopsSeeWhatTheOneDid) {
  for (int round = 0; round < 20; ++round) {
    ThreadLoop loop;
    LoopThread others[2];
    Once once;
    int written = 0;
    auto visitor = [&]() -> Task<void> {
      auto work = [&]() -> Task<void> {
        co_await yield();
        ++written;
      };
      co_await once.call(work);
      EXPECT_EQ(written, 1);
    };
    auto root = [&]() -> Task<void> {
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        for (int i = 0; i < 5; ++i) {
          n.start(visitor());
          for (LoopThread& other : others) n.start_on(other.executor(), visitor());
        }
        co_return join;
      };
      co_await with_nursery(body);
    };
    run(loop, root());
  }
}

TEST(OnceDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto once = std::make_unique<Once>("short-lived");
      auto work = [] { return suspend_forever(); };
      StartedTask<void> started = once->call(work).start_in_current_scope();
      co_await yields(2);
      once.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "Once 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
