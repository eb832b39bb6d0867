// SPDX-License-Identifier: MIT
// No deadlock is reported where there is none, whatever the loops do between two looks.
#include <atomic>
#include <chrono>
#include <concepts>
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
// holders that wait for children. Where they can be shared, some do.
template <class Lock>
struct Storm {
  IOContext& ctx;
  std::vector<std::unique_ptr<Lock>> locks;
  std::atomic<bool> over = false;
  std::atomic<long> visits = 0;

  static constexpr bool kCanShare = std::same_as<Lock, SharedMutex>;

  Task<void> inside(std::size_t which, bool shared, Task<void> work) {
    if constexpr (kCanShare) {
      if (shared) {
        auto held = co_await locks[which]->lock_shared();
        co_await std::move(work);
        co_return;
      }
    }
    auto held = co_await locks[which]->lock();
    co_await std::move(work);
  }
  Task<void> stay() {
    ++visits;
    co_await yield();
  }
  Task<void> visit(std::size_t which, bool shared) { return inside(which, shared, stay()); }
  Task<void> within(std::size_t low, std::size_t high, unsigned how, bool shared) {
    switch (how) {
      case 0:
        co_await visit(high, shared);
        break;
      case 1: {
        auto body = [&](Nursery& n) -> Task<NurseryEnd> {
          n.start(visit(high, shared));
          n.start_on(ctx.loop(high % ctx.workers()), visit(high, !shared));
          co_return join;
        };
        co_await with_nursery(body);
        break;
      }
      case 2:
        static_cast<void>(co_await timeout(20us, locks[high]->lock()));
        break;
      default:
        co_await on(ctx.loop(low % ctx.workers()), visit(high, shared));
    }
  }
  Task<void> keep(auto) { co_await yield(); }
  Task<void> give_away(std::size_t high, std::size_t low, bool shared) {
    StartedTask<void> kept;
    if constexpr (kCanShare) {
      if (shared) {
        auto lock = co_await locks[high]->lock_shared();
        kept = keep(std::move(lock)).start_in_current_scope();
      }
    }
    if (!kCanShare || !shared) {
      auto lock = co_await locks[high]->lock();
      kept = keep(std::move(lock)).start_in_current_scope();
    }
    co_await visit(low, shared);
    co_await std::move(kept);
  }
  Task<void> wander(Random random) {
    FrameTally::touch();  // frames are made on one worker and end on another
    const auto count = static_cast<unsigned>(locks.size());
    while (!over) {
      std::size_t low = random.below(count), high = random.below(count);
      if (low > high) std::swap(low, high);
      if (low == high) continue;
      const bool shared = random.below(2) == 0;
      switch (random.below(4)) {
        case 0:
          co_await visit(high, shared);
          co_await visit(low, shared);
          break;
        case 1:
          co_await give_away(high, low, shared);
          break;
        default:
          co_await inside(low, shared, within(low, high, random.below(4), random.below(2) == 0));
      }
    }
  }
};

template <class Lock>
class DeadlockStress : public StressTest {};
using LockTypes = ::testing::Types<Mutex, SharedMutex>;
TYPED_TEST_SUITE(DeadlockStress, LockTypes);

TYPED_TEST(DeadlockStress, LocksThatCannotDeadlockAreNeverReported) {
  constexpr unsigned kWorkers = 3;
  constexpr unsigned kWanderers = 24;
  const char* given = std::getenv("WEFT_STRESS_SECONDS");
  const auto duration = std::chrono::seconds(given ? std::atoi(given) : 3);
  IOContext ctx{{.workers = kWorkers}};
  Storm<TypeParam> storm{.ctx = ctx, .locks = {}};
  for (int i = 0; i < 4; ++i) storm.locks.push_back(std::make_unique<TypeParam>());
  long looks = 0;
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (unsigned i = 0; i < kWanderers; ++i) {
        n.start_on(ctx.loop(i % kWorkers), storm.wander(this->random(i + 1)));
      }
      const auto end = std::chrono::steady_clock::now() + duration;
      while (std::chrono::steady_clock::now() < end) {
        const std::vector<Deadlock> all = co_await inspect::find_deadlocks(ctx);
        EXPECT_TRUE(all.empty()) << inspect::to_text(all[0]);
        if (!all.empty()) co_return cancel;
        ++looks;
        this->round();
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
