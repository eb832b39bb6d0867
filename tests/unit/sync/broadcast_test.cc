// SPDX-License-Identifier: MIT
#include "weft/sync/broadcast.h"

#include <memory>
#include <string>
#include <thread>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct BroadcastTest : SyncTest {
  Broadcast<int> broadcast{4, "news"};

  // Until the end, or so many.
  Task<void> follows(BroadcastSubscriber<int> subscriber, std::string who, int count_max = 100) {
    for (int i = 0; i < count_max; ++i) {
      ++asked;
      auto next = co_await subscriber.receive();
      if (!next) {
        events.push_back(who + " end");
        co_return;
      }
      if (next->missed > 0) events.push_back(who + " missed " + std::to_string(next->missed));
      events.push_back(who + " " + std::to_string(*next->value));
    }
  }
};

LOOP_TEST(BroadcastTest, EverySubscriberSeesEveryValueSinceItSubscribed) {
  auto root = [&]() -> Task<void> {
    EXPECT_TRUE(broadcast.send(1));
    auto a = broadcast.subscribe();
    EXPECT_TRUE(broadcast.send(2));
    auto b = broadcast.subscribe();
    EXPECT_TRUE(broadcast.send(3));
    broadcast.close();
    EXPECT_FALSE(broadcast.send(4));
    co_await follows(a, "a");
    co_await follows(b, "b");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"a 2", "a 3", "a end", "b 3", "b end"}));
}

LOOP_TEST(BroadcastTest, ThoseWhoWaitAreToldTogetherAndLater) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(follows(broadcast.subscribe(), "a"));
      co_await until_asked(1);
      n.start(follows(broadcast.subscribe(), "b"));
      co_await until_asked(2);
      broadcast.send(1);
      broadcast.send(2);
      events.push_back("sent");  // never inside of send()
      EXPECT_EQ(events.size(), 1u);
      co_await until_asked(6);  // each has both, and waits for more
      broadcast.close();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(in_ring_order(events),
            in_ring_order({"sent", "a 1", "a 2", "b 1", "b 2", "a end", "b end"}));
  for (const std::string who : {"a", "b"}) {
    Events its;
    for (const std::string& event : events) {
      if (event.starts_with(who + " ")) its.push_back(event);
    }
    EXPECT_EQ(its, (Events{who + " 1", who + " 2", who + " end"}));
  }
}

LOOP_TEST(BroadcastTest, ASlowOneIsToldHowManyItMissed) {
  auto root = [&]() -> Task<void> {
    auto slow = broadcast.subscribe();
    auto exact = broadcast.subscribe();
    for (int i = 0; i < 4; ++i) broadcast.send(int(i));
    EXPECT_EQ(exact.try_receive()->missed, 0u);  // as many as are kept
    for (int i = 4; i < 10; ++i) broadcast.send(int(i));
    co_await follows(slow, "slow", 4);
    co_await follows(exact, "exact", 1);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"slow missed 6", "slow 6", "slow 7", "slow 8", "slow 9",
                            "exact missed 5", "exact 6"}));
}

// As if another thread came between the last look and the wait.
LOOP_TEST(BroadcastTest, AValueThatComesWhileTheWaitBeginsIsNotMissed) {
  auto root = [&]() -> Task<void> {
    auto subscriber = broadcast.subscribe();
    auto awaiter = subscriber.receive().operator co_await();
    EXPECT_FALSE(awaiter.await_ready());
    broadcast.send(1);
    EXPECT_FALSE(awaiter.await_suspend(weft::detail::Continuation()));
    EXPECT_EQ(*awaiter.await_resume()->value, 1);
    co_return;
  };
  run_on(loop, root());
}

LOOP_TEST(BroadcastTest, ACancelledReceiveTakesNothing) {
  auto root = [&]() -> Task<void> {
    auto subscriber = broadcast.subscribe();
    auto late = co_await timeout(1ms, subscriber.receive());
    EXPECT_FALSE(late);
    auto body = [&]() -> Task<void> {
      static_cast<void>(co_await subscriber.receive());
      ADD_FAILURE() << "went on";
    };
    StartedTask<void> told = body().start_in_current_scope();
    co_await yields(2);
    broadcast.send(1);
    told.cancel();  // it has been told and has not gone on
    Outcome<void> how = co_await told.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_EQ(*subscriber.try_receive()->value, 1);
  };
  run_on(loop, root());
}

LOOP_TEST(BroadcastTest, AValueIsMadeOnceAndLivesWhileItIsHeld) {
  auto root = [&]() -> Task<void> {
    const int before = Counted::live;
    Broadcast<Counted> counted(1);
    auto a = counted.subscribe();
    auto b = a;
    counted.send(Counted(1));
    auto seen = a.try_receive();
    EXPECT_EQ(seen->value, b.try_receive()->value);
    counted.send(Counted(2));
    EXPECT_EQ(seen->value->value(), 1);
    EXPECT_EQ(Counted::live, before + 2);
    seen.reset();
    EXPECT_EQ(Counted::live, before + 1);
    co_return;
  };
  run_on(loop, root());
}

LOOP_TEST(BroadcastTest, TheTreeSaysWhoWaits) {
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = follows(broadcast.subscribe(), "a").start_in_current_scope();
    co_await until_asked(1);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("Broadcast 'news' receive, 1 of 1 waiting"), std::string::npos) << tree;
    broadcast.close();
    co_await std::move(a);
  };
  run_on(loop, root());
}

// What each sees, and what it is told that it missed, is everything, in order.
TEST(BroadcastThreads, SeenAndMissedAddUpAcrossLoops) {
  constexpr int kValues = 20'000;
  Broadcast<int> broadcast(16);
  auto follows = [&](BroadcastSubscriber<int> subscriber) -> Task<void> {
    Executor* home = Executor::current_or_null();
    std::uint64_t expected = 0;
    while (auto next = co_await subscriber.receive()) {
      EXPECT_EQ(Executor::current_or_null(), home);
      expected += next->missed;
      EXPECT_EQ(static_cast<std::uint64_t>(*next->value), expected);
      ++expected;
    }
    EXPECT_EQ(expected, std::uint64_t{kValues});
  };
  ThreadLoop loop;
  LoopThread others[2];
  auto root = [&]() -> Task<void> {
    std::thread sender;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (LoopThread& other : others) n.start_on(other.executor(), follows(broadcast.subscribe()));
      n.start(follows(broadcast.subscribe()));
      sender = std::thread([&] {
        for (int i = 0; i < kValues; ++i) EXPECT_TRUE(broadcast.send(int(i)));
        broadcast.close();
      });
      co_return join;
    };
    co_await with_nursery(body);
    sender.join();
  };
  run(loop, root());
}

TEST(BroadcastDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto broadcast = std::make_unique<Broadcast<int>>(1, "short-lived");
      auto subscriber = broadcast->subscribe();
      auto body = [&]() -> Task<void> { static_cast<void>(co_await subscriber.receive()); };
      StartedTask<void> waits = body().start_in_current_scope();
      co_await yields(2);
      broadcast.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "Broadcast 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
