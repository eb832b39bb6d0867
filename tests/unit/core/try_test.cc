// SPDX-License-Identifier: MIT
#include "weft/core/try.h"

#include <memory>
#include <stdexcept>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

struct TryTest : LoopTest<VirtualLoop> {
  Events events;
  auto noting(const char* name) {
    return [this, name]() -> Task<void> {
      co_await yield();
      events.push_back(name);
    };
  }
};

TEST_F(TryTest, AValuePassesAndCleanupRuns) {
  auto root = [&]() -> Task<int> {
    auto body = []() -> Task<int> {
      co_await yield();
      co_return 4;
    };
    auto cleanup = noting("cleanup");
    int value = co_await try_(body).finally(cleanup);
    events.push_back("after");
    co_return value;
  };
  EXPECT_EQ(run(loop, root()), 4);
  EXPECT_EQ(events, (Events{"cleanup", "after"}));
}

TEST_F(TryTest, HandlersAreChosenByTypeInOrder) {
  auto root = [&](auto error) -> Task<int> {
    auto body = [=]() -> Task<int> {
      co_await yield();
      throw error;
      co_return 0;
    };
    auto range = [](const std::out_of_range&) -> Task<int> { co_return 1; };
    auto logic = [](std::logic_error& caught) -> Task<int> {
      co_await yield();
      EXPECT_STREQ(caught.what(), "logic");
      co_return 2;
    };
    auto rest = [](const std::exception_ptr&) { return just(3); };
    co_return co_await try_(body).catch_(range).catch_(logic).catch_(rest);
  };
  EXPECT_EQ(run(loop, root(std::out_of_range("range"))), 1);
  EXPECT_EQ(run(loop, root(std::logic_error("logic"))), 2);
  EXPECT_EQ(run(loop, root(17)), 3);
}

TEST_F(TryTest, AnUnmatchedErrorPassesAfterCleanup) {
  auto root = [&]() -> Task<void> {
    auto body = [] { return throws_after(1, "body"); };
    auto logic = [](const std::logic_error&) { return noop(); };
    auto cleanup = noting("cleanup");
    co_await try_(body).catch_(logic).finally(cleanup);
  };
  EXPECT_THROW(run(loop, root()), std::runtime_error);
  EXPECT_EQ(events, (Events{"cleanup"}));
}

TEST_F(TryTest, AHandlersErrorReplacesTheFirstWhichIsKept) {
  auto root = [&]() -> Task<void> {
    auto body = [] { return throws_after(1, "body"); };
    auto handler = [](const std::runtime_error&) { return throws_after(1, "handler"); };
    auto cleanup = [] { return throws_after(1, "cleanup"); };
    try {
      co_await try_(body).catch_(handler).finally(cleanup);
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "cleanup");
      EXPECT_GE(other_errors().count, 1u);
    }
  };
  run(loop, root());
}

TEST_F(TryTest, PartsThatThrowWhenCalledAreErrorsToo) {
  auto root = [&]() -> Task<void> {
    auto body = []() -> Task<void> { throw std::logic_error("called"); };
    auto not_a_task = [] {
      throw std::logic_error("called");
      return noop();
    };
    int caught = 0;
    auto handler = [&](const std::logic_error&) {
      ++caught;
      return noop();
    };
    co_await try_(body).catch_(handler);
    co_await try_(not_a_task).catch_(handler);
    EXPECT_EQ(caught, 2);
  };
  run(loop, root());
}

TEST_F(TryTest, MoveOnlyAndReferenceResultsPass) {
  auto root = []() -> Task<void> {
    int number = 0;
    auto pointer = [] { return just(std::make_unique<int>(6)); };
    auto reference = [&]() -> Task<int&> { co_return number; };
    std::unique_ptr<int> moved = co_await try_(pointer);
    EXPECT_EQ(*moved, 6);
    int& same = co_await try_(reference);
    EXPECT_EQ(&same, &number);
  };
  run(loop, root());
}

TEST_F(TryTest, CancellationIsNoExceptionAndCleanupIsShielded) {
  auto subject = [&]() -> Task<void> {
    auto body = [&] { return parked_with(events, "body"); };
    auto handler = [&](const std::exception_ptr&) {
      events.push_back("handler");
      return noop();
    };
    auto cleanup = [&]() -> Task<void> {
      co_await sleep_for(1ms);
      events.push_back("cleaned");
    };
    co_await try_(body).catch_(handler).finally(cleanup);
    events.push_back("not reached");
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = subject().start_in_current_scope();
    co_await yield();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(loop, root());
  EXPECT_EQ(events, (Events{"~body", "cleaned"}));
  EXPECT_EQ(loop.elapsed(), 1ms);
}

TEST_F(TryTest, ACleanupThatFailsUnderCancellationIsNotLost) {
  auto subject = []() -> Task<void> {
    auto body = [] { return parked(); };
    auto cleanup = [] { return throws_after(1, "cleanup"); };
    co_await try_(body).finally(cleanup);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = subject().start_in_current_scope();
    co_await yield();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.has_error());
  };
  run(loop, root());
}

TEST_F(TryTest, EveryPartIsKeptAliveToTheEnd) {
  auto root = []() -> Task<int> {
    auto held = std::make_shared<int>(5);
    auto body = [held]() -> Task<int> {
      co_await yield();
      co_return *held;
    };
    auto cleanup = [held]() -> Task<void> {
      co_await yield();
      EXPECT_GE(held.use_count(), 3);
    };
    auto whole = try_(body).finally(cleanup);
    co_return co_await std::move(whole);
  };
  EXPECT_EQ(run(loop, root()), 5);
}

}  // namespace
