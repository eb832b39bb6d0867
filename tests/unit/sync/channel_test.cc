// SPDX-License-Identifier: MIT
#include "weft/sync/channel.h"

#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "support/sync_fixture.h"
#include "support/typed_loop_test.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;

// Moves only, and cannot be made without a value.
class Parcel {
 public:
  explicit Parcel(int number) : number_(std::make_unique<int>(number)) {}
  [[nodiscard]] bool is_here() const { return number_ != nullptr; }
  [[nodiscard]] int number() const { return number_ ? *number_ : -1; }

 private:
  std::unique_ptr<int> number_;
};

// The forms of a channel, and the loops that each is tried on.
struct SharedForm {
  template <class T>
  using Items = Channel<T>;
  static constexpr std::array kLoops = kLoopKinds;
};
struct LocalForm {
  template <class T>
  using Items = LocalChannel<T>;
  static constexpr std::array kLoops{LoopKind::virtual_time, LoopKind::runtime};
};

template <class Form>
struct ChannelTest : SyncTest {
  template <class T>
  using Items = typename Form::template Items<T>;
  static constexpr std::array kLoops = Form::kLoops;

  Task<void> sends(Items<int>& channel, int from, int count) {
    for (int i = from; i < from + count; ++i) {
      ++asked;
      const bool sent = co_await channel.send(int(i));
      events.push_back((sent ? "sent " : "closed ") + std::to_string(i));
    }
  }
  Task<void> receives(Items<int>& channel, std::string who, int count = 1) {
    for (int i = 0; i < count; ++i) {
      ++asked;
      std::optional<int> item = co_await channel.receive();
      events.push_back(who + " " + (item ? std::to_string(*item) : std::string("closed")));
    }
  }
};
TYPED_LOOP_TEST_SUITE(ChannelTest, ::testing::Types<SharedForm, LocalForm>);

// --- Values in, values out ----------------------------------------------------------------------

TYPED_LOOP_TEST(ChannelTest, WhatIsSentIsReceivedInOrder) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(3);
    co_await this->sends(channel, 0, 3);
    EXPECT_EQ(channel.size(), 3u);
    co_await this->receives(channel, "a", 3);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"sent 0", "sent 1", "sent 2", "a 0", "a 1", "a 2"}));
}

TYPED_LOOP_TEST(ChannelTest, AFullOneKeepsSendersWaitingInOrder) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(1);
    StartedTask<void> a = this->sends(channel, 0, 2).start_in_current_scope();
    co_await this->until_asked(2);
    StartedTask<void> b = this->sends(channel, 10, 1).start_in_current_scope();
    co_await this->until_asked(3);
    EXPECT_EQ(this->events, (Events{"sent 0"}));
    co_await this->receives(channel, "r", 3);
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(this->loop, root());
  Events received;
  for (const std::string& event : this->events)
    if (event.starts_with("r ")) received.push_back(event);
  EXPECT_EQ(received, (Events{"r 0", "r 1", "r 10"}));
}

TYPED_LOOP_TEST(ChannelTest, ReceiversAreServedInTheOrderOfTheirComing) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(4);
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (const char* who : {"a", "b", "c"}) {
        const int before = this->asked;
        n.start(this->receives(channel, who));
        co_await this->until_asked(before + 1);
      }
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(channel.try_send(int(i)));
      EXPECT_EQ(channel.size(), 0u);  // each has its own already
      this->events.push_back("all sent");
      EXPECT_EQ(this->events.size(), 1u);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(this->loop, root());
  EXPECT_EQ(in_ring_order(this->events), in_ring_order({"all sent", "a 0", "b 1", "c 2"}));
}

TYPED_LOOP_TEST(ChannelTest, ARendezvousEndsWhenTheValueIsTaken) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(0);
    EXPECT_EQ(channel.try_send(7).error(), ChannelError::full);
    StartedTask<void> a = this->sends(channel, 0, 2).start_in_current_scope();
    co_await this->until_asked(1);
    EXPECT_TRUE(this->events.empty());
    co_await this->receives(channel, "r", 2);
    co_await std::move(a);
    // The other way round: the receiver is there first.
    const int before = this->asked;
    StartedTask<void> r = this->receives(channel, "first").start_in_current_scope();
    co_await this->until_asked(before + 1);
    EXPECT_TRUE(channel.try_send(5));
    co_await std::move(r);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events.front(), "r 0");
  EXPECT_EQ(this->events.back(), "first 5");
}

TYPED_LOOP_TEST(ChannelTest, TryNeverWaitsAndSaysWhy) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<Parcel> channel(1);
    EXPECT_EQ(channel.try_receive().error(), ChannelError::empty);
    Parcel a(1), b(2);
    EXPECT_TRUE(channel.try_send(std::move(a)));
    EXPECT_FALSE(a.is_here());
    EXPECT_EQ(channel.try_send(std::move(b)).error(), ChannelError::full);
    EXPECT_TRUE(b.is_here());
    Result<Parcel, ChannelError> got = channel.try_receive();
    EXPECT_EQ(got->number(), 1);
    channel.close();
    EXPECT_EQ(channel.try_send(std::move(b)).error(), ChannelError::closed);
    EXPECT_TRUE(b.is_here());
    EXPECT_EQ(channel.try_receive().error(), ChannelError::closed);
    co_return;
  };
  run_on(this->loop, root());
}

// L2: neither a sender nor a closer runs those whom it wakes.
TYPED_LOOP_TEST(ChannelTest, AWakeUpIsNeverInsideOfTheCall) {
  struct Callback : Runnable {
    Callback(typename TestFixture::template Items<int>& c, Events& e)
        : Runnable(&called), channel(c), events(e) {}
    static void called(Runnable& self) noexcept {
      auto& me = static_cast<Callback&>(self);
      static_cast<void>(me.channel.try_send(1));
      me.channel.close();
      me.events.push_back("callback over");
    }
    typename TestFixture::template Items<int>& channel;
    Events& events;
  };
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(1);
    StartedTask<void> a = this->receives(channel, "a").start_in_current_scope();
    co_await this->until_asked(1);
    StartedTask<void> b = this->receives(channel, "b").start_in_current_scope();
    co_await this->until_asked(2);
    Callback callback(channel, this->events);  // a bare callback of the loop, in no task
    Executor::current_or_null()->post_here(callback);
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events.front(), "callback over");
  this->events.erase(this->events.begin());
  EXPECT_EQ(in_ring_order(this->events), (Events{"a 1", "b closed"}));
}

// --- close() ------------------------------------------------------------------------------------

TYPED_LOOP_TEST(ChannelTest, ClosingLetsReceiversDrain) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(2);
    co_await this->sends(channel, 0, 2);
    channel.close();
    channel.close();
    EXPECT_TRUE(channel.is_closed());
    co_await this->sends(channel, 5, 1);
    co_await this->receives(channel, "r", 3);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"sent 0", "sent 1", "closed 5", "r 0", "r 1", "r closed"}));
}

TYPED_LOOP_TEST(ChannelTest, ClosingEndsReceiversThatWait) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(2);
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(this->receives(channel, "a"));
      n.start(this->receives(channel, "b"));
      co_await this->until_asked(2);
      channel.close();
      EXPECT_TRUE(this->events.empty());
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(this->loop, root());
  EXPECT_EQ(in_ring_order(this->events), (Events{"a closed", "b closed"}));
}

TYPED_LOOP_TEST(ChannelTest, ClosingHandsTheValuesOfSendersThatWaitBack) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<Parcel> channel(1);
    Parcel inside(1), waits(2);
    EXPECT_TRUE(channel.try_send(std::move(inside)));
    auto body = [&]() -> Task<void> {
      ++this->asked;
      EXPECT_FALSE(co_await channel.send(std::move(waits)));
      EXPECT_EQ(waits.number(), 2);
    };
    StartedTask<void> sender = body().start_in_current_scope();
    co_await this->until_asked(1);
    channel.close();
    co_await std::move(sender);
    EXPECT_EQ(channel.try_receive()->number(), 1);
    EXPECT_EQ(channel.try_receive().error(), ChannelError::closed);
  };
  run_on(this->loop, root());
}

// corral asserts, or enqueues after the close.
TYPED_LOOP_TEST(ChannelTest, ClosingAfterAWaitingSenderWasGrantedASlotKeepsItsValue) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(1);
    EXPECT_TRUE(channel.try_send(1));
    StartedTask<void> sender = this->sends(channel, 2, 1).start_in_current_scope();
    co_await this->until_asked(1);
    EXPECT_EQ(*channel.try_receive(), 1);  // the sender's value is in, and it has not gone on
    channel.close();
    EXPECT_EQ(channel.size(), 1u);
    co_await std::move(sender);
    EXPECT_EQ(channel.size(), 1u);
    EXPECT_EQ(*channel.try_receive(), 2);
    EXPECT_EQ(channel.try_receive().error(), ChannelError::closed);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"sent 2"}));
}

// --- Cancellation -------------------------------------------------------------------------------

// corral loses x.
TYPED_LOOP_TEST(ChannelTest, ACancelledSendLeavesTheValueWithItsCaller) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<Parcel> channel(0);
    Parcel x(7);
    auto body = [&]() -> Task<void> {
      ++this->asked;
      static_cast<void>(co_await channel.send(std::move(x)));
    };
    StartedTask<void> sender = body().start_in_current_scope();
    co_await this->until_asked(1);
    sender.cancel();
    Outcome<void> how = co_await sender.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_EQ(x.number(), 7);
    EXPECT_EQ(channel.try_receive().error(), ChannelError::empty);
    auto timed = co_await timeout(1ms, channel.send(std::move(x)));
    EXPECT_FALSE(timed);
    EXPECT_EQ(x.number(), 7);
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ChannelTest, ACancelledReceiveTakesNothing) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(1);
    StartedTask<void> a = this->receives(channel, "a").start_in_current_scope();
    co_await this->until_asked(1);
    StartedTask<void> b = this->receives(channel, "b").start_in_current_scope();
    co_await this->until_asked(2);
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(channel.try_send(1));
    co_await std::move(b);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"b 1"}));
}

TYPED_LOOP_TEST(ChannelTest, AReceiverThatIsCancelledWhenItWasGivenAnItemKeepsIt) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(1);
    StartedTask<void> a = this->receives(channel, "a", 2).start_in_current_scope();
    co_await this->until_asked(1);
    EXPECT_TRUE(channel.try_send(1));
    EXPECT_TRUE(channel.try_send(2));
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());  // at its next await
    EXPECT_EQ(*channel.try_receive(), 2);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"a 1"}));
}

TYPED_LOOP_TEST(ChannelTest, ASenderThatIsCancelledWhenItsValueWasTakenHasSentIt) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(0);
    StartedTask<void> a = this->sends(channel, 1, 2).start_in_current_scope();
    co_await this->until_asked(1);
    EXPECT_EQ(*channel.try_receive(), 1);
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_EQ(channel.try_receive().error(), ChannelError::empty);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"sent 1"}));
}

TYPED_LOOP_TEST(ChannelTest, ATaskThatIsCancelledAlreadyNeitherSendsNorReceives) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<Parcel> channel(2);
    EXPECT_TRUE(channel.try_send(Parcel(1)));
    Parcel x(2);
    auto body = [&](bool sends) -> Task<void> {
      Scope& scope = co_await current_scope();
      scope.cancel();
      if (sends) {
        static_cast<void>(co_await channel.send(std::move(x)));
      } else {
        static_cast<void>(co_await channel.receive());
      }
      ADD_FAILURE() << "went on";
    };
    for (bool sends : {true, false}) {
      StartedTask<void> started = body(sends).start_in_current_scope();
      Outcome<void> how = co_await started.outcome();
      EXPECT_TRUE(how.is_cancelled());
    }
    EXPECT_TRUE(x.is_here());
    EXPECT_EQ(channel.size(), 1u);
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ChannelTest, WaitsForSeveralAtOnce) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> a(1), b(1);
    EXPECT_TRUE(b.try_send(1));
    auto [first, second] = co_await any_of(a.receive(), b.receive());
    EXPECT_FALSE(first);
    EXPECT_EQ(**second, 1);
    EXPECT_TRUE(a.try_send(2));
    EXPECT_EQ(a.size(), 1u);  // nobody was left waiting there
    // A closed one does not beat an item.
    EXPECT_TRUE(b.try_send(3));
    static_cast<void>(a.try_receive());
    a.close();
    auto [third, fourth] = co_await any_of(a.receive(), b.receive());
    EXPECT_TRUE(third && !*third);
    EXPECT_EQ(fourth ? *fourth : b.try_receive().value_or(0), 3);
  };
  run_on(this->loop, root());
}

// --- Many at once -------------------------------------------------------------------------------

TYPED_LOOP_TEST(ChannelTest, SendAllWakesItsSenderOnceWhenAllAreTaken) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(2);
    std::vector<int> values(200);
    std::iota(values.begin(), values.end(), 0);
    std::span<int> rest(values);
    auto body = [&]() -> Task<void> {
      ++this->asked;
      EXPECT_TRUE(co_await channel.send_all(rest));
      this->events.push_back("all");
    };
    StartedTask<void> sender = body().start_in_current_scope();
    co_await this->until_asked(1);
    EXPECT_EQ(rest.size(), 198u);
    for (int i = 0; i < 200; ++i) {
      EXPECT_TRUE(this->events.empty() || i > 197);
      std::optional<int> item = co_await channel.receive();
      EXPECT_EQ(*item, i);
      co_await yield();
    }
    co_await std::move(sender);
    EXPECT_TRUE(rest.empty());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"all"}));
}

TYPED_LOOP_TEST(ChannelTest, SendAllThatIsCancelledOrClosedLeavesTheRest) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<Parcel> channel(1);
    std::vector<Parcel> parcels;
    for (int i = 0; i < 4; ++i) parcels.emplace_back(i);
    std::span<Parcel> rest(parcels);
    auto timed = co_await timeout(1ms, channel.send_all(rest));
    EXPECT_FALSE(timed);
    EXPECT_EQ(rest.size(), 3u);
    EXPECT_FALSE(parcels[0].is_here());
    EXPECT_EQ(rest.front().number(), 1);
    auto body = [&]() -> Task<void> {
      ++this->asked;
      EXPECT_FALSE(co_await channel.send_all(rest));
    };
    StartedTask<void> sender = body().start_in_current_scope();
    co_await this->until_asked(1);
    EXPECT_EQ(channel.try_receive()->number(), 0);
    channel.close();
    co_await std::move(sender);
    EXPECT_EQ(rest.size(), 2u);
    EXPECT_EQ(rest.front().number(), 2);
    EXPECT_EQ(channel.try_receive()->number(), 1);
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ChannelTest, ReceiveUpToTakesWhatIsThereAndWaitsForOne) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<Parcel> channel(300);
    auto body = [&](std::size_t count_max) -> Task<std::size_t> {
      ++this->asked;
      std::vector<Parcel> items = co_await channel.receive_up_to(count_max);
      for (std::size_t i = 1; i < items.size(); ++i)
        EXPECT_EQ(items[i].number(), items[0].number() + static_cast<int>(i));
      co_return items.size();
    };
    for (int i = 0; i < 300; ++i) EXPECT_TRUE(channel.try_send(Parcel(i)));
    EXPECT_EQ(co_await body(10), 10u);
    EXPECT_EQ(co_await body(1000), 290u);
    StartedTask<std::size_t> waits = body(10).start_in_current_scope();
    co_await this->until_asked(3);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(channel.try_send(Parcel(i)));
    EXPECT_EQ(co_await std::move(waits), 3u);  // one wake-up for all
    channel.close();
    EXPECT_EQ(co_await body(10), 0u);
  };
  run_on(this->loop, root());
}

// --- unbounded() --------------------------------------------------------------------------------

TYPED_LOOP_TEST(ChannelTest, AnUnboundedOneGrowsAndItsMaximumHolds) {
  auto root = [&]() -> Task<void> {
    constexpr int kMax = 4096;
    auto channel = TestFixture::template Items<int>::unbounded("log", kMax);
    EXPECT_EQ(channel.capacity(), std::size_t{kMax});
    for (int round = 0, next = 0; round < 3; ++round) {
      const int first = next;
      while (channel.try_send(int(next))) ++next;
      EXPECT_EQ(next - first, kMax);
      // At its maximum it is a bounded one: each that leaves lets a sender's value in.
      const int before = this->asked;
      StartedTask<void> sender = this->sends(channel, next, 3000).start_in_current_scope();
      co_await this->until_asked(before + 1);
      for (int i = first; i < next + 3000; ++i) {
        std::optional<int> item = co_await channel.receive();
        EXPECT_EQ(*item, i);
        if (i % 3 == 0) co_await yield();
      }
      co_await std::move(sender);
      next += 3000;
      EXPECT_EQ(channel.size(), 0u);
    }
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ChannelTest, AnUnboundedOneWithAMaximumOfNoneIsARendezvous) {
  auto root = [&]() -> Task<void> {
    auto channel = TestFixture::template Items<int>::unbounded("none", 0);
    EXPECT_EQ(channel.try_send(1).error(), ChannelError::full);
    StartedTask<void> sender = this->sends(channel, 1, 2).start_in_current_scope();
    for (int i = 1; i <= 2; ++i) {
      std::optional<int> item = co_await channel.receive();
      EXPECT_EQ(*item, i);
    }
    co_await std::move(sender);
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ChannelTest, ItsValuesDieWithIt) {
  auto root = [&]() -> Task<void> {
    for (bool bounded : {true, false}) {
      const int before = Counted::live;
      {
        auto channel = bounded
                           ? std::make_unique<typename TestFixture::template Items<Counted>>(5000)
                           : std::unique_ptr<typename TestFixture::template Items<Counted>>(
                                 new typename TestFixture::template Items<Counted>(
                                     TestFixture::template Items<Counted>::unbounded()));
        for (int i = 0; i < 5000; ++i) EXPECT_TRUE(channel->try_send(Counted(i)));
        for (int i = 0; i < 100; ++i) EXPECT_EQ(channel->try_receive()->value(), i);
        EXPECT_EQ(Counted::live, before + 4900);
      }
      EXPECT_EQ(Counted::live, before);
    }
    co_return;
  };
  run_on(this->loop, root());
}

TYPED_LOOP_TEST(ChannelTest, TheTreeSaysWhoWaitsAndWhere) {
  auto root = [&]() -> Task<void> {
    typename TestFixture::template Items<int> channel(0, "jobs");
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (const char* who : {"a", "b", "c"}) n.start(this->receives(channel, who));
      co_await this->until_asked(3);
      const std::string whole = task_tree(n);
      EXPECT_NE(whole.find("Channel 'jobs' receive, 1 of 3 waiting"), std::string::npos) << whole;
      EXPECT_NE(whole.find("Channel 'jobs' receive, 3 of 3 waiting"), std::string::npos) << whole;
      co_return cancel;
    };
    co_await with_nursery(body);
    StartedTask<void> sender = this->sends(channel, 0, 1).start_in_current_scope();
    co_await this->until_asked(4);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("Channel 'jobs' send, 1 of 1 waiting"), std::string::npos) << tree;
    sender.cancel();
    static_cast<void>(co_await sender.outcome());
  };
  run_on(this->loop, root());
}

// --- Several loops ------------------------------------------------------------------------------

struct ChannelLoops : ::testing::Test {
  VirtualLoop a;
  VirtualLoop b{a};
};

TEST_F(ChannelLoops, EveryoneGoesOnOnTheLoopThatItAwaitedFrom) {
  Channel<int> channel(0);
  auto there = [&]() -> Task<void> {
    for (int i = 0; i < 10; ++i) {
      std::optional<int> item = co_await channel.receive();
      EXPECT_EQ(*item, i);
      EXPECT_EQ(Executor::current_or_null(), &b);
    }
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, there());
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(co_await channel.send(int(i)));
        EXPECT_EQ(Executor::current_or_null(), &a);
      }
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(a, root());
}

// The post is under way to the other loop when the cancel comes.
TEST_F(ChannelLoops, AnItemOnItsWayToACancelledReceiverIsReceived) {
  Channel<int> channel(1);
  Events events;
  auto there = [&]() -> Task<void> {
    std::optional<int> item = co_await channel.receive();
    events.push_back("got " + std::to_string(*item));
    co_await yield();
    events.push_back("not reached");
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, there());
      co_await sleep_for(1ms);
      EXPECT_TRUE(channel.try_send(1));
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"got 1"}));
}

TEST(ChannelThreads, ManyLoopsAndAThreadWithoutOne) {
  constexpr int kEach = 2000;
  Channel<int> channel(8);
  Channel<int> results = Channel<int>::unbounded();
  auto producer = [&]() -> Task<void> {
    for (int i = 1; i <= kEach; ++i) EXPECT_TRUE(co_await channel.send(int(i)));
  };
  auto consumer = [&]() -> Task<void> {
    Executor* home = Executor::current_or_null();
    while (auto item = co_await channel.receive()) {
      EXPECT_EQ(Executor::current_or_null(), home);
      EXPECT_TRUE(co_await results.send(std::move(*item)));
    }
  };
  ThreadLoop loop;
  LoopThread others[2];
  auto root = [&]() -> Task<void> {
    auto consumers = [&](Nursery& n) -> Task<NurseryEnd> {
      for (LoopThread& other : others) n.start_on(other.executor(), consumer());
      n.start(consumer());
      auto producers = [&](Nursery& m) -> Task<NurseryEnd> {
        for (LoopThread& other : others) m.start_on(other.executor(), producer());
        m.start(producer());
        co_return join;
      };
      co_await with_nursery(producers);
      std::thread closer([&] { channel.close(); });  // off any loop
      closer.join();
      co_return join;
    };
    co_await with_nursery(consumers);
  };
  run(loop, root());
  long sum = 0;
  while (auto item = results.try_receive()) sum += *item;
  EXPECT_EQ(sum, 3L * kEach * (kEach + 1) / 2);
}

// --- Misuse -------------------------------------------------------------------------------------

TEST(ChannelMisuse, WaitingOffAnyLoopIsRefused) {
  Channel<Parcel> channel(1);
  Parcel x(1);
  auto awaiter = channel.send(std::move(x)).operator co_await();
  EXPECT_THROW(static_cast<void>(awaiter.await_ready()), UsageError);
  EXPECT_TRUE(x.is_here());
  EXPECT_TRUE(channel.try_send(std::move(x)));  // this needs none
  EXPECT_EQ(channel.try_receive()->number(), 1);
}

TEST(LocalChannelDeathTest, UseOnAnotherLoop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [](auto use) {
    VirtualLoop a;
    VirtualLoop b{a};
    auto root = [&]() -> Task<void> {
      LocalChannel<int> channel(1);
      EXPECT_TRUE(co_await channel.send(1));
      co_await on(b, use(channel));
    };
    run(a, root());
  };
  auto receive = [](LocalChannel<int>& channel) -> Task<void> {
    static_cast<void>(co_await channel.receive());
  };
  auto send_all = [](LocalChannel<int>& channel) -> Task<void> {
    std::span<int> nothing;
    static_cast<void>(co_await channel.send_all(nothing));
  };
  auto try_send = [](LocalChannel<int>& channel) -> Task<void> {
    static_cast<void>(channel.try_send(1));
    co_return;
  };
  EXPECT_DEATH(misuse(receive), "LocalChannel::receive\\(\\) on loop .*, but loop .* uses it");
  EXPECT_DEATH(misuse(send_all), "LocalChannel::send\\(\\) on loop .*, but loop .* uses it");
  EXPECT_DEATH(misuse(try_send), "LocalChannel::try_send\\(\\) on loop .*, but loop .* uses it");
}

TEST(ChannelDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto channel = std::make_unique<Channel<int>>(1, "short-lived");
      auto body = [&]() -> Task<void> { static_cast<void>(co_await channel->receive()); };
      StartedTask<void> waits = body().start_in_current_scope();
      co_await yields(2);
      channel.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "Channel 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
