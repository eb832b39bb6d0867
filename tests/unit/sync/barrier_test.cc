// SPDX-License-Identifier: MIT
#include "weft/sync/barrier.h"

#include <memory>
#include <string>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct BarrierTest : SyncTest {
  Barrier barrier{3, "test"};

  Task<void> arrive(std::string name) {
    ++asked;
    const bool last = co_await barrier.arrive_and_wait();
    events.push_back(last ? name + "!" : name);
  }
};

LOOP_TEST(BarrierTest, AllGoOnWhenTheLastArrivesWhoIsToldSo) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, arrive("a"));
    StartedTask<void> b = co_await begin(scope, arrive("b"));
    co_await yields(3);
    EXPECT_TRUE(events.empty());
    co_await arrive("c");
    EXPECT_EQ(events, Events{"c!"});  // nobody goes on inside of its arrival
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(in_any_order(events), (Events{"a", "b", "c!"}));
}

LOOP_TEST(BarrierTest, NobodyIsAPhaseAheadOfTheOthers) {
  constexpr int kPhases = 20;
  int phase_of[3] = {0, 0, 0};
  int lasts = 0;
  auto party = [&](int me) -> Task<void> {
    for (int i = 0; i < kPhases; ++i) {
      ++phase_of[me];
      co_await yields(me);
      if (co_await barrier.arrive_and_wait()) ++lasts;
      for (int phase : phase_of) EXPECT_GE(phase, i + 1);
      co_await barrier.arrive_and_wait();
    }
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int me = 0; me < 3; ++me) n.start(party(me));
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
  EXPECT_EQ(lasts, kPhases);
}

LOOP_TEST(BarrierTest, ACancelledWaitTakesItsArrivalBack) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, arrive("a"));
    StartedTask<void> b = co_await begin(scope, arrive("b"));
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    StartedTask<void> c = co_await begin(scope, arrive("c"));
    co_await yields(3);
    EXPECT_TRUE(events.empty());  // one is missing again
    co_await arrive("d");
    co_await std::move(b);
    co_await std::move(c);
  };
  run_on(loop, root());
  EXPECT_EQ(in_any_order(events), (Events{"b", "c", "d!"}));
}

LOOP_TEST(BarrierTest, AWaitWhosePhaseIsOverEndsWithItsResult) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto party = [&]() -> Task<void> {
      ++asked;
      co_await barrier.arrive_and_wait();
      events.push_back("through");
      co_await yield();  // here it strikes
      events.push_back("not reached");
    };
    StartedTask<void> a = co_await begin(scope, party());
    StartedTask<void> b = co_await begin(scope, arrive("b"));
    EXPECT_TRUE(co_await barrier.arrive_and_wait());
    a.cancel();  // notified, and has not gone on
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    // It is not missing in the next phase more than any other.
    StartedTask<void> c = co_await begin(scope, arrive("c"));
    StartedTask<void> d = co_await begin(scope, arrive("d"));
    EXPECT_TRUE(co_await barrier.arrive_and_wait());
    co_await std::move(c);
    co_await std::move(d);
  };
  run_on(loop, root());
  EXPECT_EQ(in_any_order(events), (Events{"b", "c", "d", "through"}));
}

LOOP_TEST(BarrierTest, WhoDropsCountsForThisPhaseAndNotForTheNext) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, arrive("a"));
    StartedTask<void> b = co_await begin(scope, arrive("b"));
    barrier.arrive_and_drop();  // the last: and nobody is told so
    EXPECT_EQ(barrier.parties(), 2u);
    co_await std::move(a);
    co_await std::move(b);
    StartedTask<void> c = co_await begin(scope, arrive("c"));
    EXPECT_TRUE(co_await barrier.arrive_and_wait());  // two suffice
    co_await std::move(c);
    barrier.arrive_and_drop();
    EXPECT_TRUE(co_await barrier.arrive_and_wait());  // alone
    barrier.arrive_and_drop();
    EXPECT_THROW(barrier.arrive_and_drop(), UsageError);
    bool refused = false;
    try {
      co_await barrier.arrive_and_wait();
    } catch (const UsageError& error) {
      refused = std::string(error.what()).find("Barrier 'test'") != std::string::npos;
    }
    EXPECT_TRUE(refused);
  };
  run_on(loop, root());
  EXPECT_EQ(in_any_order(events), (Events{"a", "b", "c"}));
}

LOOP_TEST(BarrierTest, TheTreeSaysHowManyAreMissing) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await begin(scope, arrive("a"));
    StartedTask<void> b = co_await begin(scope, arrive("b"));
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("Barrier 'test', 1 missing, 2 of 2 waiting"), std::string::npos) << tree;
    barrier.arrive_and_drop();
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
}

TEST(BarrierLoops, TheWaitGoesOnOnItsLoopAndKeepsAResultThatIsUnderWay) {
  VirtualLoop a;
  VirtualLoop b{a};
  Barrier barrier(2);
  bool through = false;
  auto there = [&]() -> Task<void> {
    co_await barrier.arrive_and_wait();
    EXPECT_EQ(Executor::current_or_null(), &b);
    through = true;
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, there());
      co_await sleep_for(1ms);
      barrier.arrive_and_drop();
      co_return cancel;  // the post is under way
    };
    co_await with_nursery(body);
  };
  run(a, root());
  EXPECT_TRUE(through);
}

// What each party wrote in a phase is seen by all in the next; TSan looks on.
TEST(BarrierThreads, ManyLoopsGoFromPhaseToPhase) {
  constexpr int kPhases = 300;
  ThreadLoop loop;
  LoopThread others[2];
  Barrier barrier(3);
  int written[3] = {0, 0, 0};
  auto party = [&](int me) -> Task<void> {
    for (int i = 1; i <= kPhases; ++i) {
      written[me] = i;
      co_await barrier.arrive_and_wait();
      for (int each : written) EXPECT_EQ(each, i);
      co_await barrier.arrive_and_wait();
    }
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(party(0));
      n.start_on(others[0].executor(), party(1));
      n.start_on(others[1].executor(), party(2));
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

TEST(BarrierMisuse, NoPartiesAndNoLoopAreRefused) {
  EXPECT_THROW(Barrier(0), UsageError);
  Barrier barrier(1);
  auto awaiter = barrier.arrive_and_wait().operator co_await();
  EXPECT_THROW(static_cast<void>(awaiter.await_ready()), UsageError);
}

TEST(BarrierDeathTest, DestroyingOneThatIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto wait = [](Barrier& barrier) { return barrier.arrive_and_wait(); };
  EXPECT_DEATH(destroy_while_awaited(std::make_unique<Barrier>(2, "short-lived"), wait),
               "Barrier 'short-lived' is destroyed while tasks wait for it");
}

}  // namespace
