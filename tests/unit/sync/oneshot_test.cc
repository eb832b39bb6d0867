// SPDX-License-Identifier: MIT
#include "weft/sync/oneshot.h"

#include <memory>
#include <string>
#include <thread>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

using Value = std::unique_ptr<int>;

struct OneshotTest : SyncTest {
  Task<void> receives(OneshotReceiver<Value>& receiver) {
    ++asked;
    std::optional<Value> value = co_await receiver.receive();
    events.push_back(value ? "got " + std::to_string(**value) : "nothing");
    co_await yield();
    events.push_back("went on");
  }
};

LOOP_TEST(OneshotTest, WhatWasSentIsReceivedOnce) {
  auto root = [&]() -> Task<void> {
    auto [sender, receiver] = oneshot<Value>();
    EXPECT_EQ(receiver.try_receive().error(), ChannelError::empty);
    EXPECT_FALSE(sender.is_abandoned());
    EXPECT_TRUE(sender.send(std::make_unique<int>(1)));
    EXPECT_FALSE(sender);
    EXPECT_THROW(sender.send(nullptr), UsageError);
    co_await receives(receiver);
    co_await receives(receiver);
    EXPECT_EQ(receiver.try_receive().error(), ChannelError::closed);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"got 1", "went on", "nothing", "went on"}));
}

LOOP_TEST(OneshotTest, AReceiverThatWaitsGoesOnLater) {
  auto root = [&]() -> Task<void> {
    auto [sender, receiver] = oneshot<Value>();
    StartedTask<void> waits = receives(receiver).start_in_current_scope();
    co_await until_asked(1);
    EXPECT_TRUE(sender.send(std::make_unique<int>(1)));
    events.push_back("sent");  // never inside of send()
    co_await std::move(waits);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"sent", "got 1", "went on"}));
}

LOOP_TEST(OneshotTest, ADroppedSenderLeavesNothing) {
  auto root = [&]() -> Task<void> {
    auto [sender, receiver] = oneshot<Value>();
    StartedTask<void> waits = receives(receiver).start_in_current_scope();
    co_await until_asked(1);
    {
      auto gone = std::move(sender);
    }
    co_await std::move(waits);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"nothing", "went on"}));
}

LOOP_TEST(OneshotTest, ADroppedReceiverLeavesTheValueWithTheSender) {
  auto root = [&]() -> Task<void> {
    auto [sender, receiver] = oneshot<Value>();
    receiver = {};
    EXPECT_TRUE(sender.is_abandoned());
    Value value = std::make_unique<int>(1);
    EXPECT_FALSE(sender.send(std::move(value)));
    EXPECT_TRUE(value);
    co_return;
  };
  run_on(loop, root());
}

LOOP_TEST(OneshotTest, ACancelledReceiveMayBeRepeated) {
  auto root = [&]() -> Task<void> {
    auto [sender, receiver] = oneshot<Value>();
    auto late = co_await timeout(1ms, receiver.receive());
    EXPECT_FALSE(late);
    EXPECT_TRUE(sender.send(std::make_unique<int>(1)));
    co_await receives(receiver);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"got 1", "went on"}));
}

LOOP_TEST(OneshotTest, OneThatIsCancelledWhenItWasToldKeepsTheValue) {
  auto root = [&]() -> Task<void> {
    auto [sender, receiver] = oneshot<Value>();
    StartedTask<void> waits = receives(receiver).start_in_current_scope();
    co_await until_asked(1);
    EXPECT_TRUE(sender.send(std::make_unique<int>(1)));
    waits.cancel();
    Outcome<void> how = co_await waits.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"got 1"}));
}

LOOP_TEST(OneshotTest, OneReceiveAtATime) {
  auto root = [&]() -> Task<void> {
    auto [sender, receiver] = oneshot<Value>();
    StartedTask<void> waits = receives(receiver).start_in_current_scope();
    co_await until_asked(1);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("Oneshot receive, 1 of 1 waiting"), std::string::npos) << tree;
    bool refused = false;
    try {
      static_cast<void>(co_await receiver.receive());
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    sender.close();
    co_await std::move(waits);
  };
  run_on(loop, root());
}

LOOP_TEST(OneshotTest, AValueThatNobodyTakesDiesWithTheHalves) {
  auto root = [&]() -> Task<void> {
    const int before = Counted::live;
    {
      auto [sender, receiver] = oneshot<Counted>();
      EXPECT_TRUE(sender.send(Counted(1)));
      EXPECT_EQ(Counted::live, before + 1);
    }
    EXPECT_EQ(Counted::live, before);
    co_return;
  };
  run_on(loop, root());
}

TEST(OneshotThreads, AThreadWithoutALoopAnswersAnotherLoop) {
  ThreadLoop loop;
  LoopThread other;
  auto there = [](OneshotReceiver<Value> receiver) -> Task<int> {
    Executor* home = Executor::current_or_null();
    std::optional<Value> value = co_await receiver.receive();
    EXPECT_EQ(Executor::current_or_null(), home);
    co_return value ? **value : 0;
  };
  auto root = [&]() -> Task<void> {
    for (int i = 1; i <= 200; ++i) {
      auto [sender, receiver] = oneshot<Value>();
      std::thread answers([&, sender = std::move(sender)]() mutable {
        if (i % 3 == 0) return;
        EXPECT_TRUE(sender.send(std::make_unique<int>(i)));
      });
      const int got = co_await on(other.executor(), there(std::move(receiver)));
      EXPECT_EQ(got, i % 3 == 0 ? 0 : i);
      answers.join();
    }
  };
  run(loop, root());
}

// The receive is cancelled at about the time when another loop sends: it has the value, or the next has.
TEST(OneshotThreads, AValueIsNotLostToACancel) {
  ThreadLoop loop;
  LoopThread other;
  auto sends = [](OneshotSender<Value> sender, int value) -> Task<void> {
    EXPECT_TRUE(sender.send(std::make_unique<int>(value)));
    co_return;
  };
  auto root = [&]() -> Task<void> {
    for (int i = 0; i < 500; ++i) {
      auto [sender, receiver] = oneshot<Value>();
      auto body = [&, &tx = sender, &rx = receiver](Nursery& n) -> Task<NurseryEnd> {
        n.start_on(other.executor(), sends(std::move(tx), i));
        auto [got, over] = co_await any_of(rx.receive(), yields(i % 50));
        if (!got) got.emplace(co_await rx.receive());
        EXPECT_EQ(*got ? ***got : -1, i);
        co_return join;
      };
      co_await with_nursery(body);
    }
  };
  run(loop, root());
}

TEST(OneshotDeathTest, DestroyingAReceiverThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto [sender, receiver] = oneshot<Value>();
      auto body = [](OneshotReceiver<Value>& awaited) -> Task<void> {
        static_cast<void>(co_await awaited.receive());
      };
      StartedTask<void> waits = body(receiver).start_in_current_scope();
      co_await yields(2);
      receiver = {};
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "OneshotReceiver is destroyed while tasks wait for it");
}

}  // namespace
