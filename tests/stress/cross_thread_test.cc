// SPDX-License-Identifier: MIT
// Handles in the hands of threads that the runtime does not own: cancelled, dropped, detached,
// awaited from other loops, in any order and at any time.
#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;

constexpr CancelReason kWhy{"the storm said so"};

// A task of a random shape. Without `parks` it ends by itself.
Task<int> work(Random random, bool parks, int depth);

Task<void> child(Random random, bool parks, int depth) {
  static_cast<void>(co_await work(random, parks, depth));
}

Task<int> shape(Random& random, bool parks, int depth) {
  switch (random.below(depth > 0 ? 9 : 4)) {
    case 0:
      break;
    case 1:
      co_await yields(static_cast<int>(random.below(3)));
      break;
    case 2: {
      auto guard = co_await ignore_cancellation();
      co_await yields(1);
      break;
    }
    case 3:
      co_await sleep_for(std::chrono::microseconds(random.below(50)));
      break;
    case 4: {
      auto held =
          (books().started(), work(random.split(), parks, depth - 1).start_in_current_scope());
      co_await yields(static_cast<int>(random.below(2)));
      if (!parks && random.one_in(2)) held.detach();
      break;  // else: dropped, hence cancelled
    }
    case 5: {
      auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
        books().started(2);
        nursery.start(child(random.split(), parks, depth - 1));
        nursery.start(child(random.split(), false, depth - 1));
        co_await yield();
        co_return parks ? cancel : join;
      };
      co_await with_nursery(body);
      break;
    }
    case 6:
      books().started();
      co_await any_of(work(random.split(), parks, depth - 1), yields(2));
      break;
    case 7:
      books().started();
      co_return co_await work(random.split(), parks, depth - 1);
    default:
      books().started();
      co_await noncancellable(work(random.split(), false, depth - 1));
      break;
  }
  if (parks) co_await suspend_forever();
  co_return 1;
}

Task<int> work(Random random, bool parks, int depth) {
  Life life;
  FrameTally::touch();
  co_return co_await shape(random, parks, depth);
}

struct Item {
  StartedTask<int> handle;
  bool parks = false;
};

// Waits for a task of another loop, in one of the ways there are.
Task<int> wait_for(std::unique_ptr<Item> item, Random random) {
  Life life;
  FrameTally::touch();
  StartedTask<int>& handle = item->handle;
  switch (random.below(item->parks ? 4 : 5)) {
    case 0: {
      Outcome<int> how = co_await handle.outcome();
      EXPECT_TRUE(how.is_cancelled() || how.has_value());
      co_return 2;
    }
    case 1:  // withdrawn by the race, if the other is slow
      co_await any_of(handle.outcome(), yields(static_cast<int>(random.below(3))));
      if (!handle.is_done()) static_cast<void>(co_await handle.outcome());
      EXPECT_TRUE(handle.is_done());
      co_return 2;
    case 2:
      co_await timeout(std::chrono::microseconds(random.below(100)), std::move(handle));
      co_return 2;
    case 3:
      co_return co_await std::move(handle);
    default:  // shielded: only what ends by itself, or is cancelled by someone else
      try {
        co_return co_await noncancellable(std::move(handle));
      } catch (const TaskCancelled&) {
        co_return 3;
      }
  }
}

class CrossThread : public StressTest {
 protected:
  static constexpr std::int64_t kOpenMax = 200;

  CrossThread() {
    watch_loop(&a_);
    watch_loop(&b_);
  }
  ~CrossThread() override { forget_loops(); }

  PromiseChildLease somewhere(Random& random) { return (random.one_in(2) ? a_ : b_).lease(); }

  // One round: start something, leave it to others, and do something to what others left.
  void storm_round(Random& random) {
    keep_below(kOpenMax);
    auto mine = std::make_unique<Item>();
    mine->parks = random.one_in(3);
    books().started();
    mine->handle = work(random.split(), mine->parks, static_cast<int>(random.below(3)))
                       .start_with_parent_scope(somewhere(random));
    if (random.one_in(2)) {
      std::unique_ptr<CancelHandle> last =
          cancels_.swap(std::make_unique<CancelHandle>(mine->handle.cancel_handle()), random);
      if (last && random.one_in(2)) last->cancel(kWhy);
    }
    random.dawdle();
    std::unique_ptr<Item> other = items_.swap(std::move(mine), random);
    if (other) deal_with(std::move(other), random);
    round();
  }

  void deal_with(std::unique_ptr<Item> item, Random& random) {
    switch (random.below(6)) {
      case 0:
        item->handle.cancel(kWhy);
        random.dawdle();
        if (random.one_in(2)) item->handle.detach();
        break;
      case 1:
        if (!item->parks) item->handle.detach();
        break;
      case 2: {
        CancelHandle later = item->handle.cancel_handle();
        item.reset();
        random.dawdle();
        later.cancel(kWhy);
        break;
      }
      case 3: {  // waited for on another loop, and the waiter is left to others
        auto waiter = std::make_unique<Item>();
        waiter->parks = item->parks;
        books().started();
        waiter->handle =
            wait_for(std::move(item), random.split()).start_with_parent_scope(somewhere(random));
        random.dawdle();
        items_.swap(std::move(waiter), random);
        break;
      }
      case 4:
        static_cast<void>(item->handle.is_done());
        break;
      default:
        break;
    }
  }

  LoopThread a_, b_;
  Exchange<Item> items_;
  Exchange<CancelHandle> cancels_;
};

TEST_F(CrossThread, HandlesAreCancelledDroppedDetachedAndAwaitedAnywhere) {
  constexpr std::size_t kThreads = 2;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      FrameTally::touch();
      Random mine = random(i + 1);
      for (std::size_t n = rounds(300'000) / kThreads; n > 0; --n) storm_round(mine);
    });
  }
  for (auto& thread : threads) thread.join();
  items_.clear();
  cancels_.clear();
  wait_until_all_ended();
  EXPECT_FALSE(a_.lease().is_cancelled() || b_.lease().is_cancelled());
}

// --- L7: nobody sees an outcome while what produced it is still there ---------------------------

struct Slow {
  explicit Slow(std::atomic<bool>& gone, Random random) : gone(gone), random(random) {}
  Slow(const Slow&) = delete;
  Slow& operator=(const Slow&) = delete;
  ~Slow() {
    for (int i = 0; i < 4; ++i) random.dawdle();
    gone.store(true, std::memory_order_relaxed);  // the outcome must carry the order
  }
  std::atomic<bool>& gone;
  Random random;
};

Task<int> slow_to_die(std::atomic<bool>& gone, Random random) {
  Life life;
  FrameTally::touch();
  Slow slow(gone, random.split());
  co_await yields(static_cast<int>(random.below(2)));
  if (random.one_in(2)) co_await suspend_forever();
  co_return 1;
}

Task<void> check_gone(PromiseChildLease there, Random random) {
  Life life;
  FrameTally::touch();
  std::atomic<bool> gone{false};
  books().started();
  auto handle = slow_to_die(gone, random.split()).start_with_parent_scope(std::move(there));
  CancelHandle other = handle.cancel_handle();
  if (random.one_in(2)) co_await yield();
  other.cancel(kWhy);
  if (random.one_in(64)) {
    while (!handle.is_done()) co_await yield();
  } else {
    static_cast<void>(co_await handle.outcome());
  }
  EXPECT_TRUE(gone.load(std::memory_order_relaxed));
}

TEST_F(CrossThread, AWaiterElsewhereSeesTheOutcomeAfterTheFrameIsGone) {
  Random mine = random(7);
  for (std::size_t n = rounds(60'000); n > 0; --n) {
    keep_below(kOpenMax);
    books().started();
    a_.lease().start(check_gone(b_.lease(), mine.split()));
    round();
  }
  wait_until_all_ended();
  EXPECT_FALSE(a_.lease().is_cancelled() || b_.lease().is_cancelled());
}

}  // namespace
