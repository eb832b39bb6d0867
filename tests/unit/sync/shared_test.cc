// SPDX-License-Identifier: MIT
// One operation and those who await it: on one loop, then across loops. One file, because every scene is staged
// with the same operation and the same awaiters.
#include "weft/sync/shared.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

static_assert(std::is_same_v<AwaitResult<Shared<Task<int>>&>, const int&>);
static_assert(std::is_same_v<AwaitResult<Shared<Task<int&>>&>, int&>);
static_assert(std::is_same_v<AwaitResult<Shared<Task<void>>&>, void>);
static_assert(std::is_copy_constructible_v<Shared<Task<int>>>);

// On one loop a task that has arrived at its await waits there when another looks: no turns need to
// be counted, which a loop that shuffles them (WEFT_CHAOS_SEED) would make a game of chance.
Task<void> until(const int& count, int wanted) {
  while (count < wanted) co_await yield();
}

struct SharedTest : EachLoopTest {
  Events events;
  Event go;         // lets an operation end
  int arrived = 0;  // tasks that await, or have

  Task<int> operation(int turns) {
    events.push_back("begun");
    Marker marker(events, "operation");
    co_await yields(turns);
    co_return 42;
  }
  Task<int> gated() {
    Marker marker(events, "operation");
    co_await go.wait();
    co_return 42;
  }
  // Slow to stop.
  Task<int> stubborn() {
    events.push_back("begun");
    auto last_words = [&]() -> Task<void> {
      events.push_back("stopping");
      co_await go.wait();
      events.push_back("stopped");
    };
    co_await until_cancelled_and(last_words);
    co_return 0;
  }
  // Has its result although it was cancelled.
  Task<int> unstoppable() {
    co_await noncancellable(go.wait());
    co_return 42;
  }
  template <class S>
  Task<void> awaits(S shared, std::string name) {
    try {
      ++arrived;
      int value = co_await shared;
      events.push_back(name + " " + std::to_string(value));
    } catch (const TaskCancelled&) {
      events.push_back(name + " told of the cancel");
    } catch (const std::runtime_error& error) {
      events.push_back(name + " " + error.what());
    }
  }
};

LOOP_TEST(SharedTest, NothingHappensUntilItIsAwaited) {
  auto root = [&]() -> Task<void> {
    Shared shared(operation(0));
    co_await yields(3);
    EXPECT_EQ(events, Events{});
    EXPECT_FALSE(shared.is_done());
  };
  run_on(loop, root());
}

LOOP_TEST(SharedTest, ItRunsOnceAndEverybodyGetsTheSameResult) {
  auto root = [&]() -> Task<void> {
    Shared shared(operation(3));
    const int* seen = nullptr;
    auto looks = [&]() -> Task<void> {
      const int& value = co_await shared;
      EXPECT_EQ(value, 42);
      if (seen) {
        EXPECT_EQ(seen, &value);
      }
      seen = &value;
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 5; ++i) n.start(looks());
      co_await yield();
      n.start(looks());
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_TRUE(shared.is_done());
    co_await looks();  // and whoever comes later
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"begun", "~operation"}));
}

TEST(SharedOrder, TheyGoOnAsTheyCame) {
  VirtualLoop loop;
  Events events;
  auto root = [&]() -> Task<void> {
    Shared shared(yields(3));
    auto waits = [&](std::string name) -> Task<void> {
      co_await shared;
      events.push_back(name);
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (const char* name : {"a", "b", "c"}) n.start(waits(name));
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"a", "b", "c"}));
}

LOOP_TEST(SharedTest, AnErrorReachesEverybody) {
  auto root = [&]() -> Task<void> {
    auto fails = []() -> Task<int> {
      co_await throws_after(2, "broken");
      co_return 0;
    };
    Shared shared(fails());
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (const char* name : {"a", "b"}) n.start(awaits(shared, name));
      co_return join;
    };
    co_await with_nursery(body);
    co_await awaits(shared, "late");
  };
  LogCapture log;
  run_on(loop, root());
  std::ranges::sort(events);
  EXPECT_EQ(events, (Events{"a broken", "b broken", "late broken"}));
  EXPECT_TRUE(log.take().empty());
}

LOOP_TEST(SharedTest, OtherErrorsComeAlong) {
  auto root = [&]() -> Task<void> {
    auto fails = []() -> Task<int> {
      auto body = [](Nursery& n) -> Task<NurseryEnd> {
        auto second = []() -> Task<void> {
          auto last_words = [] { return throws_after(0, "second"); };
          co_await until_cancelled_and(last_words);
        };
        n.start(second());
        n.start(throws_after(1, "first"));
        co_return join;
      };
      co_await with_nursery(body);
      co_return 0;
    };
    Shared shared(fails());
    for (int i = 0; i < 2; ++i) {
      try {
        co_await shared;
        ADD_FAILURE();
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "first");
        EXPECT_EQ(other_errors().count, 1u);
      }
    }
  };
  run_on(loop, root());
}

// --- What it takes and gives --------------------------------------------------------------------

LOOP_TEST(SharedTest, AnyAwaitableOrCallable) {
  auto root = [&]() -> Task<void> {
    Shared wait(sleep_for(1ms));
    co_await wait;
    Shared value(just(std::string("thread")));
    EXPECT_EQ(co_await value, "thread");

    auto made = std::make_unique<int>(5);
    int calls = 0;
    auto callable = [&calls, kept = std::move(made)]() -> Task<int> {
      ++calls;
      co_await yield();
      co_return *kept;
    };
    Shared called(std::move(callable));
    EXPECT_EQ(calls, 0);
    for (int i = 0; i < 3; ++i) {
      const int& five = co_await called;
      EXPECT_EQ(five, 5);
    }
    EXPECT_EQ(calls, 1);

    int target = 1;
    auto refers = [&]() -> Task<int&> { co_return target; };
    Shared reference(refers());
    int& same = co_await reference;
    EXPECT_EQ(&same, &target);
  };
  run_on(loop, root());
}

LOOP_TEST(SharedTest, AMoveOnlyResultDiesWithTheLastCopy) {
  auto root = [&]() -> Task<void> {
    auto makes = [&]() -> Task<std::unique_ptr<Marker>> {
      co_return std::make_unique<Marker>(events, "result");
    };
    {
      std::optional<Shared<Task<std::unique_ptr<Marker>>>> copy;
      {
        Shared shared(makes());
        copy.emplace(shared);
        const auto& marker = co_await shared;
        EXPECT_NE(marker, nullptr);
      }
      EXPECT_EQ(events, Events{});
      const auto& marker = co_await *copy;
      EXPECT_NE(marker, nullptr);
    }
    EXPECT_EQ(events, Events{"~result"});
  };
  run_on(loop, root());
}

LOOP_TEST(SharedTest, InCombinatorsAndWrappers) {
  auto root = [&]() -> Task<void> {
    Shared shared(operation(3));
    auto [a, b] = co_await all_of(shared, shared);
    EXPECT_EQ(*a, 42);  // combinators keep references as pointers
    EXPECT_EQ(a, b);
    auto in_time = co_await timeout(1h, shared);
    EXPECT_EQ(*in_time.value(), 42);

    Shared never(parked());
    auto late = co_await timeout(1ms, never);
    EXPECT_FALSE(late);
    EXPECT_TRUE(never.is_done());
  };
  run_on(loop, root());
}

LOOP_TEST(SharedTest, EmptyOnesAreRefused) {
  auto root = [&]() -> Task<void> {
    Task<int> task = operation(0);
    Task<int> moved = std::move(task);
    EXPECT_THROW(Shared{std::move(task)}, UsageError);
    Shared shared(std::move(moved));
    Shared taken = std::move(shared);
    bool refused = false;
    try {
      co_await shared;
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    EXPECT_FALSE(shared.is_done());
  };
  run_on(loop, root());
}

// --- Cancellation -------------------------------------------------------------------------------

LOOP_TEST(SharedTest, OneThatIsCancelledLeavesAndTheOthersDoNotNotice) {
  auto root = [&]() -> Task<void> {
    Shared shared(gated());
    StartedTask<void> a = awaits(shared, "a").start_in_current_scope();
    co_await until(arrived, 1);
    StartedTask<void> b = awaits(shared, "b").start_in_current_scope();
    co_await until(arrived, 2);
    a.cancel();  // the first, who started it
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_FALSE(shared.is_done());
    go.set();
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~operation", "b 42"}));
}

LOOP_TEST(SharedTest, TheLastStopsItAndWaitsForItsEnd) {
  auto root = [&]() -> Task<void> {
    Shared shared(stubborn());
    auto waits = [&](std::string name) -> Task<void> {
      Marker marker(events, name);
      ++arrived;
      co_await shared;
    };
    StartedTask<void> a = waits("a").start_in_current_scope();
    StartedTask<void> b = waits("b").start_in_current_scope();
    co_await until(arrived, 2);
    while (events.empty()) co_await yield();  // begun
    b.cancel();
    Outcome<void> left = co_await b.outcome();
    EXPECT_TRUE(left.is_cancelled());
    EXPECT_FALSE(shared.is_done());
    a.cancel();
    co_await yields(5);
    EXPECT_FALSE(a.is_done());
    go.set();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(shared.is_done());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"begun", "~b", "stopping", "stopped", "~a"}));
}

LOOP_TEST(SharedTest, IfItHasAResultAfterAllTheLastGetsIt) {
  auto root = [&]() -> Task<void> {
    Shared shared(unstoppable());
    auto waits = [&]() -> Task<void> {
      ++arrived;
      int value = co_await shared;
      events.push_back(std::to_string(value));
      co_await yield();
      events.push_back("not here");
    };
    StartedTask<void> a = waits().start_in_current_scope();
    co_await until(arrived, 1);
    a.cancel();
    StartedTask<void> late = awaits(shared, "late").start_in_current_scope();
    co_await until(arrived, 2);
    go.set();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(late);
  };
  run_on(loop, root());
  std::ranges::sort(events);
  EXPECT_EQ(events, (Events{"42", "late 42"}));
}

// Nobody asked him to stop, so it is an exception, and not his own end.
LOOP_TEST(SharedTest, WhoComesWhileItIsBeingStoppedIsToldSo) {
  auto root = [&]() -> Task<void> {
    Shared shared(stubborn());
    StartedTask<void> a = awaits(shared, "a").start_in_current_scope();
    while (events.empty()) co_await yield();  // begun
    a.cancel();
    while (events.size() < 2) co_await yield();  // stopping
    EXPECT_FALSE(shared.is_done());
    StartedTask<void> late = awaits(shared, "late").start_in_current_scope();
    StartedTask<void> gone = awaits(shared, "gone").start_in_current_scope();
    co_await until(arrived, 3);
    gone.cancel();  // is not the last, and just leaves
    Outcome<void> left = co_await gone.outcome();
    EXPECT_TRUE(left.is_cancelled());
    EXPECT_FALSE(shared.is_done());
    go.set();
    co_await std::move(late);
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await awaits(shared, "later");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"begun", "stopping", "stopped", "late told of the cancel",
                            "later told of the cancel"}));
}

LOOP_TEST(SharedTest, TheReasonIsThatOfTheLast) {
  static constexpr CancelReason kTooSlow{"too slow"};
  auto root = [&]() -> Task<void> {
    Shared shared(parked());
    auto waits = [&]() -> Task<void> {
      ++arrived;
      co_await shared;
    };
    StartedTask<void> a = waits().start_in_current_scope();
    co_await until(arrived, 1);
    a.cancel(kTooSlow);
    Outcome<void> how = co_await a.outcome();
    EXPECT_EQ(&how.reason(), &kTooSlow);
    try {
      co_await shared;
      ADD_FAILURE();
    } catch (const TaskCancelled& cancelled) {
      EXPECT_EQ(&cancelled.reason(), &kTooSlow);
    }
  };
  run_on(loop, root());
}

LOOP_TEST(SharedTest, AnOperationThatCancelsItselfIsTold) {
  auto root = [&]() -> Task<void> {
    auto gives_up = []() -> Task<int> {
      Scope& scope = co_await current_scope();
      scope.cancel();
      co_await yield();
      co_return 0;
    };
    Shared shared(gives_up());
    co_await awaits(shared, "a");
  };
  run_on(loop, root());
  EXPECT_EQ(events, Events{"a told of the cancel"});
}

LOOP_TEST(SharedTest, AwaitingIsACancelPointAlsoWhenItIsDone) {
  auto root = [&]() -> Task<void> {
    Shared shared(operation(0));
    co_await shared;
    Shared fresh(operation(0));
    events.clear();
    auto cancelled = [&](auto& awaited) -> Task<void> {
      Scope& scope = co_await current_scope();
      scope.cancel();
      co_await awaited;
      events.push_back("not here");
    };
    for (auto* each : {&shared, &fresh}) {
      StartedTask<void> started = cancelled(*each).start_in_current_scope();
      Outcome<void> how = co_await started.outcome();
      EXPECT_TRUE(how.is_cancelled());
    }
    EXPECT_FALSE(fresh.is_done()) << "a cancelled task starts nothing";
  };
  run_on(loop, root());
  EXPECT_EQ(events, Events{});
}

// It has been told, and is cancelled before it goes on. In one loop's order, who looks every turn
// comes before who was told.
TEST(SharedNotified, CancelledThenItEndsSoAndTheResultStays) {
  VirtualLoop loop;
  auto root = [&]() -> Task<void> {
    Shared shared(returns(42));
    auto waits = [&]() -> Task<void> { co_await shared; };
    StartedTask<void> a = waits().start_in_current_scope();
    while (!shared.is_done()) co_await yield();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    int value = co_await shared;
    EXPECT_EQ(value, 42);
  };
  run(loop, root());
}

TEST(SharedNotified, AnErrorThatNobodyWasThrownIsLogged) {  // L14
  VirtualLoop loop;
  LogCapture log;
  auto root = [&]() -> Task<void> {
    Shared shared(throws_after(1, "unread"));
    auto waits = [&]() -> Task<void> { co_await shared; };
    StartedTask<void> a = waits().start_in_current_scope();
    while (!shared.is_done()) co_await yield();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_TRUE(log.take().empty());
  };
  run(loop, root());
  std::vector<std::string> lines = log.take();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("unread"), std::string::npos) << lines[0];
}

LOOP_TEST(SharedTest, AShieldedAwaiterKeepsItRunning) {
  auto root = [&]() -> Task<void> {
    Shared shared(gated());
    auto shielded = [&]() -> Task<void> {
      ++arrived;
      int value = co_await noncancellable(shared);
      events.push_back(std::to_string(value));
    };
    StartedTask<void> a = shielded().start_in_current_scope();
    StartedTask<void> b = awaits(shared, "b").start_in_current_scope();
    co_await until(arrived, 2);
    a.cancel();
    b.cancel();
    Outcome<void> how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_FALSE(shared.is_done());
    go.set();
    how = co_await a.outcome();
    EXPECT_TRUE(how.has_value());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~operation", "42"}));
}

// Every number of awaiters × when the first and when the rest are cancelled.
LOOP_TEST(SharedTest, CancelProduct) {
  auto root = [&]() -> Task<void> {
    for (int awaiters = 1; awaiters <= 3; ++awaiters) {
      for (int first_at = 0; first_at < 9; ++first_at) {
        for (int rest_at = first_at; rest_at < 10; ++rest_at) {
          int live = 0;
          bool ended_well = false;
          auto counts = [&]() -> Task<int> {
            ++live;
            OnExit leaves([&] { --live; });
            co_await yields(4);
            ended_well = true;
            co_return 42;
          };
          Shared shared(counts());
          int got = 0;
          int told = 0;
          int cancelled = 0;
          auto waits = [&]() -> Task<void> {
            try {
              int value = co_await shared;
              EXPECT_EQ(value, 42);
              ++got;
            } catch (const TaskCancelled&) {
              ++told;
            }
            EXPECT_EQ(live, 0) << "L7";
          };
          std::vector<StartedTask<void>> tasks;
          for (int i = 0; i < awaiters; ++i) tasks.push_back(waits().start_in_current_scope());
          co_await yields(first_at);
          tasks[0].cancel();
          co_await yields(rest_at - first_at);
          for (auto& each : tasks) each.cancel();
          for (auto& each : tasks) {
            Outcome<void> how = co_await each.outcome();
            if (how.is_cancelled()) ++cancelled;
          }
          EXPECT_EQ(got + told + cancelled, awaiters);
          if (told > 0) {  // who came after the last had left
            EXPECT_FALSE(ended_well);
          }
          EXPECT_EQ(live, 0) << "nobody waits, and it runs on";
          if (got > 0) {
            EXPECT_TRUE(ended_well);
          }
        }
      }
    }
  };
  run_on(loop, root());
}

LOOP_TEST(SharedTest, TheTreeShowsItBelowWhoAwaitsIt) {
  auto root = [&]() -> Task<void> {
    int begun = 0;
    auto never = [&]() -> Task<void> {
      ++begun;
      co_await annotate("connecting", suspend_forever());
    };
    Shared shared(never(), "connection");
    auto waits = [&]() -> Task<void> {
      ++arrived;
      co_await shared;
    };
    StartedTask<void> a = waits().start_in_current_scope();
    StartedTask<void> b = waits().start_in_current_scope();
    co_await until(arrived, 2);
    co_await until(begun, 1);
    const std::string tree = task_tree(co_await current_scope());
    EXPECT_NE(tree.find("Shared 'connection', 1 of 2 waiting"), std::string::npos) << tree;
    EXPECT_NE(tree.find("connecting"), std::string::npos) << tree;
  };
  run_on(loop, root());
}

// --- Many loops ---------------------------------------------------------------------------------

TEST(SharedThreads, OneOperationForManyLoops) {
  for (int round = 0; round < 30; ++round) {
    ThreadLoop loop;
    LoopThread others[2];
    int written = 0;
    auto writes = [&]() -> Task<int> {
      co_await yield();
      co_return ++written;
    };
    auto root = [&]() -> Task<void> {
      Shared shared(writes());
      auto reader = [&]() -> Task<void> {
        const int& value = co_await shared;
        EXPECT_EQ(value, 1);
        EXPECT_EQ(written, 1);
      };
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        for (int i = 0; i < 5; ++i) {
          for (LoopThread& other : others) n.start_on(other.executor(), reader());
          n.start(reader());
        }
        co_return join;
      };
      co_await with_nursery(body);
    };
    run(loop, root());
  }
}

// The first has left; the operation stays where he began it, and its loop with it.
TEST(SharedThreads, ItStaysOnTheLoopOfTheFirst) {
  ThreadLoop loop;
  LoopThread other;
  auto root = [&]() -> Task<void> {
    Event begun;
    Event go;
    auto works = [&]() -> Task<bool> {
      begun.set();
      co_await go.wait();
      co_return other.executor().is_current();
    };
    Shared shared(works());
    auto waits = [&]() -> Task<void> {
      bool was_there = co_await shared;
      EXPECT_TRUE(was_there);
      EXPECT_TRUE(loop.is_current());
    };
    Scope& scope = co_await current_scope();
    StartedTask<void> second;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(other.executor(), waits());
      co_await begun.wait();
      second = waits().start(scope);
      co_await yields(2);
      co_return cancel;  // the first
    };
    co_await with_nursery(body);
    EXPECT_FALSE(shared.is_done());
    go.set();
    co_await std::move(second);
  };
  run(loop, root());
}

// The last who waits is on another loop: it stops the operation over here, and waits for its end.
TEST(SharedLoops, TheLastStopsItFromAnotherLoop) {
  VirtualLoop a;
  VirtualLoop b{a};
  Events events;
  auto root = [&]() -> Task<void> {
    Shared shared(parked_with(events, "operation"));
    auto waits = [&](std::string name) -> Task<void> {
      Marker marker(events, name);
      co_await shared;
    };
    StartedTask<void> first = waits("first").start_in_current_scope();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      co_await sleep_for(1ms);
      n.start_on(b, waits("last"));
      co_await sleep_for(1ms);
      first.cancel();
      Outcome<void> how = co_await first.outcome();
      EXPECT_TRUE(how.is_cancelled());
      co_await sleep_for(1ms);
      EXPECT_EQ(events, Events{"~first"});
      EXPECT_FALSE(shared.is_done());
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_TRUE(shared.is_done());
  };
  run(a, root());
  EXPECT_EQ(events, (Events{"~first", "~operation", "~last"}));
}

TEST(SharedThreads, IfItsLoopIsStoppedThoseElsewhereAreTold) {
  ThreadLoop loop;
  auto root = [&]() -> Task<void> {
    LoopThread other;
    Event begun;
    auto works = [&]() -> Task<int> {
      begun.set();
      co_await suspend_forever();
      co_return 0;
    };
    Shared shared(works());
    auto there = [&]() -> Task<void> { co_await shared; };
    bool told = false;
    auto here = [&]() -> Task<void> {
      co_await begun.wait();
      try {
        co_await shared;
      } catch (const TaskCancelled& cancelled) {
        told = &cancelled.reason() == &reasons::loop_stopped;
      }
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(other.executor(), there());
      n.start(here());
      co_await begun.wait();
      co_await yields(2);
      other.stop();
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_TRUE(told);
  };
  run(loop, root());
}

// It has moved away from the loop of the first, who has left, and that loop is gone.
TEST(SharedThreads, ItEndsOnAnotherLoopWhenItsFirstIsGone) {
  ThreadLoop loop;
  auto root = [&]() -> Task<void> {
    auto other = std::make_unique<LoopThread>();
    Event moved;
    Event go;
    auto works = [&]() -> Task<int> {
      co_await resume_on(loop);
      moved.set();
      co_await go.wait();
      co_return 42;
    };
    Shared shared(works());
    auto waits = [&]() -> Task<void> {
      int value = co_await shared;
      EXPECT_EQ(value, 42);
    };
    Scope& scope = co_await current_scope();
    StartedTask<void> second;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(other->executor(), waits());
      co_await moved.wait();
      second = waits().start(scope);
      co_await yields(2);
      co_return cancel;
    };
    co_await with_nursery(body);
    other.reset();
    go.set();
    co_await std::move(second);
  };
  run(loop, root());
}

TEST(SharedContext, OnTheWorkersOfAnIOContext) {
  IOContext ctx{{.workers = 3}};
  int written = 0;
  auto writes = [&]() -> Task<std::string> {
    co_await sleep_for(1ms);
    ++written;
    co_return "thread";
  };
  auto root = [&]() -> Task<void> {
    Shared shared(writes());
    std::atomic<int> readers{0};
    auto reader = [&]() -> Task<void> {
      const std::string& value = co_await shared;
      EXPECT_EQ(value, "thread");
      readers.fetch_add(1);
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 100; ++i) n.schedule(reader());
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_EQ(readers.load(), 100);
  };
  ctx.run(root());
  EXPECT_EQ(written, 1);
}

// Nobody who waits can leave, and it does not end: stop() reaches it where it runs.
TEST(SharedContext, StoppingTheContextStopsIt) {
  IOContext ctx{{.workers = 2}};
  std::atomic<int> live{0};
  auto works = [&]() -> Task<void> {
    live.fetch_add(1);
    OnExit leaves([&] { live.fetch_sub(1); });
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    Shared shared(works());
    auto waits = [&]() -> Task<void> { co_await shared; };
    auto stops = [&]() -> Task<void> {
      while (live.load() == 0) co_await yield();
      ctx.stop();
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 4; ++i) n.schedule(waits());
      n.start(stops());
      co_return join;
    };
    co_await with_nursery(body);
  };
  try {
    ctx.run(root());
  } catch (const TaskCancelled&) {
  }
  EXPECT_EQ(live.load(), 0);
}

TEST(SharedErrors, OffAnyLoop) {
  Shared shared(returns(1));
  auto awaiter = shared.operator co_await();
  EXPECT_THROW(static_cast<void>(awaiter.await_ready()), UsageError);
}

}  // namespace
