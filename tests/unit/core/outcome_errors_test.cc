// SPDX-License-Identifier: MIT
// L14: the errors beside the first travel with it, into outcomes and across tasks, loops and
// wrappers.
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/ending.h"
#include "support/loop_fixture.h"
#include "weft/core/outcome.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;

struct OutcomeErrorsTest : EachLoopTest {};

static_assert(sizeof(Outcome<void>) == 3 * sizeof(void*), "a pointer more than a lone error");
static_assert(sizeof(Outcome<std::string>) == sizeof(std::string) + sizeof(void*));

Events texts_of(const OtherErrors& others) {
  Events texts;
  for (const std::exception_ptr& other : others.kept) texts.push_back(text_of(other));
  return texts;
}

// "first | other other ... of all"
std::string in_one_line(const std::string& first, const OtherErrors& others) {
  std::string line = first + " |";
  for (const std::string& text : texts_of(others)) line += " " + text;
  return line + " of " + std::to_string(others.count);
}
std::string line_of(const Outcome<void>& how) {
  return how.has_error() ? in_one_line(text_of(how.error()), how.other_errors()) : "no error";
}
template <class A>
Task<std::string> line_caught(A awaitable) {
  try {
    co_await std::move(awaitable);
  } catch (const std::exception& error) {
    co_return in_one_line(error.what(), other_errors());
  }
  co_return "no error";
}

// Fails with `name`0, beside which are `name`1, `name`2 ...
Task<void> fails_manifold(std::string name, int children) {
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    for (int i = 0; i < children; ++i) n.start(throws_after(0, name + std::to_string(i)));
    co_return join;
  };
  co_await with_nursery(body);
}

LOOP_TEST(OutcomeErrorsTest, AnOutcomeHasTheFirstAndTheOthers) {
  auto root = []() -> Task<void> {
    StartedTask<void> s = fails_manifold("e", 5).start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_EQ(line_of(how), "e0 | e1 e2 e3 e4 of 4");
    Outcome<void> copy = how;
    EXPECT_EQ(line_of(copy), "e0 | e1 e2 e3 e4 of 4");
    // Asked again, and awaited after that, it says the same.
    Outcome<void> again = co_await s.outcome();
    EXPECT_EQ(line_of(again), "e0 | e1 e2 e3 e4 of 4");
    std::string line = co_await line_caught(std::move(s));
    EXPECT_EQ(line, "e0 | e1 e2 e3 e4 of 4");
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, BeyondTheBoundTheOthersAreCounted) {
  constexpr int kChildren = 3 * static_cast<int>(kErrorsKept);
  auto root = []() -> Task<void> {
    StartedTask<void> s = fails_manifold("e", kChildren).start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_EQ(how.other_errors().kept.size(), kErrorsKept);
    EXPECT_EQ(how.other_errors().count, std::size_t{kChildren} - 1);
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, ALoneErrorAValueAndACancellationHaveNoOthers) {
  auto root = []() -> Task<void> {
    StartedTask<void> lone = throws_after(0, "lone").start_in_current_scope();
    StartedTask<void> value = yields(1).start_in_current_scope();
    StartedTask<void> cancelled = parked().start_in_current_scope();
    cancelled.cancel();
    Outcome<void> how = co_await lone.outcome();
    EXPECT_EQ(line_of(how), "lone | of 0");
    how = co_await value.outcome();
    EXPECT_EQ(how.other_errors().count, 0u);
    how = co_await cancelled.outcome();
    EXPECT_EQ(how.other_errors().count, 0u);
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, GettingAnOutcomeBringsTheOthersAlong) {
  auto root = []() -> Task<void> {
    StartedTask<void> s = fails_manifold("e", 3).start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    for (int i = 0; i < 20; ++i) {  // many failures between the two
      std::string line = co_await line_caught(fails_manifold("x", 2));
      EXPECT_EQ(line, "x0 | x1 of 1");
    }
    try {
      std::move(how).get();
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(in_one_line(error.what(), other_errors()), "e0 | e1 e2 of 2");
    }
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, TwoFailuresAtOnceKeepTheirOwnOthers) {
  auto root = []() -> Task<void> {
    StartedTask<void> a = fails_manifold("a", 3).start_in_current_scope();
    StartedTask<void> b = fails_manifold("b", 4).start_in_current_scope();
    Outcome<void> how_a = co_await a.outcome();
    Outcome<void> how_b = co_await b.outcome();
    EXPECT_EQ(line_of(how_a), "a0 | a1 a2 of 2");
    EXPECT_EQ(line_of(how_b), "b0 | b1 b2 b3 of 3");
    try {
      std::move(how_a).get();
    } catch (const std::runtime_error& outer) {
      try {
        std::move(how_b).get();
      } catch (const std::runtime_error& inner) {
        EXPECT_EQ(in_one_line(inner.what(), other_errors()), "b0 | b1 b2 b3 of 3");
      }
      EXPECT_EQ(in_one_line(outer.what(), other_errors()), "a0 | a1 a2 of 2");
    }
  };
  run_on(loop, root());
}

// The error stands in its frame while the children are joined, and many others fail meanwhile.
LOOP_TEST(OutcomeErrorsTest, AnErrorThatWaitsForItsScopeKeepsItsOthers) {
  auto noisy = []() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    for (int i = 0; i < 20; ++i) {
      std::string line = co_await line_caught(fails_manifold("x", 2));
      EXPECT_EQ(line, "x0 | x1 of 1");
    }
  };
  auto inner = [&]() -> Task<void> {
    noisy().start_immediate_in_current_scope().detach();
    co_await fails_manifold("e", 4);
  };
  auto outer = [&]() -> Task<void> { co_await inner(); };
  auto root = [&]() -> Task<void> {
    StartedTask<void> first = inner().start_in_current_scope();
    StartedTask<void> in_line = outer().start_in_current_scope();
    Outcome<void> how = co_await first.outcome();
    EXPECT_EQ(line_of(how), "e0 | e1 e2 e3 of 3");
    how = co_await in_line.outcome();
    EXPECT_EQ(line_of(how), "e0 | e1 e2 e3 of 3");
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, ErrorsOfTheScopeItPassesComeAfter) {
  auto failing = [](std::string what) -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(10);
    throw std::runtime_error(what);
  };
  auto parent = [&]() -> Task<void> {
    failing("late").start_immediate_in_current_scope().detach();
    co_await fails_manifold("e", 2);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parent().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_EQ(line_of(how), "e0 | e1 late of 2");
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, AChildHandsItsOthersToItsScope) {
  auto parent = []() -> Task<void> {
    fails_manifold("a", 2).start_in_current_scope().detach();
    fails_manifold("b", 3).start_in_current_scope().detach();
    co_await yields(10);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = parent().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_EQ(line_of(how), "a0 | a1 b0 b1 b2 of 4");
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, ACancelledTaskWhoseChildrenFailedHasTheirErrors) {
  auto failing = [](std::string name) -> Task<void> {
    auto guard = co_await ignore_cancellation();
    co_await yields(3);
    throw std::runtime_error(name);
  };
  auto inner = [&]() -> Task<void> {
    failing("a").start_immediate_in_current_scope().detach();
    failing("b").start_immediate_in_current_scope().detach();
    co_await suspend_forever();
  };
  auto outer = [&]() -> Task<void> { co_await inner(); };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = outer().start_immediate_in_current_scope();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_EQ(line_of(how), "a | b of 1");
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, WrappersPassTheOthersOn) {
  auto pass = [](std::string) -> Task<void> { co_return; };
  auto expected = [](std::string name) -> Task<std::expected<void, int>> {
    co_await fails_manifold(name, 3);
    co_return std::expected<void, int>();
  };
  auto with_ok = [&]() -> Task<std::expected<void, int>> {
    co_await ok(expected("e"));
    co_return std::expected<void, int>();
  };
  auto root = [&]() -> Task<void> {
    auto next = [&]() -> Task<void> { return pass("never"); };
    auto fails = [] { return fails_manifold("e", 3); };
    auto finally = [] { return fails_manifold("f", 2); };
    std::vector<std::string> lines;
    lines.push_back(co_await line_caught(fails_manifold("e", 3) | then(next)));
    lines.push_back(co_await line_caught(with_ok()));
    lines.push_back(co_await line_caught(noncancellable(fails_manifold("e", 3))));
    lines.push_back(co_await line_caught(try_(fails).finally(next)));
    lines.push_back(co_await line_caught(all_of(fails_manifold("e", 3), parked())));
    for (const std::string& line : lines) EXPECT_EQ(line, "e0 | e1 e2 of 2");
    std::string both = co_await line_caught(try_(fails).finally(finally));
    EXPECT_EQ(both, "f0 | f1 e0 e1 e2 of 4");
    both = co_await line_caught(all_of(fails_manifold("a", 2), fails_manifold("b", 2)));
    EXPECT_EQ(both, "a0 | a1 b0 b1 of 3");
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, WhatJoinsAnErrorLaterIsNotInOutcomesReadBefore) {
  auto root = []() -> Task<void> {
    StartedTask<void> s = fails_manifold("a", 2).start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    auto rethrows = [&]() -> Task<void> {
      auto failing = []() -> Task<void> {
        auto guard = co_await ignore_cancellation();
        co_await yields(3);
        throw std::runtime_error("child");
      };
      failing().start_immediate_in_current_scope().detach();
      co_await std::move(s);
    };
    std::string line = co_await line_caught(rethrows());
    EXPECT_EQ(line, "a0 | a1 child of 2");
    EXPECT_EQ(line_of(how), "a0 | a1 of 1");
  };
  run_on(loop, root());
}

// --- One exception object, thrown again and again -----------------------------------------------

const std::exception_ptr& cached_error() {
  static const std::exception_ptr cached = std::make_exception_ptr(std::runtime_error("cached"));
  return cached;
}
Task<void> throws_cached() {
  std::rethrow_exception(cached_error());
  co_return;
}
// Fails with the cached error, beside which is "other", or the same again.
Task<void> fails_cached_and(bool other) {
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(throws_cached());
    n.start(other ? throws_after(0, "other") : throws_cached());
    co_return join;
  };
  co_await with_nursery(body);
}

LOOP_TEST(OutcomeErrorsTest, AnErrorThrownAgainHasNotTheOthersOfTheTimeBefore) {
  auto root = []() -> Task<void> {
    auto swallow = []() -> Task<void> {
      std::string line = co_await line_caught(fails_cached_and(true));
      EXPECT_EQ(line, "cached | other of 1");
      try {
        co_await fails_cached_and(true);
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(in_one_line(error.what(), other_errors()), "cached | other of 1");
      }
    };
    co_await swallow();
    std::string line = co_await line_caught(throws_cached());
    EXPECT_EQ(line, "cached | of 0");

    co_await swallow();
    StartedTask<void> s = throws_cached().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_EQ(line_of(how), "cached | of 0");

    // Both into the same frame.
    try {
      co_await fails_cached_and(true);
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(in_one_line(error.what(), other_errors()), "cached | other of 1");
    }
    try {
      co_await throws_cached();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(in_one_line(error.what(), other_errors()), "cached | of 0");
    }
    try {
      co_await fails_cached_and(true);
    } catch (const std::runtime_error&) {
    }
    try {
      std::move(how).get();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(in_one_line(error.what(), other_errors()), "cached | of 0");
    }
  };
  run_on(loop, root());
}

// A frame may lie where one lay that had caught the same object.
LOOP_TEST(OutcomeErrorsTest, AFrameHasNotTheOthersOfTheOneThatWasInItsPlace) {
  auto swallow_or_throw = [](bool swallow) -> Task<void> {
    if (!swallow) std::rethrow_exception(cached_error());
    try {
      co_await fails_cached_and(true);
    } catch (const std::runtime_error&) {
    }
  };
  auto root = [&]() -> Task<void> {
    for (int i = 0; i < 10; ++i) {
      StartedTask<void> swallows = swallow_or_throw(true).start_in_current_scope();
      co_await std::move(swallows);
      StartedTask<void> throws = swallow_or_throw(false).start_in_current_scope();
      Outcome<void> how = co_await throws.outcome();
      EXPECT_EQ(line_of(how), "cached | of 0");
    }
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, TheOthersOfAnErrorThrownAgainDoNotPileUp) {
  auto root = []() -> Task<void> {
    for (int i = 0; i < 20; ++i) {
      std::string line = co_await line_caught(fails_cached_and(false));
      EXPECT_EQ(line, "cached | cached of 1");
      StartedTask<void> s = fails_cached_and(false).start_in_current_scope();
      Outcome<void> how = co_await s.outcome();
      EXPECT_EQ(line_of(how), "cached | cached of 1");
      line = co_await line_caught(all_of(throws_cached(), throws_cached()));
      EXPECT_EQ(line, "cached | cached of 1");
    }
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, WhoReadsTheOthersAndThrowsOnPassesThemOn) {
  auto rethrows = []() -> Task<void> {
    try {
      co_await fails_manifold("e", 3);
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(in_one_line(error.what(), other_errors()), "e0 | e1 e2 of 2");
      EXPECT_EQ(in_one_line(error.what(), other_errors()), "e0 | e1 e2 of 2");
      throw;
    }
  };
  auto rethrows_later = [&]() -> Task<void> {
    std::exception_ptr caught;
    try {
      co_await rethrows();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(in_one_line(error.what(), other_errors()), "e0 | e1 e2 of 2");
      caught = std::current_exception();
    }
    co_await yields(3);
    std::rethrow_exception(caught);
  };
  auto root = [&]() -> Task<void> {
    std::string line = co_await line_caught(rethrows());
    EXPECT_EQ(line, "e0 | e1 e2 of 2");
    line = co_await line_caught(rethrows_later());
    EXPECT_EQ(line, "e0 | e1 e2 of 2");
    StartedTask<void> s = rethrows_later().start_in_current_scope();
    Outcome<void> how = co_await s.outcome();
    EXPECT_EQ(line_of(how), "e0 | e1 e2 of 2");
    co_await rethrows();
  };
  try {
    run_on(loop, root());
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {  // outside of all tasks
    EXPECT_EQ(in_one_line(error.what(), other_errors()), "e0 | e1 e2 of 2");
  }
}

LOOP_TEST(OutcomeErrorsTest, ARunInsideOfATaskThrowsTheOthersToo) {
  auto rethrows = [&]() -> Task<void> {
    AnyLoop inner(loop.kind());
    try {
      run_on(inner, fails_manifold("e", 3));
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(in_one_line(error.what(), other_errors()), "e0 | e1 e2 of 2");
      throw;
    }
    co_return;
  };
  auto root = [&]() -> Task<void> {
    std::string line = co_await line_caught(rethrows());
    EXPECT_EQ(line, "e0 | e1 e2 of 2");
  };
  run_on(loop, root());
}

LOOP_TEST(OutcomeErrorsTest, AnUnreadOutcomeLogsAllOfThem) {
  LogCapture log;
  auto root = []() -> Task<void> {
    StartedTask<void> s = fails_manifold("e", 3).start_in_current_scope();
    co_await yields(10);
    EXPECT_TRUE(s.is_done());
  };
  run_on(loop, root());
  std::vector<std::string> lines = log.take();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("e0; e1; e2"), std::string::npos) << lines[0];
}

TEST(OutcomeErrorsThreads, TheOthersReachAWaiterOnAnotherLoop) {
  LoopThread other;
  weft::testing::ThreadLoop loop;
  auto root = [&]() -> Task<void> {
    StartedTask<void> asked = fails_manifold("e", 5).start_with_parent_scope(other.lease());
    StartedTask<void> awaited = fails_manifold("f", 3).start_with_parent_scope(other.lease());
    Outcome<void> how = co_await asked.outcome();
    EXPECT_EQ(line_of(how), "e0 | e1 e2 e3 e4 of 4");
    std::string line = co_await line_caught(std::move(awaited));
    EXPECT_EQ(line, "f0 | f1 f2 of 2");
  };
  run_on(loop, root());
}

}  // namespace
