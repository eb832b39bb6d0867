// SPDX-License-Identifier: MIT
// No deadlock is reported where there is none, whatever the loops do between two looks.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "support/stress.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using inspect::Deadlock;

// Locks in an order that cannot deadlock, and that looks as if it did to who looks at one loop after
// the other: b inside of a; and a after b. With cancels, hand-overs, guards that are given away, and
// holders that wait for children.
struct Storm {
  IOContext& ctx;
  std::vector<std::unique_ptr<Mutex>> locks;
  std::atomic<bool> over = false;
  std::atomic<long> visits = 0;

  Task<void> visit(Mutex& mutex) {
    auto lock = co_await mutex.lock();
    ++visits;
    co_await yield();
  }
  Task<void> nested(std::size_t low, std::size_t high, unsigned how) {
    auto outer = co_await locks[low]->lock();
    switch (how) {
      case 0: {
        auto inner = co_await locks[high]->lock();
        ++visits;
        co_await yield();
        break;
      }
      case 1: {
        auto body = [&](Nursery& n) -> Task<NurseryEnd> {
          n.start(visit(*locks[high]));
          n.start_on(ctx.loop(high % ctx.workers()), visit(*locks[high]));
          co_return join;
        };
        co_await with_nursery(body);
        break;
      }
      case 2:
        static_cast<void>(co_await timeout(20us, locks[high]->lock()));
        break;
      default:
        co_await on(ctx.loop(low % ctx.workers()), visit(*locks[high]));
    }
  }
  Task<void> keep(MutexGuard) { co_await yield(); }
  Task<void> give_away(std::size_t high, std::size_t low) {
    MutexGuard lock = co_await locks[high]->lock();
    StartedTask<void> kept = keep(std::move(lock)).start_in_current_scope();
    co_await visit(*locks[low]);
    co_await std::move(kept);
  }
  Task<void> wander(Random random) {
    const auto count = static_cast<unsigned>(locks.size());
    while (!over) {
      std::size_t low = random.below(count), high = random.below(count);
      if (low > high) std::swap(low, high);
      if (low == high) continue;
      switch (random.below(4)) {
        case 0:
          co_await visit(*locks[high]);
          co_await visit(*locks[low]);
          break;
        case 1:
          co_await give_away(high, low);
          break;
        default:
          co_await nested(low, high, random.below(4));
      }
    }
  }
};

class DeadlockStress : public StressTest {};

TEST_F(DeadlockStress, LocksThatCannotDeadlockAreNeverReported) {
  constexpr unsigned kWorkers = 3;
  constexpr unsigned kWanderers = 24;
  const char* given = std::getenv("WEFT_STRESS_SECONDS");
  const auto duration = std::chrono::seconds(given ? std::atoi(given) : 3);
  IOContext ctx{{.workers = kWorkers}};
  Storm storm{.ctx = ctx, .locks = {}};
  for (int i = 0; i < 4; ++i) storm.locks.push_back(std::make_unique<Mutex>());
  long looks = 0;
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (unsigned i = 0; i < kWanderers; ++i) {
        n.start_on(ctx.loop(i % kWorkers), storm.wander(random(i + 1)));
      }
      const auto end = std::chrono::steady_clock::now() + duration;
      while (std::chrono::steady_clock::now() < end) {
        const std::vector<Deadlock> all = co_await inspect::find_deadlocks(ctx);
        EXPECT_TRUE(all.empty()) << inspect::to_text(all[0]);
        if (!all.empty()) co_return cancel;
        ++looks;
        round();
      }
      storm.over = true;
      co_return join;
    };
    co_await with_nursery(body);
  };
  ctx.run(root());
  EXPECT_GT(looks, 10);
  EXPECT_GT(storm.visits, 100);
}

}  // namespace
