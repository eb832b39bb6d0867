// SPDX-License-Identifier: MIT
// Tasks that wander: moved, sent and started between loops in any order, while threads that the
// runtime does not own cancel and drop them, and loops come and go.
#include <future>

#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;

constexpr CancelReason kWhy{"the storm said so"};

// The loops of a test; the last ones may be about to end.
struct Loops {
  std::vector<Executor*> all;
  Executor& any(Random& random) const {
    return *all[random.below(static_cast<unsigned>(all.size()))];
  }
};

// A resource that someone else may take back at any time.
class Node final : public HeapCancelNode {
  void do_cancel() noexcept override {}
};
using Nodes = Exchange<Node*, 8>;
Nodes& nodes() {
  static Nodes all;
  return all;
}

Task<int> wander(Ticket ticket, Random random, const Loops& loops, bool parks, int depth);
Task<int> wander(Random random, const Loops& loops, bool parks, int depth) {
  Ticket ticket;
  return wander(std::move(ticket), random, loops, parks, depth);
}
Task<void> wander_child(Task<int> wandering) { static_cast<void>(co_await std::move(wandering)); }

// Publishes a node and leaves it to other threads, and takes back what they left.
void leave_a_node(Scope& scope, Random& random) {
  auto* mine = new Node;
  mine->add_ref();  // for the exchange
  scope.publish_cancel_node(*mine);
  std::unique_ptr<Node*> other = nodes().swap(std::make_unique<Node*>(mine), random);
  mine->drop_ref();
  if (!other) return;
  static_cast<void>((*other)->disarm());
  (*other)->drop_ref();
}

Task<void> one_step(Random& random, const Loops& loops, bool parks, int depth) {
  switch (random.below(depth > 0 ? 10 : 5)) {
    case 0:
    case 1:
      co_await resume_on(loops.any(random));
      break;
    case 2:
      co_await yields(static_cast<int>(random.below(2)));
      break;
    case 3: {
      auto guard = co_await ignore_cancellation();
      co_await resume_on(loops.any(random));
      break;
    }
    case 4:
      leave_a_node(co_await current_scope(), random);
      break;
    case 5:
      static_cast<void>(
          co_await on(loops.any(random), wander(random.split(), loops, parks, depth - 1)));
      break;
    case 6: {
      auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
        for (unsigned n = 1 + random.below(2); n > 0; --n) {
          Task<int> child = wander(random.split(), loops, parks, depth - 1);
          nursery.start_on(loops.any(random), wander_child(std::move(child)));
        }
        if (random.one_in(2)) co_await resume_on(loops.any(random));
        co_return parks ? cancel : join;
      };
      co_await with_nursery(body);
      break;
    }
    case 7:
      co_await any_of(on(loops.any(random), wander(random.split(), loops, parks, depth - 1)),
                      wander(random.split(), loops, false, depth - 1));
      break;
    case 8: {
      auto handle = wander(random.split(), loops, parks, depth - 1).start_in_current_scope();
      if (random.one_in(2)) {
        static_cast<void>(co_await handle.outcome());
      } else if (random.one_in(2)) {
        static_cast<void>(co_await std::move(handle));
      }
      break;  // else: dropped, hence cancelled, and joined wherever this frame ends
    }
    default:
      co_await sleep_for(std::chrono::microseconds(random.below(20)));
      break;
  }
}

Task<int> wander(Ticket ticket, Random random, const Loops& loops, bool parks, int depth) {
  Wanderer life;
  ticket.begun();
  for (unsigned steps = 1 + random.below(3); steps > 0; --steps) {
    try {
      co_await one_step(random, loops, parks, depth);
    } catch (const LoopStopped&) {
    }
  }
  if (parks) co_await suspend_forever();
  co_return 1;
}

class MovingStress : public StressTest {
 protected:
  static constexpr std::int64_t kOpenMax = 100;
  ~MovingStress() override { forget_loops(); }

  // One round: start something, leave it to others, and do something to what others left.
  void storm_round(Random& random, const Loops& loops, std::vector<LoopThread*> roots) {
    keep_below(kOpenMax);
    bool parks = random.one_in(3);
    auto mine = std::make_unique<Item>();
    mine->parks = parks;
    mine->handle = wander(random.split(), loops, parks, static_cast<int>(random.below(3)))
                       .start_with_parent_scope(
                           roots[random.below(static_cast<unsigned>(roots.size()))]->lease());
    random.dawdle();
    std::unique_ptr<Item> other = items_.swap(std::move(mine), random);
    if (other) deal_with(*other, random);
    if (random.one_in(4)) take_a_node(random);
    round();
  }

  struct Item {
    StartedTask<int> handle;
    bool parks = false;
  };
  static void deal_with(Item& item, Random& random) {
    CancelHandle later = item.handle.cancel_handle();
    switch (random.below(4)) {
      case 0:
        item.handle.cancel(kWhy);
        random.dawdle();
        if (random.one_in(2)) item.handle.detach();
        break;
      case 1:
        if (!item.parks) item.handle.detach();
        break;
      case 2:
        later.cancel(kWhy);
        break;
      default:
        break;  // dropped
    }
    random.dawdle();
    if (item.parks) later.cancel(kWhy);
  }
  static void take_a_node(Random& random) {
    std::unique_ptr<Node*> node = nodes().swap(nullptr, random);
    if (!node) return;
    static_cast<void>((*node)->disarm());
    (*node)->drop_ref();
  }
  // What ended on these loops happened before this returns: the books are relaxed.
  static void settle(const std::vector<LoopThread*>& loops) {
    for (LoopThread* loop : loops) {
      std::promise<void> reached;
      loop->lease().start([](std::promise<void>& done) -> Task<void> {
        done.set_value();
        co_return;
      }(reached));
      reached.get_future().wait();
    }
  }
  void finish(const std::vector<LoopThread*>& loops) {
    items_.clear();
    wait_until_all_ended();
    settle(loops);
    Random last(1);
    for (int i = 0; i < 1000; ++i) take_a_node(last);
  }

  Exchange<Item> items_;
};

TEST_F(MovingStress, TasksWanderBetweenLoopsWhileOthersCancelThem) {
  LoopThread a, b, c;
  for (LoopThread* loop : {&a, &b, &c}) watch_loop(loop);
  Loops loops{{&a.executor(), &b.executor(), &c.executor()}};
  constexpr std::size_t kThreads = 2;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      FrameTally::touch();
      Random mine = random(i + 1);
      for (std::size_t n = rounds(300'000) / kThreads; n > 0; --n) {
        storm_round(mine, loops, {&a, &b, &c});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  finish({&a, &b, &c});
  EXPECT_FALSE(a.lease().is_cancelled() || b.lease().is_cancelled() || c.lease().is_cancelled());
  forget_loops();
}

// The third loop ends again and again, with guests on it and on their way to it.
TEST_F(MovingStress, LoopsComeAndGoWhileTasksWander) {
  LoopThread a, b;
  for (LoopThread* loop : {&a, &b}) watch_loop(loop);
  Random mine = random(9);
  constexpr std::size_t kRoundsPerLoop = 20;
  for (std::size_t n = rounds(20'000) / kRoundsPerLoop; n > 0; --n) {
    LoopThread brief;
    Loops loops{{&a.executor(), &b.executor(), &brief.executor()}};
    for (std::size_t i = 0; i < kRoundsPerLoop; ++i) storm_round(mine, loops, {&a, &b});
    if (mine.one_in(2)) brief.stop();  // else its end has no guests any more
    finish({&a, &b});                  // the loop must live while tasks may name it
  }
  forget_loops();
}

// Whoever was announced before the stop() arrives, perhaps after it, and must not stay.
TEST_F(MovingStress, StopReachesGuestsThatAreUnderWay) {
  LoopThread a, b;
  for (LoopThread* loop : {&a, &b}) watch_loop(loop);
  constexpr int kGuestsMax = 30;
  auto guest = []() -> Task<void> {
    FrameTally::touch();
    co_await suspend_forever();
  };
  auto sender = [&](Executor& to, std::atomic<int>& gone) -> Task<void> {
    Wanderer life;
    OnExit note([&] { gone.fetch_add(1, std::memory_order_release); });
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      try {
        for (int i = 0; i < kGuestsMax; ++i) {
          nursery.start_on(to, guest());
          if (i % 4 == 0) co_await yield();
        }
      } catch (const LoopStopped&) {
      }
      co_return join;  // all of them are being cancelled
    };
    co_await with_nursery(body);
  };
  Random mine = random(6);
  for (std::size_t n = rounds(1'000); n > 0; --n) {
    LoopThread brief;
    std::atomic<int> gone = 0;
    for (LoopThread* loop : {&a, &b}) {
      books().started();
      loop->lease().start(sender(brief.executor(), gone));
    }
    for (unsigned i = mine.below(8); i > 0; --i) std::this_thread::yield();
    brief.stop();
    while (gone.load(std::memory_order_acquire) < 2) std::this_thread::yield();
    round();
  }
  wait_until_all_ended();
  forget_loops();
}

// A loop that ends and begins again, all the time, is sent tasks: they arrive or are refused.
TEST_F(MovingStress, TasksAreSentToALoopThatEndsAndBeginsAgain) {
  LoopThread a;
  watch_loop(&a);
  ThreadLoop often;
  std::atomic<bool> over = false;
  std::atomic<std::int64_t> came = 0, refused = 0;
  auto guest = [&](bool yields_once) -> Task<void> {
    came.fetch_add(1, std::memory_order_relaxed);
    if (yields_once) co_await yield();
  };
  auto sender = [&](Random random) -> Task<void> {
    Wanderer life;
    while (!over.load(std::memory_order_acquire)) {
      random.dawdle();
      try {
        co_await on(often, guest(random.one_in(2)));
      } catch (const LoopStopped&) {
        refused.fetch_add(1, std::memory_order_relaxed);
      }
      co_await yield();
    }
  };
  Random mine = random(8);
  auto handle = (books().started(), sender(mine.split()).start_with_parent_scope(a.lease()));
  auto root = [&](int turns) -> Task<void> { co_await yields(turns); };
  while (came == 0) run(often, root(1));  // the sender may be slow to begin
  for (std::size_t n = rounds(100'000); n > 0; --n) {
    run(often, root(static_cast<int>(mine.below(3))));
    round();
  }
  over.store(true, std::memory_order_release);
  // The last one may wait for a loop that nobody runs: it is closed, and refuses.
  auto last = [&]() -> Task<void> { static_cast<void>(co_await handle.outcome()); };
  ThreadLoop reader;
  run(reader, last());
  std::printf("[          ] %lld came, %lld refused\n", static_cast<long long>(came),
              static_cast<long long>(refused));
  forget_loops();
}

// A task that moves, and is cancelled just then: the kick finds it here, there, or under way, and
// the loop that it leaves ends at once.
TEST_F(MovingStress, ALoopEndsWhileKicksForTasksThatLeftItAreUnderWay) {
  LoopThread away;
  watch_loop(&away);
  Random mine = random(5);
  std::atomic<CancelHandle*> offered = nullptr;
  std::atomic<bool> over = false;
  std::thread canceller([&] {
    FrameTally::touch();
    while (!over.load(std::memory_order_relaxed)) {
      std::unique_ptr<CancelHandle> target(offered.exchange(nullptr, std::memory_order_acq_rel));
      if (target) {
        target->cancel(kWhy);
      } else {
        std::this_thread::yield();
      }
    }
    delete offered.load();
  });
  auto mover = [&](Random random) -> Task<void> {
    Wanderer life;
    co_await yields(static_cast<int>(random.below(2)));
    auto guard = co_await ignore_cancellation();
    co_await resume_on(away.executor());
    co_await yields(static_cast<int>(random.below(2)));
  };
  auto root = [&](Random random) -> Task<void> {
    StartedTask<void> s = mover(random.split()).start_in_current_scope();
    delete offered.exchange(new CancelHandle(s.cancel_handle()), std::memory_order_acq_rel);
    random.dawdle();
    static_cast<void>(co_await s.outcome());
  };
  for (std::size_t n = rounds(30'000); n > 0; --n) {
    ThreadLoop loop;
    books().started();
    run(loop, root(mine.split()));
    round();
  }
  over = true;
  canceller.join();
  forget_loops();
}

}  // namespace
