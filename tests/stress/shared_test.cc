// SPDX-License-Identifier: MIT
// A Shared under real threads: who is the last to leave, against who comes and against its end.
#include "weft/sync/shared.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include "support/stress.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;

// Awaiters on every loop, each cancelled at some moment, and an operation that ends in one of four
// ways: each has the result, or was cancelled, or was told, and nothing runs when all of them are
// gone.
class SharedStress : public StressTest {};

TEST_F(SharedStress, CancelledFromEverywhere) {
  constexpr int kAwaiters = 6;
  LogCapture log;  // an error that all who waited for it were too late for
  LoopThread others[2];
  for (LoopThread& other : others) watch_loop(&other);
  ThreadLoop loop;
  Random random = this->random(1);
  enum class End { value, error, late, never };
  const std::size_t total = rounds(4000);
  for (std::size_t i = 0; i < total; ++i) {
    std::atomic<int> live{0};
    std::atomic<int> got{0};
    std::atomic<int> told{0};
    const End end = static_cast<End>(random.below(4));
    const int turns = static_cast<int>(random.below(4));
    auto works = [&]() -> Task<int> {
      FrameTally::touch();
      live.fetch_add(1);
      OnExit leaves([&] { live.fetch_sub(1); });
      if (end == End::late) {
        co_await noncancellable(yields(turns));
      } else {
        co_await yields(turns);
      }
      if (end == End::never) co_await suspend_forever();
      if (end == End::error) throw std::runtime_error("on purpose");
      co_return 42;
    };
    auto root = [&]() -> Task<void> {
      Shared shared(works());
      auto waits = [&](Random dice) -> Task<void> {
        Wanderer life;
        dice.dawdle();
        try {
          const int& value = co_await shared;
          EXPECT_EQ(value, 42);
          got.fetch_add(1);
        } catch (const TaskCancelled&) {
          told.fetch_add(1);
        } catch (const std::runtime_error&) {
          EXPECT_EQ(end, End::error);
          got.fetch_add(1);
        }
        EXPECT_EQ(live.load(), 0);  // L7
      };
      books().started(kAwaiters);
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        std::vector<StartedTask<void>> here;
        for (int each = 0; each < kAwaiters / 3; ++each) {
          for (LoopThread& other : others) n.start_on(other.executor(), waits(random.split()));
          here.push_back(waits(random.split()).start(n));
        }
        for (auto& each : here) {
          co_await yields(static_cast<int>(random.below(3)));
          if (end == End::never || random.one_in(2)) each.cancel();
        }
        random.dawdle();
        const bool all = end == End::never || random.one_in(2);
        if (!all) {
          for (auto& each : here) static_cast<void>(co_await each.outcome());
        }
        co_return all ? cancel : join;
      };
      co_await with_nursery(body);
      EXPECT_EQ(live.load(), 0);
      EXPECT_LE(got.load() + told.load(), kAwaiters);
    };
    run(loop, root());
    round();
  }
  forget_loops();
}

}  // namespace
