// SPDX-License-Identifier: MIT
#include "weft/run/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

class ParallelTest : public ::testing::TestWithParam<unsigned> {
 protected:
  IOContext ctx{{.workers = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Workers, ParallelTest, ::testing::Values(1u, 2u, 4u));

TEST_P(ParallelTest, EveryElementOnce) {
  for (std::size_t grain : {0, 1, 7, 1000, 100'000}) {
    std::vector<std::atomic<int>> seen(10'000);
    auto count = [](std::atomic<int>& each) { ++each; };
    ctx.run(parallel_for(seen, count, {.grain = grain}));
    for (auto& each : seen) ASSERT_EQ(each, 1);
  }
}

TEST_P(ParallelTest, Numbers) {
  std::atomic<long> sum = 0;
  auto add = [&](int i) { sum += i; };
  ctx.run(parallel_for(1, 101, add));
  EXPECT_EQ(sum, 5050);
  ctx.run(parallel_for(-3, 0, add));
  EXPECT_EQ(sum, 5044);
  ctx.run(parallel_for(5, 5, add));
  ctx.run(parallel_for(5, -5, add));  // none, and not very many
  EXPECT_EQ(sum, 5044);
}

TEST_P(ParallelTest, AnEmptyRange) {
  std::vector<int> none;
  auto fails = [](int) -> int { throw std::logic_error("there is nothing"); };
  ctx.run(parallel_for(none, fails));
  EXPECT_TRUE(ctx.run(parallel_transform(none, fails)).empty());
  EXPECT_EQ(ctx.run(parallel_reduce(none, 17, std::plus<>())), 17);
}

TEST_P(ParallelTest, TasksThatWait) {
  std::atomic<int> done = 0;
  auto wait = [&](int) -> Task<> {
    co_await yield();
    ++done;
  };
  ctx.run(parallel_for(0, 500, wait));
  EXPECT_EQ(done, 500);
}

TEST_P(ParallelTest, TransformKeepsTheOrder) {
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto text = [](int i) { return std::to_string(i); };
  auto slow_text = [](int i) -> Task<std::string> {
    for (int k = 0; k < (i * 7) % 5; ++k) co_await yield();
    co_return std::to_string(i);
  };
  for (std::size_t grain : {0, 1, 33}) {
    auto plain = ctx.run(parallel_transform(numbers, text, {.grain = grain}));
    auto awaited = ctx.run(parallel_transform(numbers, slow_text, {.grain = grain}));
    ASSERT_EQ(plain.size(), 1000u);
    ASSERT_EQ(awaited.size(), 1000u);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(plain[static_cast<std::size_t>(i)], std::to_string(i));
      ASSERT_EQ(awaited[static_cast<std::size_t>(i)], std::to_string(i));
    }
  }
}

struct NoDefault {
  explicit NoDefault(int v) : value(std::make_unique<int>(v)) {}
  std::unique_ptr<int> value;
};

TEST_P(ParallelTest, ResultsNeedNoDefault) {
  auto make = [](int i) { return NoDefault(i); };
  auto made = ctx.run(parallel_transform(std::views::iota(0, 100), make));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(*made[static_cast<std::size_t>(i)].value, i);
  auto odd = [](int i) { return i % 2 == 1; };  // bool: neighbours share a word
  std::vector<bool> odds =
      ctx.run(parallel_transform(std::views::iota(0, 1000), odd, {.grain = 1}));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(odds[static_cast<std::size_t>(i)], i % 2 == 1);
}

TEST_P(ParallelTest, ReduceGroupsButKeepsTheOrder) {
  std::string letters;
  for (int i = 0; i < 1000; ++i) letters += static_cast<char>('a' + i % 26);
  auto text = [](char c) { return std::string(1, c); };
  auto slow_text = [](char c) -> Task<std::string> {
    co_await yield();
    co_return std::string(1, c);
  };
  for (std::size_t grain : {0, 1, 13, 5000}) {
    ParallelOptions options{.grain = grain};
    EXPECT_EQ(ctx.run(parallel_reduce(letters, std::string("> "), std::plus<>(), text, options)),
              "> " + letters);
    EXPECT_EQ(ctx.run(parallel_reduce(letters, std::string(), std::plus<>(), slow_text, options)),
              letters);
  }
  EXPECT_EQ(ctx.run(parallel_reduce(std::views::iota(1, 101), 0, std::plus<>())), 5050);
}

TEST_P(ParallelTest, TheFirstErrorEndsTheRest) {
  std::atomic<int> begun = 0;
  auto fails = [&](int i) -> Task<> {
    ++begun;
    if (i == 3) throw std::runtime_error("three");
    co_await suspend_forever();
  };
  EXPECT_THROW(ctx.run(parallel_for(0, 1000, fails, {.grain = 1, .tasks = 8})), std::runtime_error);
  EXPECT_LT(begun, 20);

  std::atomic<int> called = 0;
  auto fails_early = [&](int i) {
    if (i == 0) throw std::runtime_error("at once");
    ++called;
    std::this_thread::sleep_for(100us);
  };
  EXPECT_THROW(ctx.run(parallel_for(0, 100'000, fails_early, {.grain = 10})), std::runtime_error);
  EXPECT_LT(called, 1000);
}

TEST_P(ParallelTest, CancellingTheCallerCancelsAllOfIt) {
  std::atomic<int> alive = 0;
  auto main = [&]() -> Task<> {
    auto waits = [&](int) -> Task<> {
      ++alive;
      OnExit left([&] { --alive; });
      co_await suspend_forever();
    };
    auto result = co_await timeout(2ms, parallel_for(0, 100, waits, {.tasks = 10}));
    EXPECT_FALSE(result.has_value());
    EXPECT_EQ(alive, 0);

    std::atomic<int> called = 0;
    auto works = [&](int) {
      ++called;
      std::this_thread::sleep_for(100us);
    };
    result = co_await timeout(2ms, parallel_for(0, 1'000'000, works));
    EXPECT_FALSE(result.has_value());
    EXPECT_LT(called, 100'000);
  };
  ctx.run(main());
}

TEST_P(ParallelTest, ACancelledCallerBeginsNothing) {
  auto main = []() -> Task<> {
    auto body = [](Nursery& n) -> Task<NurseryEnd> {
      auto child = []() -> Task<> {
        auto never = [](int) { ADD_FAILURE() << "it was cancelled before"; };
        co_await parallel_for(0, 0, never);
        ADD_FAILURE() << "a cancel point on every call";
      };
      n.start(child);
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  ctx.run(main());
}

TEST(Parallel, UsesEveryWorker) {
  // Each of them waits until all are there.
  IOContext ctx{{.workers = 4}};
  std::latch all(4);
  auto meet = [&](int) { all.arrive_and_wait(); };
  ctx.run(parallel_for(0, 4, meet));
}

TEST(Parallel, OnALoopThatIsNobodysWorkerItRunsThereInTurn) {
  EventLoop loop;
  auto main = []() -> Task<> {
    std::thread::id here = std::this_thread::get_id();
    int other_turns = 0, seen_at_end = -1;
    auto other = [&]() -> Task<> {
      for (;;) {
        co_await yield();
        ++other_turns;
      }
    };
    auto work = [&]() -> Task<> {
      auto each = [&](int) { EXPECT_EQ(std::this_thread::get_id(), here); };
      co_await parallel_for(0, 100, each, {.grain = 10});
      seen_at_end = other_turns;
    };
    co_await any_of(work(), other());
    EXPECT_GE(seen_at_end, 9);
  };
  run(loop, main());
  weft::testing::VirtualLoop plain;
  EXPECT_EQ(run(plain, parallel_reduce(std::views::iota(1, 101), 0, std::plus<>())), 5050);
}

TEST(Parallel, ACancelIsSeenInsideABlock) {
  IOContext ctx{{.workers = 2}};
  std::atomic<int> called = 0;
  auto main = [&]() -> Task<> {
    std::thread::id home = std::this_thread::get_id();
    auto each = [&](int) {
      // Where the block itself keeps the cancel from being heard there is nothing to see.
      if (std::this_thread::get_id() == home) throw std::runtime_error("at home");
      ++called;
      std::this_thread::sleep_for(100us);
    };
    auto work = [&]() -> Task<> { co_await parallel_for(0, 100'000, each, {.grain = 100'000}); };
    auto keep_home_busy = []() -> Task<> {  // so that the other worker takes it
      for (int i = 0; i < 5; ++i) {
        co_await yield();
        std::this_thread::sleep_for(1ms);
      }
      co_await sleep_for(2ms);
    };
    for (int i = 0; i < 100 && called == 0; ++i) {
      try {
        co_await any_of(work(), keep_home_busy());
      } catch (const std::runtime_error&) {
      }
    }
  };
  ctx.run(main());
  EXPECT_GT(called, 0);
  EXPECT_LT(called, 50'000);  // all of them take ten seconds
}

TEST(Parallel, TakesATemporaryRangeAndKeepsIt) {
  IOContext ctx{{.workers = 2}};
  auto twice = [](int i) { return 2 * i; };
  auto task = parallel_transform(std::vector<int>{1, 2, 3}, twice);
  EXPECT_EQ(ctx.run(std::move(task)), (std::vector<int>{2, 4, 6}));
}

}  // namespace
