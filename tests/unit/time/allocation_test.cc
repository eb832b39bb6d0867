// SPDX-License-Identifier: MIT
// L11 for combinators and timers: no global operator new, and no pool block but the frames of the
// tasks themselves. Cancelling each costs nothing either.
#include <gtest/gtest.h>

#include "support/counted_allocations.h"
#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

constexpr int kWarmUp = 4;
constexpr int kRounds = 50;

// Called through a pointer, so that clang does not elide them where they are awaited: the count is exact.
Task<int> returns_later() {
  co_await yield();
  co_return 1;
}
Task<int> (*const volatile child)() = returns_later;

struct CombinatorAllocationTest : LoopTest<VirtualLoop> {
  // Expects `frames` blocks a round beside the round's own.
  template <class Fn>
  void expect_frames_only(Fn round, int frames) {
    auto measured = [&]() -> Task<void> {
      for (int i = 0; i < kWarmUp; ++i) co_await round();
      CountedAllocations counted;
      for (int i = 0; i < kRounds; ++i) co_await round();
      EXPECT_EQ(counted.news(), 0u);
      EXPECT_LE(counted.blocks(), static_cast<std::uint64_t>((frames + 1) * kRounds));
    };
    run(loop, measured());
  }
  // The same for a subject that is started, and cancelled when it waits: two more, for the started
  // task and, inside it, the subject.
  template <class Fn>
  void expect_cancel_is_free(Fn subject, int frames) {
    auto round = [&]() -> Task<void> {
      StartedTask<void> s = subject().start_in_current_scope();
      co_await yield();
      co_await yield();
      s.cancel();
      Outcome<void> how = co_await s.outcome();
      EXPECT_TRUE(how.is_cancelled());
    };
    expect_frames_only(round, frames + 1);
  }
};

TEST_F(CombinatorAllocationTest, Sleep) {
  auto subject = []() -> Task<void> { co_await sleep_for(1ms); };
  expect_frames_only(subject, 0);
  expect_cancel_is_free(subject, 0);
}

TEST_F(CombinatorAllocationTest, Timeout) {
  auto leaf = []() -> Task<void> { static_cast<void>(co_await timeout(1ms, suspend_forever())); };
  auto task = []() -> Task<void> { static_cast<void>(co_await timeout(1ms, child())); };
  expect_frames_only(leaf, 0);
  expect_frames_only(task, 1);
  expect_cancel_is_free(leaf, 0);
}

TEST_F(CombinatorAllocationTest, AnyOf) {
  auto leaf = []() -> Task<void> { co_await any_of(sleep_for(1ms), suspend_forever()); };
  auto task = []() -> Task<void> { co_await any_of(child(), child(), sleep_for(1h)); };
  auto stays = []() -> Task<void> { co_await any_of(parked(), sleep_for(1h)); };
  expect_frames_only(leaf, 0);
  expect_frames_only(task, 2);
  expect_cancel_is_free(stays, 1);
}

TEST_F(CombinatorAllocationTest, AllOfAndMostOf) {
  auto all = []() -> Task<void> { co_await all_of(child(), sleep_for(1ms), child()); };
  auto most = []() -> Task<void> { co_await most_of(child(), yield()); };
  auto stays = []() -> Task<void> { co_await all_of(parked(), suspend_forever()); };
  expect_frames_only(all, 2);
  expect_frames_only(most, 1);
  expect_cancel_is_free(stays, 1);
}

TEST_F(CombinatorAllocationTest, ThenTryWithAndShields) {
  auto next = [](int) { return yield(); };
  auto body = [] { return child(); };
  auto last = [] { return yield(); };
  auto subject = [&]() -> Task<void> {
    co_await (child() | then(next));
    co_await try_(body).finally(last);
    co_await with(suspend_forever(), child());
    co_await noncancellable(child());
    co_await disposable(annotate("name", child()));
  };
  expect_frames_only(subject, 5);
  auto stays = [&]() -> Task<void> {
    auto parks = [] { return suspend_forever(); };
    auto nothing = [] { return noop(); };
    co_await with(suspend_forever(), annotate("name", try_(parks).finally(nothing)));
  };
  expect_cancel_is_free(stays, 0);
}

TEST_F(CombinatorAllocationTest, ARangeTakesOneBlockBesideItsVectors) {
  auto measured = [&]() -> Task<void> {
    for (int i = 0; i < kWarmUp; ++i) {
      std::vector<Task<int>> tasks;
      tasks.reserve(2);
      tasks.push_back(child());
      tasks.push_back(child());
      CountedAllocations counted;
      std::vector<int> values = co_await all_of(std::move(tasks));
      EXPECT_LE(counted.news(), 2u) << "the branches, and the vector of results";
      EXPECT_EQ(counted.blocks(), 0u);
    }
  };
  run(loop, measured());
}

TEST_F(CombinatorAllocationTest, IntervalAndCallbacks) {
  auto init = [](auto done) { done(); };
  auto subject = [&]() -> Task<void> {
    Interval every(1ms);
    static_cast<void>(co_await every.tick());
    co_await until_callback(init);
  };
  expect_frames_only(subject, 0);
}

}  // namespace
