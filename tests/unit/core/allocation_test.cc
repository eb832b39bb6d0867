// SPDX-License-Identifier: MIT
// L11: no allocation but frames. Counted after a warm-up, on the thread that runs the loop.
#include <cstdint>

#include "support/counted_allocations.h"
#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;

struct AllocationTest : EachLoopTest {};

constexpr int kWarmUp = 8;
constexpr int kRounds = 100;

struct Counts {
  std::uint64_t news = 0;
  std::uint64_t blocks = 0;
};

// Runs `round` until it is warm, then counts what kRounds of it take. `round` is a callable that
// returns a Task.
template <class Fn>
Task<Counts> measure(Fn& round) {
  for (int i = 0; i < kWarmUp; ++i) co_await round();
  CountedAllocations counted;
  for (int i = 0; i < kRounds; ++i) co_await round();
  Counts counts;
  counts.news = counted.news();
  counts.blocks = counted.blocks();
  co_return counts;
}

// At most this many frames a round: the round's own, if it is not elided, and what it needs.
#define EXPECT_FRAMES_ONLY(counts, blocks_per_round)                                  \
  do {                                                                                \
    Counts seen = (counts);                                                           \
    EXPECT_EQ(seen.news, 0u);                                                         \
    EXPECT_LE(seen.blocks, static_cast<std::uint64_t>((blocks_per_round) * kRounds)); \
  } while (false)

Task<int> child(int value) { co_return value; }
Task<void> parks() { co_await suspend_forever(); }

LOOP_TEST(AllocationTest, AwaitingTakesItsFramesOnly) {
  auto round = []() -> Task<void> {
    static_cast<void>(co_await child(1));
    co_await yield();
    static_cast<void>(co_await just(2));
    co_await noop();
    co_await finish_if_cancelled();
    Scope& scope = co_await current_scope();
    static_cast<void>(scope);
  };
  EXPECT_FRAMES_ONLY(run_on(loop, measure(round)), 2);
}

LOOP_TEST(AllocationTest, AForeignAwaiterTakesNothing) {
  auto round = []() -> Task<void> {
    struct Inline {
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> handle) { handle.resume(); }
      void await_resume() {}
    };
    co_await Inline();
  };
  Counts seen = run_on(loop, measure(round));
#ifdef WEFT_AWAITABLE_STATE_DEBUG  // one record a wait, for the quarantine
  EXPECT_EQ(seen.news, kSanitized ? 0u : std::uint64_t{kRounds});
#else
  EXPECT_EQ(seen.news, 0u);
#endif
  EXPECT_LE(seen.blocks, std::uint64_t{kRounds});
}

LOOP_TEST(AllocationTest, AStartedTaskIsOneBlock) {
  auto round = []() -> Task<void> {
    StartedTask<int> s = child(1).start_in_current_scope();
    CancelHandle handle = s.cancel_handle();
    static_cast<void>(co_await std::move(s));
  };
  EXPECT_FRAMES_ONLY(run_on(loop, measure(round)), 2);
}

LOOP_TEST(AllocationTest, CancellingTakesNothing) {
  auto round = []() -> Task<void> {
    StartedTask<void> s = parks().start_immediate_in_current_scope();
    s.cancel();
    static_cast<void>(co_await s.outcome());
  };
  EXPECT_FRAMES_ONLY(run_on(loop, measure(round)), 2);
}

LOOP_TEST(AllocationTest, HooksLeasesAndGuardsTakeNothing) {
  auto round = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto nothing = [] {};
    CancelHook hook(scope, nothing);
    PromiseChildLease lease = scope.lease();
    PromiseChildLease copy = lease;
    auto guard = co_await ignore_cancellation();
    co_await yield();
  };
  EXPECT_FRAMES_ONLY(run_on(loop, measure(round)), 1);
}

LOOP_TEST(AllocationTest, ANurserysBookkeepingTakesNothing) {
  auto round = []() -> Task<void> {
    auto body = [](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 5; ++i) n.start(parks());
      co_await yield();
      n.cancel();
      co_return join;
    };
    co_await with_nursery(body);
  };
  EXPECT_FRAMES_ONLY(run_on(loop, measure(round)), 7);  // the round, the body, five children
}

LOOP_TEST(AllocationTest, StartingACapturingLambdaTakesAtMostTwoBlocks) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      int sum = 0;
      auto start_one = [&](int i) {
        n.start([&sum, i]() -> Task<void> {
          sum += i;
          co_await yield();
        });
      };
      for (int i = 0; i < kWarmUp; ++i) start_one(i);
      co_await yields(3);
      CountedAllocations counted;
      for (int i = 0; i < kRounds; ++i) start_one(i);
      EXPECT_LE(counted.blocks(), 2u * kRounds);
      for (int i = 0; i < 3; ++i) co_await yield();
      EXPECT_LE(counted.blocks(), 2u * kRounds);
      EXPECT_EQ(counted.news(), 0u);
      co_return join;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
}

LOOP_TEST(AllocationTest, TheCounterCounts) {
  CountedAllocations counted;
  void* block = ::operator new(8);
  ::operator delete(block);
  EXPECT_EQ(counted.news(), kSanitized ? 0u : 1u);
  Task<void> task = parks();
  EXPECT_EQ(counted.blocks(), 1u);
}

}  // namespace
