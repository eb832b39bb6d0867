// SPDX-License-Identifier: MIT
// In the order of the headings below, threads last. One file, because all of them draw on
// the few generators at its beginning.
#include "weft/sync/generator.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

Generator<int> count_to(int end) {
  for (int i = 1; i <= end; ++i) co_yield i;
}
// Waits before each.
Generator<int> slowly_to(int end) {
  for (int i = 1; i <= end; ++i) {
    co_await yield();
    co_yield i;
  }
}
// Notes its own end; waits for ever after `before` values, and says so.
Generator<int> stuck_after(Events& events, int before, bool* stuck = nullptr) {
  Marker marker(events, "generator");
  for (int i = 1; i <= before; ++i) co_yield i;
  if (stuck) *stuck = true;
  co_await suspend_forever();
}
// It waits there by then: what comes to a wait in a step waits when the step is over.
Task<void> until(const bool& happened) {
  while (!happened) co_await yield();
}

// A function whose name is in the tree, because it awaits.
Task<std::optional<int>> awaits_next(Generator<int>& g) { co_return co_await g.next(); }

struct GeneratorTest : EachLoopTest {
  Events events;
};

static_assert(std::is_same_v<AwaitResult<decltype(std::declval<Generator<int>&>().next())>,
                             std::optional<int>>);
static_assert(std::is_same_v<AwaitResult<decltype(std::declval<Generator<const int&>&>().next())>,
                             const int*>);
static_assert(std::is_nothrow_move_constructible_v<Generator<int>>);
static_assert(!std::is_copy_constructible_v<Generator<int>>);

LOOP_TEST(GeneratorTest, GivesItsValuesInOrderAndThenNothing) {
  auto root = [&]() -> Task<void> {
    int expected = 0;
    Generator<int> numbers = count_to(5);
    while (std::optional<int> n = co_await numbers.next()) EXPECT_EQ(*n, ++expected);
    EXPECT_EQ(expected, 5);
    std::optional<int> after = co_await numbers.next();
    EXPECT_FALSE(after);
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, IsLazyAndRunsOnlyInsideOfNext) {
  auto noted = [&]() -> Generator<int> {
    events.push_back("begun");
    co_yield 1;
    events.push_back("went on");
    co_yield 2;
  };
  auto root = [&]() -> Task<void> {
    Generator<int> g = noted();
    co_await yields(2);
    EXPECT_EQ(events, Events{});
    static_cast<void>(co_await g.next());
    co_await yields(2);
    EXPECT_EQ(events, Events{"begun"});
    static_cast<void>(co_await g.next());
    EXPECT_EQ(events, (Events{"begun", "went on"}));
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, WaitsBetweenItsValues) {
  auto root = [&]() -> Task<void> {
    int sum = 0;
    Generator<int> numbers = slowly_to(100);
    while (std::optional<int> n = co_await numbers.next()) sum += *n;
    EXPECT_EQ(sum, 5050);
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, WithoutAValueItEndsAtOnce) {
  auto none = []() -> Generator<int> { co_return; };
  auto root = [&]() -> Task<void> {
    Generator<int> g = none();
    std::optional<int> n = co_await g.next();
    EXPECT_FALSE(n);
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, AwaitsTasksAndCombinatorsAndOtherGenerators) {
  auto mixed = []() -> Generator<int> {
    int one = co_await returns(1);
    co_yield one;
    auto [a, b] = co_await all_of(returns(2), returns(3));
    co_yield a;
    co_yield b;
    Generator<int> inner = slowly_to(3);
    while (std::optional<int> n = co_await inner.next()) co_yield 3 + *n;
    auto named = [] { return returns(7); };
    int seven = co_await named;
    co_yield seven;
  };
  auto root = [&]() -> Task<void> {
    int expected = 0;
    Generator<int> g = mixed();
    while (std::optional<int> n = co_await g.next()) EXPECT_EQ(*n, ++expected);
    EXPECT_EQ(expected, 7);
  };
  run_on(loop, root());
}

// --- What it gives ------------------------------------------------------------------------------

LOOP_TEST(GeneratorTest, MoveOnlyValues) {
  auto boxes = []() -> Generator<std::unique_ptr<int>> {
    for (int i = 0; i < 3; ++i) co_yield std::make_unique<int>(i);
    auto named = std::make_unique<int>(3);
    co_yield std::move(named);
    EXPECT_EQ(named, nullptr);
  };
  auto root = [&]() -> Task<void> {
    int expected = 0;
    Generator<std::unique_ptr<int>> g = boxes();
    while (auto box = co_await g.next()) EXPECT_EQ(**box, expected++);
    EXPECT_EQ(expected, 4);
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, ReferencesAreToWhatTheGeneratorHas) {
  std::string line;
  auto lines = [&]() -> Generator<std::string&> {
    for (const char* text : {"warp", "weft"}) {
      line = text;
      co_yield line;
      EXPECT_EQ(line, std::string(text) + "!");
    }
  };
  auto root = [&]() -> Task<void> {
    int seen = 0;
    Generator<std::string&> g = lines();
    while (std::string* each = co_await g.next()) {
      EXPECT_EQ(each, &line);
      *each += "!";
      ++seen;
    }
    EXPECT_EQ(seen, 2);
    EXPECT_EQ(co_await g.next(), nullptr);
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, ATemporaryLivesUntilTheGeneratorGoesOn) {
  auto counted = []() -> Generator<const Counted&> {
    co_yield Counted(1);
    EXPECT_EQ(Counted::live, 0);
    co_yield Counted(2);
  };
  auto longs = []() -> Generator<const long&> { co_yield 5; };  // converted, too
  auto root = [&]() -> Task<void> {
    Generator<const Counted&> g = counted();
    int expected = 0;
    while (const Counted* each = co_await g.next()) {
      co_await yield();
      EXPECT_EQ(Counted::live, 1);
      EXPECT_EQ(each->value(), ++expected);
    }
    EXPECT_EQ(expected, 2);
    Generator<const long&> l = longs();
    const long* five = co_await l.next();
    EXPECT_EQ(*five, 5);
  };
  run_on(loop, root());
  EXPECT_EQ(Counted::live, 0);
}

LOOP_TEST(GeneratorTest, AValueIsMovedAndNoCopyOfItStays) {
  auto counted = []() -> Generator<Counted> {
    for (int i = 0; i < 3; ++i) co_yield Counted(i);
  };
  auto root = [&]() -> Task<void> {
    Generator<Counted> g = counted();
    for (int i = 0; i < 3; ++i) {
      std::optional<Counted> each = co_await g.next();
      EXPECT_EQ(each->value(), i);
      // Ours, and the moved-from temporary of the co_yield.
      EXPECT_EQ(Counted::live, 2);
    }
  };
  run_on(loop, root());
  EXPECT_EQ(Counted::live, 0);
}

LOOP_TEST(GeneratorTest, OverAlignedLocals) {
#ifdef __clang__
  struct alignas(64) Wide {
    int value = 0;
  };
  auto wide = []() -> Generator<std::uintptr_t> {
    Wide local;
    co_yield reinterpret_cast<std::uintptr_t>(&local);
    local.value = 1;
    co_yield reinterpret_cast<std::uintptr_t>(&local);
  };
  auto root = [&]() -> Task<void> {
    Generator<std::uintptr_t> g = wide();
    while (auto at = co_await g.next()) EXPECT_EQ(*at % 64, 0u);
  };
  run_on(loop, root());
#endif
}

// --- Errors -------------------------------------------------------------------------------------

LOOP_TEST(GeneratorTest, AnExceptionPassesThroughNextAndItIsOver) {
  auto throwing = [&]() -> Generator<int> {
    Marker marker(events, "generator");
    co_yield 1;
    co_await yield();
    throw std::runtime_error("broken thread");
  };
  auto root = [&]() -> Task<void> {
    Generator<int> g = throwing();
    static_cast<void>(co_await g.next());
    try {
      static_cast<void>(co_await g.next());
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "broken thread");
      EXPECT_EQ(events, Events{"~generator"});  // L7: its frame is gone
    }
    std::optional<int> after = co_await g.next();
    EXPECT_FALSE(after);
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, ItCatchesWhatItAwaits) {
  auto catching = []() -> Generator<std::string> {
    std::string caught;
    try {
      co_await throws_after(1, "inside");
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    co_yield caught;
  };
  auto root = [&]() -> Task<void> {
    Generator<std::string> g = catching();
    std::optional<std::string> what = co_await g.next();
    EXPECT_EQ(what, "inside");
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, AnErrorOfAnEndedChildIsThrownByTheCoYield) {
  bool failed = false;
  auto child = [&]() -> Task<void> {
    failed = true;
    co_await throws_after(0, "child");
  };
  auto with_child = [&]() -> Generator<int> {
    Scope& scope = co_await current_scope();
    child().start(scope).detach();
    co_await until(failed);
    try {
      co_yield 1;
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      events.push_back(error.what());
    }
    co_yield 2;
  };
  auto root = [&]() -> Task<void> {
    Generator<int> g = with_child();
    std::optional<int> n = co_await g.next();
    EXPECT_EQ(n, 2);
    n = co_await g.next();
    EXPECT_FALSE(n);
  };
  run_on(loop, root());
  EXPECT_EQ(events, Events{"child"});
}

LOOP_TEST(GeneratorTest, AtItsEndItJoinsItsChildren) {
  auto with_child = [&]() -> Generator<int> {
    auto late = [](Events& events) -> Task<void> {
      co_await yields(5);
      events.push_back("child");
    };
    Scope& scope = co_await current_scope();
    co_yield 1;
    late(events).start(scope).detach();
  };
  auto root = [&]() -> Task<void> {
    Generator<int> g = with_child();
    while (co_await g.next()) {
    }
    events.push_back("end");
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"child", "end"}));
}

// --- What it must not do ------------------------------------------------------------------------

template <class Fn>
Task<std::string> usage_error_of(Fn fn) {
  try {
    co_await fn();
  } catch (const UsageError& error) {
    co_return error.what();
  }
  co_return "none";
}

LOOP_TEST(GeneratorTest, YieldingWithAChildOrALeaseOrAGuardIsRefused) {
  enum class Tie { child, lease, node, guard };
  struct Node : CancelNode {
    void on_cancel() noexcept override {}
    void on_zero_refs() noexcept override {}
  };
  Node node;
  auto tied = [&](Tie tie) -> Generator<int> {
    Scope& scope = co_await current_scope();
    if (tie == Tie::child) {
      StartedTask<void> child = parked().start(scope);
      co_yield 1;
    } else if (tie == Tie::lease) {
      // It must not be a local when the frame ends: leases are waited for before locals die.
      auto lease = std::make_unique<PromiseChildLease>(scope.lease());
      try {
        co_yield 1;
      } catch (const UsageError&) {
        lease.reset();
        throw;
      }
    } else if (tie == Tie::node) {
      scope.publish_cancel_node(node);
      co_yield 1;
    } else {
      auto guard = co_await ignore_cancellation();
      co_yield 1;
    }
  };
  auto root = [&]() -> Task<void> {
    for (Tie tie : {Tie::child, Tie::lease, Tie::node, Tie::guard}) {
      auto ask = [&]() -> Task<void> {
        Generator<int> g = tied(tie);
        static_cast<void>(co_await g.next());
      };
      std::string what = co_await usage_error_of(ask);
      EXPECT_NE(what.find("co_yield: a generator rests outside of any task"), std::string::npos)
          << static_cast<int>(tie) << ": " << what;
    }
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, AnEmptyOneIsRefused) {
  auto root = [&]() -> Task<void> {
    Generator<int> moved = count_to(1);
    Generator<int> g = std::move(moved);
    auto ask = [&]() -> Task<void> { static_cast<void>(co_await moved.next()); };
    std::string what = co_await usage_error_of(ask);
    EXPECT_NE(what.find("is empty, or was moved from"), std::string::npos) << what;
    std::optional<int> n = co_await g.next();
    EXPECT_EQ(n, 1);
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, ASecondNextAtATimeIsRefused) {
  auto root = [&]() -> Task<void> {
    Event go;
    bool begun = false;
    auto gated = [&]() -> Generator<int> {
      begun = true;
      co_await go.wait();
      co_yield 1;
      co_yield 2;
    };
    Generator<int> g = gated();
    auto ask = [&]() -> Task<void> { static_cast<void>(co_await g.next()); };
    StartedTask<void> first = ask().start_in_current_scope();
    co_await until(begun);
    std::string what = co_await usage_error_of(ask);
    EXPECT_NE(what.find("one at a time, and another is under way"), std::string::npos) << what;
    go.set();
    co_await std::move(first);
    std::optional<int> n = co_await g.next();
    EXPECT_EQ(n, 2);
  };
  run_on(loop, root());
}

// --- Its own end --------------------------------------------------------------------------------

LOOP_TEST(GeneratorTest, DestroyedBeforeItBegins) {
  auto root = [&]() -> Task<void> {
    {
      Generator<int> g = stuck_after(events, 1);
    }
    EXPECT_EQ(events, Events{});
    co_return;
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, DestroyedHalfWayItsLocalsDieInnermostFirst) {
  auto two = [&]() -> Generator<int> {
    Marker outer(events, "outer");
    Marker inner(events, "inner");
    co_yield 1;
    events.push_back("went on");
  };
  auto root = [&]() -> Task<void> {
    {
      Generator<int> g = two();
      static_cast<void>(co_await g.next());
    }
    EXPECT_EQ(events, (Events{"~inner", "~outer"}));
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, AnotherIsAssignedToOneAtRest) {
  auto root = [&]() -> Task<void> {
    Generator<int> g = stuck_after(events, 1);
    static_cast<void>(co_await g.next());
    g = count_to(2);
    EXPECT_EQ(events, Events{"~generator"});
    std::optional<int> n = co_await g.next();
    EXPECT_EQ(n, 1);
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, NestedOnesDieFromTheInside) {
  auto outer = [&]() -> Generator<int> {
    Marker marker(events, "outer");
    Generator<int> inner = stuck_after(events, 9);
    while (std::optional<int> n = co_await inner.next()) co_yield *n;
  };
  auto root = [&]() -> Task<void> {
    {
      Generator<int> g = outer();
      for (int i = 1; i <= 3; ++i) {
        std::optional<int> n = co_await g.next();
        EXPECT_EQ(n, i);
      }
    }
    EXPECT_EQ(events, (Events{"~generator", "~outer"}));
  };
  run_on(loop, root());
}

// --- Cancellation -------------------------------------------------------------------------------

LOOP_TEST(GeneratorTest, CancelledInsideItsFrameIsUnwoundBeforeItsConsumers) {
  bool stuck = false;
  auto root = [&]() -> Task<void> {
    auto consumer = [&]() -> Task<void> {
      Marker marker(events, "consumer");
      Generator<int> g = stuck_after(events, 2, &stuck);
      while (std::optional<int> n = co_await g.next()) events.push_back(std::to_string(*n));
    };
    StartedTask<void> started = consumer().start_in_current_scope();
    co_await until(stuck);
    started.cancel();
    Outcome<void> how = co_await started.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"1", "2", "~generator", "~consumer"}));
}

LOOP_TEST(GeneratorTest, CancelledAtRestItDiesWithItsConsumer) {
  bool rests = false;
  auto root = [&]() -> Task<void> {
    auto consumer = [&]() -> Task<void> {
      Marker marker(events, "consumer");
      Generator<int> g = stuck_after(events, 2);
      static_cast<void>(co_await g.next());
      rests = true;
      co_await suspend_forever();
    };
    StartedTask<void> started = consumer().start_in_current_scope();
    co_await until(rests);
    started.cancel();
    Outcome<void> how = co_await started.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~generator", "~consumer"}));
}

LOOP_TEST(GeneratorTest, NestedOnesAreUnwoundInnermostFirst) {
  bool stuck = false;
  auto outer = [&]() -> Generator<int> {
    Marker marker(events, "outer");
    Generator<int> inner = stuck_after(events, 1, &stuck);
    while (std::optional<int> n = co_await inner.next()) co_yield *n;
  };
  auto root = [&]() -> Task<void> {
    auto consumer = [&]() -> Task<void> {
      Marker marker(events, "consumer");
      Generator<int> g = outer();
      while (co_await g.next()) {
      }
    };
    StartedTask<void> started = consumer().start_in_current_scope();
    co_await until(stuck);
    started.cancel();
    Outcome<void> how = co_await started.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"~generator", "~outer", "~consumer"}));
}

// As `co_await task`: entered although cancelled, and what it gives is delivered (L5).
LOOP_TEST(GeneratorTest, NextIsNoCancelPointOfItsOwn) {
  auto root = [&]() -> Task<void> {
    auto consumer = [&]() -> Task<void> {
      Generator<int> g = count_to(2);
      Scope& scope = co_await current_scope();
      scope.cancel();
      while (std::optional<int> n = co_await g.next()) events.push_back(std::to_string(*n));
      events.push_back("end");
      co_await yield();
      events.push_back("not here");
    };
    StartedTask<void> started = consumer().start_in_current_scope();
    Outcome<void> how = co_await started.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"1", "2", "end"}));
}

LOOP_TEST(GeneratorTest, AWaitInsideIsShieldedWhereTheGeneratorSaysSo) {
  bool begun = false;
  Event go;
  auto shielded = [&]() -> Generator<int> {
    begun = true;
    co_await noncancellable(go.wait());
    co_yield 1;
  };
  auto root = [&]() -> Task<void> {
    auto consumer = [&]() -> Task<void> {
      Generator<int> g = shielded();
      std::optional<int> n = co_await g.next();
      EXPECT_EQ(n, 1);
      events.push_back("got it");
      co_await yield();
      events.push_back("not here");
    };
    StartedTask<void> started = consumer().start_in_current_scope();
    co_await until(begun);
    started.cancel();
    go.set();
    Outcome<void> how = co_await started.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(events, Events{"got it"});
}

// "Nothing" would say that the sequence is complete.
LOOP_TEST(GeneratorTest, AfterACancelledNextAnotherIsRefused) {
  auto root = [&]() -> Task<void> {
    Generator<int> g = stuck_after(events, 1);
    static_cast<void>(co_await g.next());
    auto late = co_await timeout(1ms, g.next());
    EXPECT_FALSE(late);
    EXPECT_EQ(events, Events{"~generator"});
    auto ask = [&]() -> Task<void> { static_cast<void>(co_await g.next()); };
    std::string what = co_await usage_error_of(ask);
    EXPECT_NE(what.find("a next() was cancelled before"), std::string::npos) << what;
  };
  run_on(loop, root());
}

LOOP_TEST(GeneratorTest, InCombinatorsAndWrappers) {
  auto root = [&]() -> Task<void> {
    Generator<int> a = slowly_to(3);
    Generator<int> b = slowly_to(3);
    for (int i = 1; i <= 3; ++i) {
      auto [x, y] = co_await all_of(a.next(), b.next());
      EXPECT_EQ(x, i);
      EXPECT_EQ(y, i);
    }
    Generator<int> c = slowly_to(1);
    auto in_time = co_await timeout(1h, c.next());
    EXPECT_EQ(in_time.value(), 1);
    auto add = [](std::optional<int> n) { return just(n.value_or(41) + 1); };
    int after = co_await (c.next() | then(add));
    EXPECT_EQ(after, 42);

    // The branch that loses is cancelled, and its generator with it.
    Generator<int> stuck = stuck_after(events, 0);
    auto [none, done] = co_await any_of(stuck.next(), yields(2));
    EXPECT_FALSE(none);
    EXPECT_TRUE(done);
    EXPECT_EQ(events, Events{"~generator"});
  };
  run_on(loop, root());
}

// Every way to be consumed × where the generator stands when the consumer is cancelled.
LOOP_TEST(GeneratorTest, CancelProduct) {
  enum class How { in_line, branch, in_a_task, shielded };
  auto steps = [](Events& events, int& live) -> Generator<int> {
    ++live;
    OnExit leaves([&] { --live; });
    for (int i = 1; i <= 3; ++i) {
      co_await yield();
      co_yield i;
    }
    events.push_back("all given");
  };
  auto root = [&]() -> Task<void> {
    for (How how : {How::in_line, How::branch, How::in_a_task, How::shielded}) {
      for (int turns = 0; turns < 16; ++turns) {
        Events events;
        int live = 0;
        int got = 0;
        auto consumer = [&]() -> Task<void> {
          Generator<int> g = steps(events, live);
          auto in_task = [&]() -> Task<std::optional<int>> { co_return co_await g.next(); };
          for (;;) {
            std::optional<int> n;
            switch (how) {
              case How::in_line:
                n = co_await g.next();
                break;
              case How::branch: {
                auto [first] = co_await all_of(g.next());
                n = first;
                break;
              }
              case How::in_a_task:
                n = co_await in_task();
                break;
              case How::shielded:
                n = co_await noncancellable(g.next());
                break;
            }
            if (!n) co_return;
            EXPECT_EQ(*n, ++got);
          }
        };
        StartedTask<void> started = consumer().start_in_current_scope();
        co_await yields(turns);
        started.cancel();
        Outcome<void> ended = co_await started.outcome();
        EXPECT_FALSE(ended.has_error());
        EXPECT_EQ(live, 0) << "its frame is gone";
        if (ended.has_value()) {
          EXPECT_EQ(got, 3);
          EXPECT_EQ(events, Events{"all given"});
        }
        if (turns == 0 && how != How::shielded) {
          EXPECT_TRUE(ended.is_cancelled());
        }
        if (how == How::shielded) {
          EXPECT_TRUE(ended.has_value());
        }
      }
    }
  };
  run_on(loop, root());
}

// --- The tree, and depth ------------------------------------------------------------------------

LOOP_TEST(GeneratorTest, TheTreeShowsItBelowWhoAwaitsIt) {
  bool begun = false;
  auto waits = [&]() -> Generator<int> {
    begun = true;
    co_await annotate("inside", suspend_forever());
    co_yield 1;
  };
  auto root = [&]() -> Task<void> {
    auto consumer = [&]() -> Task<void> {
      Generator<int> g = waits();
      static_cast<void>(co_await awaits_next(g));
    };
    StartedTask<void> started = consumer().start_in_current_scope();
    co_await until(begun);
    const std::string tree = task_tree(co_await current_scope());
    auto outer = tree.find("awaits_next");
    auto inner = tree.find("\"inside\"");
    EXPECT_NE(outer, std::string::npos) << tree;
    EXPECT_NE(inner, std::string::npos) << tree;
    EXPECT_LT(outer, inner) << tree;
  };
  run_on(loop, root());
}

// L10: neither the values nor the nesting use stack.
TEST(GeneratorDepth, AMillionValues) {
  VirtualLoop loop;
  constexpr int kMany = 1'000'000;
  auto root = []() -> Task<void> {
    Generator<int> numbers = count_to(kMany);
    long long sum = 0;
    while (std::optional<int> n = co_await numbers.next()) sum += *n;
    EXPECT_EQ(sum, 500'000'500'000);
  };
  run(loop, root());
}

Generator<int> nested(int depth, bool& stuck) {
  if (depth == 0) {
    co_yield 1;
    co_yield 2;
    stuck = true;
    co_await suspend_forever();
  } else {
    Generator<int> inner = nested(depth - 1, stuck);
    while (std::optional<int> n = co_await inner.next()) co_yield *n;
  }
}
TEST(GeneratorDepth, AHundredThousandNested) {
  VirtualLoop loop;
  constexpr int kDepth = kSanitized ? 10'000 : 100'000;
  auto root = []() -> Task<void> {
    bool stuck = false;
    auto consumer = [&]() -> Task<void> {
      Generator<int> g = nested(kDepth, stuck);
      for (int i = 1; i <= 2; ++i) {
        std::optional<int> n = co_await g.next();
        EXPECT_EQ(n, i);
      }
      static_cast<void>(co_await g.next());
    };
    StartedTask<void> started = consumer().start_in_current_scope();
    co_await until(stuck);
    started.cancel();
    Outcome<void> how = co_await started.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(loop, root());
}

// --- Many loops ---------------------------------------------------------------------------------

TEST(GeneratorThreads, AtRestItGoesFromLoopToLoop) {
  ThreadLoop loop;
  LoopThread others[2];
  auto root = [&]() -> Task<void> {
    Generator<int> g = slowly_to(60);
    int expected = 0;
    auto take_some = [&]() -> Task<void> {
      for (int i = 0; i < 5; ++i) {
        std::optional<int> n = co_await g.next();
        EXPECT_EQ(n, ++expected);
      }
    };
    for (int round = 0; round < 4; ++round) {
      co_await take_some();
      for (LoopThread& other : others) co_await on(other.executor(), take_some());
    }
    EXPECT_EQ(expected, 60);
    auto last = [&]() -> Task<void> {
      std::optional<int> n = co_await g.next();
      EXPECT_FALSE(n);
    };
    co_await on(others[0].executor(), last());
  };
  run(loop, root());
}

// The generator is inside of a wait on another loop when its consumer is cancelled from here.
TEST(GeneratorThreads, CancelledFromAnotherLoop) {
  ThreadLoop loop;
  LoopThread other;
  for (int round = 0; round < 200; ++round) {
    Events events;
    auto consumer = [&]() -> Task<void> {
      Generator<int> g = stuck_after(events, 3);
      while (co_await g.next()) {
      }
    };
    auto root = [&]() -> Task<void> {
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        n.start_on(other.executor(), consumer());
        co_await yields(round % 8);
        co_return cancel;
      };
      co_await with_nursery(body);
    };
    run(loop, root());
    EXPECT_TRUE(events == Events{"~generator"} || events.empty());
  }
}

TEST(GeneratorThreads, ItTakesItsConsumerAlongWithResumeOn) {
  ThreadLoop loop;
  LoopThread other;
  auto root = [&]() -> Task<void> {
    auto wandering = [&]() -> Generator<bool> {
      co_await resume_on(other.executor());
      co_yield other.executor().is_current();
      co_await resume_on(loop);
      co_yield loop.is_current();
    };
    Generator<bool> g = wandering();
    bool there = (co_await g.next()).value();
    EXPECT_TRUE(there);
    EXPECT_TRUE(other.executor().is_current());
    bool back = (co_await g.next()).value();
    EXPECT_TRUE(back);
    EXPECT_TRUE(loop.is_current());
  };
  run(loop, root());
}

TEST(GeneratorDeathTest, DestroyedWhileANextIsUnderWay) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      Events events;
      auto g = std::make_unique<Generator<int>>(stuck_after(events, 0));
      auto ask = [&]() -> Task<void> { static_cast<void>(co_await g->next()); };
      StartedTask<void> started = ask().start_in_current_scope();
      co_await yields(2);
      g.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "neither moved nor destroyed while a next\\(\\) is under way");
}

TEST(GeneratorDeathTest, MovedWhileANextIsUnderWay) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      Events events;
      Generator<int> g = stuck_after(events, 0);
      auto ask = [&]() -> Task<void> { static_cast<void>(co_await g.next()); };
      StartedTask<void> started = ask().start_in_current_scope();
      co_await yields(2);
      Generator<int> moved = std::move(g);
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "neither moved nor destroyed while a next\\(\\) is under way");
}

}  // namespace
