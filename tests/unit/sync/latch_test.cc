// SPDX-License-Identifier: MIT
#include "weft/sync/latch.h"

#include <memory>
#include <string>
#include <thread>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct LatchTest : SyncTest {
  Latch latch{3, "test"};

  Task<void> visit(std::string name) {
    ++asked;
    co_await latch.wait();
    events.push_back(name);
  }
  Task<void> arrive(std::string name) {
    ++asked;
    co_await latch.arrive_and_wait();
    events.push_back(name);
  }
};

LOOP_TEST(LatchTest, TheLastCountDownWakesAllInTheOrderOfTheirComing) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int count = 0; const char* name : {"a", "b"}) {
        n.start(visit(name));
        co_await until_asked(++count);
      }
      latch.count_down(2);
      EXPECT_EQ(latch.count(), 1u);
      co_await yields(2);
      EXPECT_TRUE(events.empty());
      latch.count_down();
      events.push_back("done");  // never inside of count_down()
      EXPECT_EQ(events.size(), 1u);
      co_return join;
    };
    co_await with_nursery(body);
    co_await latch.wait();  // and for ever after
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"done", "a", "b"}));
}

LOOP_TEST(LatchTest, WhoArrivesLastDoesNotWait) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int count = 0; const char* name : {"a", "b"}) {
        n.start(arrive(name));
        co_await until_asked(++count);
      }
      co_await latch.arrive_and_wait();
      events.push_back("last");
      EXPECT_EQ(events.size(), 1u);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events), in_ring_order({"last", "a", "b"}));
}

LOOP_TEST(LatchTest, ACancelledArrivalStaysCounted) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = arrive("a").start_in_current_scope();
    StartedTask<void> b = arrive("b").start_in_current_scope();
    co_await until_asked(2);
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_EQ(latch.count(), 1u);
    latch.count_down();
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"b"}));
}

LOOP_TEST(LatchTest, CancelWhileNotifiedEndsCancelled) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = visit("a").start_in_current_scope();
    co_await yields(2);
    latch.count_down(3);
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_TRUE(events.empty());
}

LOOP_TEST(LatchTest, ATaskThatIsCancelledAlreadyDoesNotArrive) {
  auto root = [&]() -> Task<void> {
    auto wait = [&] { return latch.arrive_and_wait(); };
    co_await wait_when_cancelled(wait);
    EXPECT_EQ(latch.count(), 3u);
  };
  run_on(loop, root());
}

LOOP_TEST(LatchTest, CountingDownMoreThanIsLeftIsRefused) {
  auto root = [&]() -> Task<void> {
    EXPECT_THROW(latch.count_down(4), UsageError);
    EXPECT_EQ(latch.count(), 3u);
    latch.count_down(3);
    bool refused = false;
    try {
      co_await latch.arrive_and_wait();
    } catch (const UsageError& error) {
      refused = std::string(error.what()).find("Latch 'test'") != std::string::npos;
    }
    EXPECT_TRUE(refused);
  };
  run_on(loop, root());
}

LOOP_TEST(LatchTest, TheTreeSaysHowMuchIsLeft) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = arrive("a").start_in_current_scope();
    co_await until_asked(1);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("Latch 'test', 2 left, 1 of 1 waiting"), std::string::npos) << tree;
    latch.count_down(2);
    co_await std::move(a);
  };
  run_on(loop, root());
}

TEST(LatchLoops, CancelWhileNotifiedFromAnotherLoop) {
  Latch latch(1);
  auto wait = [&] { return latch.wait(); };
  auto notify = [&] { latch.count_down(); };
  cancel_while_notified_elsewhere(wait, notify);
}

// A2: the waiter destroys the latch as soon as it goes on; count_down() may be under way still.
TEST(LatchThreads, WhoGoesOnMayDestroyIt) {
  ThreadLoop loop;
  auto root = [&]() -> Task<void> {
    for (int i = 0; i < 200; ++i) {
      auto latch = std::make_unique<Latch>(2);
      int written[2] = {0, 0};
      auto arrive = [latch = latch.get()](int& mine) {
        mine = 1;
        latch->count_down();
      };
      std::thread one(arrive, std::ref(written[0]));
      std::thread two(arrive, std::ref(written[1]));
      co_await latch->wait();
      latch.reset();
      EXPECT_EQ(written[0] + written[1], 2);
      one.join();
      two.join();
    }
  };
  run(loop, root());
}

TEST(LatchMisuse, WaitingOffAnyLoopIsRefused) {
  Latch latch(1);
  auto awaiter = latch.arrive_and_wait().operator co_await();
  EXPECT_THROW(static_cast<void>(awaiter.await_ready()), UsageError);
  EXPECT_EQ(latch.count(), 1u);
}

TEST(LatchDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto wait = [](Latch& latch) { return latch.wait(); };
  EXPECT_DEATH(destroy_while_awaited(std::make_unique<Latch>(1, "short-lived"), wait),
               "Latch 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
