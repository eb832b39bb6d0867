// SPDX-License-Identifier: MIT
#include "weft/core/combinators.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

// --- The static answers -------------------------------------------------------------------------

using Forever = decltype(suspend_forever());
using Sleep = decltype(sleep_for(1s));

template <class... A>
using All = decltype(all_of(std::declval<A>()...));
template <class... A>
using Any = decltype(any_of(std::declval<A>()...));
template <class... A>
using Most = decltype(most_of(std::declval<A>()...));

static_assert(Skippable<Sleep> && Abortable<Sleep>);
static_assert(Skippable<All<Forever, Sleep>> && Abortable<All<Forever, Sleep>>);
static_assert(Skippable<Any<Forever, Sleep>> && Abortable<Any<Forever, Sleep>>);
static_assert(!MayResumeAfterCancel<All<Forever, Sleep>>);
static_assert(!Skippable<All<Forever, Task<int>>> && !Abortable<All<Forever, Task<int>>>,
              "a Task is entered although it is cancelled");
static_assert(!Abortable<All<Forever, std::suspend_always>>, "a plain awaitable is waited for");
static_assert(Skippable<Most<Forever, Sleep>> && !Abortable<Most<Forever, Sleep>>,
              "most_of keeps what has finished");
static_assert(Skippable<All<Any<Forever, Sleep>, Sleep>> &&
                  Abortable<All<Any<Forever, Sleep>, Sleep>>,
              "and so through several layers");
static_assert(!Awaitable<int> && Awaitable<All<>>);

struct CombinatorsTest : LoopTest<VirtualLoop> {};

Task<int> after(std::chrono::nanoseconds duration, int value) {
  co_await sleep_for(duration);
  co_return value;
}
Task<int> fails_after(std::chrono::nanoseconds duration, const char* what) {
  co_await sleep_for(duration);
  throw std::runtime_error(what);
}

// --- Values -------------------------------------------------------------------------------------

TEST_F(CombinatorsTest, AllOfGivesATupleOfAllResults) {
  auto root = []() -> Task<void> {
    int number = 5;
    auto reference = [&]() -> Task<int&> { co_return number; };
    auto pointer = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); };
    auto [a, b, c, d, e] =
        co_await all_of(after(2ms, 1), yields(2), reference(), pointer(), just(4));
    static_assert(std::same_as<decltype(b), std::monostate>);
    static_assert(std::same_as<decltype(c), int*>);
    EXPECT_EQ(a, 1);
    EXPECT_EQ(c, &number);
    EXPECT_EQ(*d, 3);
    EXPECT_EQ(e, 4);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 2ms);
}

// Three arguments of a type that belongs to std, too, and <algorithm>: std::all_of(first, last, predicate)
// is another function of that name. Failed to compile.
TEST_F(CombinatorsTest, WhatStdCallsTheSameIsNotMeant) {
  auto root = []() -> Task<void> {
    auto words = []() -> Task<std::string> { co_return "w"; };
    auto numbers = []() -> Task<std::vector<int>> { co_return std::vector{1}; };
    auto [a, b, c] = co_await all_of(words(), words(), words());
    EXPECT_EQ(a + b + c, "www");
    Task<std::vector<int>> x = numbers(), y = numbers(), z = numbers();
    auto [d, e, f] = co_await any_of(std::move(x), std::move(y), std::move(z));
    EXPECT_TRUE(d && e && f);
    auto [g, h, i] = co_await most_of(words(), words(), words());
    EXPECT_TRUE(g && h && i);
  };
  run(loop, root());
}

TEST_F(CombinatorsTest, AllOfRunsItsBranchesAtTheSameTime) {
  auto root = []() -> Task<void> {
    auto [a, b, c] = co_await all_of(after(3ms, 1), after(2ms, 2), after(1ms, 3));
    EXPECT_EQ(a * 100 + b * 10 + c, 123);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 3ms);
}

TEST_F(CombinatorsTest, AnyOfEndsWithTheFirstResult) {
  auto root = []() -> Task<void> {
    auto [a, b, c] = co_await any_of(after(1s, 1), after(2ms, 2), suspend_forever());
    EXPECT_FALSE(a);
    EXPECT_EQ(b, 2);
    EXPECT_FALSE(c);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 2ms);
}

TEST_F(CombinatorsTest, AnyOfMayHaveMoreThanOneResult) {
  auto root = []() -> Task<void> {
    auto [a, b] = co_await any_of(just(1), just(2));
    EXPECT_EQ(a, 1);
    EXPECT_EQ(b, 2);
  };
  run(loop, root());
}

TEST_F(CombinatorsTest, AnyOfSaysWhichWasTheFirst) {
  auto root = []() -> Task<void> {
    auto second = co_await any_of(after(1s, 1), after(2ms, 2), suspend_forever());
    EXPECT_EQ(second.index(), 1u);
    EXPECT_EQ(std::get<1>(second), 2);
    auto both = co_await any_of(just(1), just(2));
    EXPECT_EQ(both.index(), 0u);
    EXPECT_EQ(both, (std::tuple<std::optional<int>, std::optional<int>>(1, 2)));
    // The first in argument order has a value, too, and came later.
    auto late = co_await any_of(noncancellable(after(5ms, 1)), after(2ms, 2));
    EXPECT_EQ(late.index(), 1u);
    auto [a, b] = std::move(late);
    EXPECT_EQ(a, 1);
    EXPECT_EQ(b, 2);
  };
  run(loop, root());
}

TEST_F(CombinatorsTest, AnyOfARangeSaysWhichWasTheFirst) {
  auto root = []() -> Task<void> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 4; ++i) tasks.push_back(after(std::chrono::milliseconds(4 - i), i));
    auto last = co_await any_of(std::move(tasks));
    EXPECT_EQ(last.index(), 3u);
    EXPECT_EQ(last[last.index()], 3);
    auto none = co_await any_of(std::vector<Task<int>>());
    EXPECT_EQ(none.index(), 0u);
  };
  run(loop, root());
}

// Who ends cancelled without having been asked has no value, and does not end the race.
TEST_F(CombinatorsTest, AnyOfDoesNotCallWhoWasCancelledTheFirst) {
  auto gives_up = []() -> Task<int> {
    Scope& scope = co_await current_scope();
    scope.cancel();
    co_await yield();
    co_return 1;
  };
  auto root = [&]() -> Task<void> {
    auto first = co_await any_of(gives_up(), after(2ms, 2));
    EXPECT_EQ(first.index(), 1u);
  };
  run(loop, root());
}

TEST_F(CombinatorsTest, AnyOfResultsThatMayFailSaysWhichWasTheFirst) {
  using Maybe = std::expected<int, std::string>;
  auto maybe = [](std::chrono::nanoseconds duration, Maybe value) -> Task<Maybe> {
    co_await sleep_for(duration);
    co_return value;
  };
  auto root = [&]() -> Task<void> {
    auto first = co_await any_of(maybe(2ms, 1), maybe(1ms, 2));
    EXPECT_TRUE(first.has_value());
    EXPECT_EQ(first->index(), 1u);
    EXPECT_EQ(std::get<1>(*first), 2);
  };
  run(loop, root());
}

TEST_F(CombinatorsTest, MostOfWaitsForAll) {
  auto root = []() -> Task<void> {
    auto [a, b] = co_await most_of(after(2ms, 1), after(1ms, 2));
    EXPECT_EQ(a, 1);
    EXPECT_EQ(b, 2);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 2ms);
}

TEST_F(CombinatorsTest, BranchesStartInArgumentOrder) {
  Events events;
  auto branch = [&](const char* name) -> Task<void> {
    events.push_back(name);
    co_return;
  };
  auto root = [&]() -> Task<void> { co_await all_of(branch("a"), branch("b"), branch("c")); };
  run(loop, root());
  EXPECT_EQ(events, (Events{"a", "b", "c"}));
}

TEST_F(CombinatorsTest, AnEmptyPackIsReadyAtOnce) {
  auto root = []() -> Task<void> {
    std::tuple<> none = co_await all_of();
    static_cast<void>(none);
  };
  run(loop, root());
}

// --- Ranges -------------------------------------------------------------------------------------

TEST_F(CombinatorsTest, RangesGiveVectors) {
  auto root = []() -> Task<void> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 4; ++i) tasks.push_back(after(std::chrono::milliseconds(4 - i), i));
    std::vector<int> values = co_await all_of(std::move(tasks));
    EXPECT_EQ(values, (std::vector<int>{0, 1, 2, 3}));

    std::deque<Task<int>> more;
    more.push_back(after(1s, 1));
    more.push_back(after(1ms, 2));
    auto first = co_await any_of(more);
    EXPECT_EQ(first, (std::vector<std::optional<int>>{std::nullopt, 2}));
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 5ms);
}

TEST_F(CombinatorsTest, EmptyRangesAreReadyAtOnce) {
  auto root = []() -> Task<void> {
    auto all = co_await all_of(std::vector<Task<int>>());
    auto any = co_await any_of(std::vector<Task<int>>());
    auto most = co_await most_of(std::vector<Task<void>>());
    EXPECT_TRUE(all.empty() && any.empty() && most.empty());
  };
  run(loop, root());
}

TEST_F(CombinatorsTest, RangesOfCallablesKeepThemAlive) {
  auto root = []() -> Task<int> {
    auto make = [](int n) {
      return [held = std::make_shared<int>(n)]() -> Task<int> {
        co_await yield();
        co_return *held;
      };
    };
    std::vector<decltype(make(0))> callables;
    callables.push_back(make(1));
    callables.push_back(make(2));
    auto description = all_of(std::move(callables));
    std::vector<int> values = co_await std::move(description);
    co_return values[0] + values[1];
  };
  EXPECT_EQ(run(loop, root()), 3);
}

// --- Errors -------------------------------------------------------------------------------------

TEST_F(CombinatorsTest, TheFirstErrorCancelsTheRestAndTheOthersAreKept) {
  Events events;
  auto stubborn = [&]() -> Task<void> {
    Marker marker(events, "stubborn");
    try {
      co_await noncancellable(sleep_for(2ms));
    } catch (...) {
      ADD_FAILURE();
    }
    throw std::runtime_error("second");
  };
  auto root = [&]() -> Task<void> {
    try {
      co_await all_of(parked_with(events, "parked"), fails_after(1ms, "first"), stubborn);
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "first");
      EXPECT_EQ(other_errors().count, 1u);
    }
    events.push_back("caught");
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"~parked", "~stubborn", "caught"}));
  EXPECT_EQ(loop.elapsed(), 2ms);
}

TEST_F(CombinatorsTest, AFailureBeatsAValueInAnyOf) {
  auto fails_when_cancelled = []() -> Task<void> {
    try {
      co_await noncancellable(sleep_for(2ms));
    } catch (...) {
      ADD_FAILURE();
    }
    throw std::runtime_error("late");
  };
  auto root = [&]() -> Task<void> { co_await any_of(after(1ms, 1), fails_when_cancelled); };
  EXPECT_THROW(run(loop, root()), std::runtime_error);
}

TEST_F(CombinatorsTest, AThrowingAwaitSuspendIsTheBranchsError) {
  struct Thrower {
    static bool await_ready() noexcept { return false; }
    static void await_suspend(std::coroutine_handle<>) { throw std::runtime_error("suspend"); }
    static void await_resume() noexcept {}
  };
  auto root = []() -> Task<void> { co_await all_of(parked(), Thrower(), parked()); };
  EXPECT_THROW(run(loop, root()), std::runtime_error);
}

using Expected = std::expected<int, std::string>;
Task<Expected> expected_after(std::chrono::nanoseconds duration, Expected value) {
  co_await sleep_for(duration);
  co_return value;
}

TEST_F(CombinatorsTest, ExpectedErrorsCancelLikeExceptions) {
  auto root = []() -> Task<void> {
    std::expected<std::tuple<int, int>, std::string> good =
        co_await all_of(expected_after(1ms, 1), expected_after(2ms, 2));
    EXPECT_EQ(good, std::tuple(1, 2));
    auto bad = co_await all_of(expected_after(1h, 1),
                               expected_after(1ms, std::unexpected<std::string>("no")));
    EXPECT_EQ(bad.error(), "no");
    auto any = co_await any_of(expected_after(1h, 1),
                               expected_after(1ms, std::unexpected<std::string>("none")));
    EXPECT_EQ(any.error(), "none");
    std::vector<Task<Expected>> tasks;
    tasks.push_back(expected_after(1ms, std::unexpected<std::string>("range")));
    tasks.push_back(expected_after(1h, 3));
    auto range = co_await all_of(std::move(tasks));
    EXPECT_EQ(range.error(), "range");
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), 5ms);
}

TEST_F(CombinatorsTest, MixedResultsTakeExpectedAsAValue) {
  auto root = []() -> Task<void> {
    auto [a, b] =
        co_await all_of(expected_after(1ms, std::unexpected<std::string>("no")), after(2ms, 2));
    EXPECT_FALSE(a.has_value());
    EXPECT_EQ(b, 2);
  };
  run(loop, root());
}

// --- Cancellation -------------------------------------------------------------------------------

TEST_F(CombinatorsTest, CancelledAllOfDropsAndMostOfKeepsWhatHasFinished) {
  bool after_all = false;
  std::optional<int> kept;
  auto all = [&]() -> Task<void> {
    co_await all_of(after(1ms, 1), suspend_forever());
    after_all = true;
  };
  auto most = [&]() -> Task<void> {
    auto [a, b] = co_await most_of(after(1ms, 1), suspend_forever());
    kept = a;
    EXPECT_FALSE(b);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> a = all().start_in_current_scope();
    StartedTask<void> b = most().start_in_current_scope();
    co_await sleep_for(2ms);
    a.cancel();
    b.cancel();
    Outcome<void> how_a = co_await a.outcome();
    Outcome<void> how_b = co_await b.outcome();
    EXPECT_TRUE(how_a.is_cancelled());
    EXPECT_TRUE(how_b.has_value());
  };
  run(loop, root());
  EXPECT_FALSE(after_all);
  EXPECT_EQ(kept, 1);
}

TEST_F(CombinatorsTest, TheLosersReasonIsTheLostRace) {
  auto loser = []() -> Task<void> { co_await noncancellable(sleep_for(3ms)); };
  auto race = [&]() -> Task<void> { co_await any_of(after(1ms, 1), loser); };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> racing = race().start(scope);
    co_await sleep_for(2ms);
    EXPECT_NE(task_tree(scope).find(reasons::lost_race.what), std::string::npos)
        << task_tree(scope);
    co_await std::move(racing);
  };
  run(loop, root());
}

TEST_F(CombinatorsTest, ABranchMayEndAnotherWhileTheyStart) {
  Gate gate;
  struct Fires {
    explicit Fires(Gate& g) : gate(g) {}
    Gate& gate;
    static bool await_ready() noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) {
      gate.fire();
      return false;
    }
    static void await_resume() noexcept {}
  };
  auto root = [&]() -> Task<void> {
    Fires fires(gate);
    co_await all_of(gate, std::move(fires));  // the gate by reference: it cannot be copied
  };
  run(loop, root());
}

}  // namespace
