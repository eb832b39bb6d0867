// SPDX-License-Identifier: MIT
#include "weft/core/shield.h"

#include <memory>
#include <stdexcept>

#include "support/ending.h"
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

using Forever = decltype(suspend_forever());
static_assert(!Skippable<decltype(noncancellable(suspend_forever()))>);
static_assert(!Abortable<decltype(noncancellable(suspend_forever()))>);
static_assert(MayResumeAfterCancel<decltype(noncancellable(parked()))>);
static_assert(Skippable<decltype(disposable(suspend_forever()))> &&
              Abortable<decltype(disposable(suspend_forever()))>);
static_assert(!MayResumeAfterCancel<decltype(disposable(parked()))>);
static_assert(!Skippable<decltype(until_cancelled_and(noop()))>);
static_assert(Skippable<decltype(annotate("a", suspend_forever()))> &&
              Abortable<decltype(annotate("a", annotate("b", suspend_forever())))>);

struct ShieldTest : LoopTest<VirtualLoop> {
  Events events;
  // Runs the subject, cancels it at 1 ms, and says how it ended.
  template <class Fn>
  Outcome<void> cancelled(Fn subject) {
    return cancelled_midway(loop, subject);
  }
};

TEST_F(ShieldTest, NoncancellableDeliversAndCancellationStrikesNext) {
  auto subject = [&]() -> Task<void> {
    auto inside = [&]() -> Task<int> {
      Scope& scope = co_await current_scope();
      co_await sleep_for(2ms);
      EXPECT_FALSE(scope.is_cancelled()) << "a clean word";
      co_return 5;
    };
    int value = co_await noncancellable(inside);
    events.push_back(std::to_string(value));
    co_await yield();
    events.push_back("not reached");
  };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
  EXPECT_EQ(events, (Events{"5"}));
  EXPECT_EQ(loop.elapsed(), 2ms);
}

TEST_F(ShieldTest, NoncancellablePassesReferencesMoveOnlyAndErrors) {
  auto root = []() -> Task<void> {
    int number = 0;
    auto reference = [&]() -> Task<int&> { co_return number; };
    int& same = co_await noncancellable(reference);
    EXPECT_EQ(&same, &number);
    auto moved = co_await noncancellable(just(std::make_unique<int>(1)));
    EXPECT_EQ(*moved, 1);
    EXPECT_THROW(co_await noncancellable(throws_after(1, "inside")), std::runtime_error);
  };
  run(loop, root());
}

TEST_F(ShieldTest, NoncancellableInACancelledTaskStillRuns) {
  auto subject = [&]() -> Task<void> {
    auto guarded = [&]() -> Task<void> {
      auto guard = co_await ignore_cancellation();
      co_await sleep_for(2ms);
    };
    co_await guarded();
    co_await noncancellable(sleep_for(1ms));
    events.push_back("ran");
    co_await yield();
    events.push_back("not reached");
  };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
  EXPECT_EQ(events, (Events{"ran"}));
  EXPECT_EQ(loop.elapsed(), 3ms);
}

TEST_F(ShieldTest, DisposableDropsAResultThatComesAfterTheCancel) {
  auto stubborn = []() -> Task<int> {
    co_await noncancellable(sleep_for(2ms));
    co_return 1;
  };
  auto kept = [&]() -> Task<void> {
    co_await stubborn();
    events.push_back("kept");
  };
  auto dropped = [&]() -> Task<void> {
    co_await disposable(stubborn());
    events.push_back("not reached");
  };
  EXPECT_TRUE(cancelled(kept).has_value());
  EXPECT_TRUE(cancelled(dropped).is_cancelled());
  EXPECT_EQ(events, (Events{"kept"}));
}

TEST_F(ShieldTest, AnErrorThatDisposableDropsIsLogged) {
  LogCapture log;
  auto stubborn = []() -> Task<int> {
    co_await noncancellable(sleep_for(2ms));
    throw std::runtime_error("dropped");
  };
  auto subject = [&]() -> Task<void> { co_await disposable(stubborn()); };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
  std::vector<std::string> lines = log.take();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("dropped"), std::string::npos);
}

TEST_F(ShieldTest, UntilCancelledAndRunsItsGoodbyeShielded) {
  auto goodbye = [&]() -> Task<void> {
    co_await sleep_for(3ms);
    events.push_back("goodbye");
  };
  auto subject = [&]() -> Task<void> {
    co_await until_cancelled_and(goodbye);
    events.push_back("not reached");
  };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
  EXPECT_EQ(events, (Events{"goodbye"}));
  EXPECT_EQ(loop.elapsed(), 4ms);
}

TEST_F(ShieldTest, UntilCancelledAndPassesItsGoodbyesError) {
  auto subject = []() -> Task<void> { co_await until_cancelled_and(throws_after(1, "goodbye")); };
  EXPECT_TRUE(cancelled(subject).has_error());
}

TEST_F(ShieldTest, UntilCancelledAndInACancelledTaskBeginsAtOnce) {
  auto subject = [&]() -> Task<void> {
    co_await noncancellable(sleep_for(2ms));
    auto goodbye = [&]() -> Task<void> {
      events.push_back("goodbye");
      co_return;
    };
    co_await until_cancelled_and(goodbye);
    events.push_back("not reached");
  };
  EXPECT_TRUE(cancelled(subject).is_cancelled());
  EXPECT_EQ(events, (Events{"goodbye"}));
}

TEST_F(ShieldTest, AnnotateNamesTheWaitInTheTree) {
  auto root = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto subject = []() -> Task<int> { co_return co_await annotate("my name", returns(2)); };
    auto waits = []() -> Task<void> { co_await annotate("my name", suspend_forever()); };
    int value = co_await subject();
    EXPECT_EQ(value, 2);
    StartedTask<void> s = waits().start(scope);
    co_await yield();
    EXPECT_NE(task_tree(scope).find("my name"), std::string::npos) << task_tree(scope);
  };
  run(loop, root());
}

}  // namespace
