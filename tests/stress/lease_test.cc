// SPDX-License-Identifier: MIT
// Leases in the hands of threads that the runtime does not own, and children whose parent scope
// lives on another loop: started, ended and cancelled while the scope itself ends.
#include <stdexcept>

#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;

constexpr CancelReason kWhy{"a holder said so"};

struct Planned : std::runtime_error {
  Planned() : std::runtime_error("planned") {}
};

// A child of a random shape, which ends by itself. Its error goes to its handle or its scope.
Task<int> child(Random random, bool may_throw) {
  Life life;
  FrameTally::touch();
  if (random.one_in(8)) {
    auto guard = co_await ignore_cancellation();
    co_await yield();
  }
  if (random.one_in(2)) co_await yields(static_cast<int>(random.below(3)));
  if (random.one_in(8)) co_await sleep_for(std::chrono::microseconds(random.below(50)));
  if (may_throw && random.one_in(8)) throw Planned();
  co_return 1;
}
Task<void> plain_child(Random random, bool may_throw) {
  Life life;
  books().started();
  static_cast<void>(co_await child(random.split(), may_throw));
}

struct Hold {
  PromiseChildLease lease;
};
using Holds = Exchange<Hold>;

// A guest: runs on this loop, at once, as a child of a scope that lives elsewhere.
Task<void> invite(std::unique_ptr<Hold> hold, Random random) {
  Life life;
  FrameTally::touch();
  books().started();
  auto guest =
      child(random.split(), true).start_immediate_with_parent_scope(std::move(hold->lease));
  switch (random.below(5)) {
    case 0:
      guest.detach();
      break;
    case 1:
      static_cast<void>(co_await guest.outcome());
      break;
    case 2:
      co_await yields(1);
      break;
    case 3:
      try {
        co_await std::move(guest);
      } catch (const Planned&) {
      }
      break;
    default:
      guest.cancel(kWhy);
      break;
  }
}

// The frame whose scope is leased. How it goes on, and how it ends, is random.
Task<std::expected<int, int>> leased_frame(Holds& holds, Random& random) {
  Scope& scope = co_await current_scope();
  for (unsigned n = 1 + random.below(2); n > 0; --n)
    static_cast<void>(holds.swap(std::make_unique<Hold>(scope.lease()), random));
  switch (random.below(7)) {
    case 0:
      throw Planned();
    case 1:
      co_await yields(2);
      break;
    case 2: {
      auto guard = co_await ignore_cancellation();
      co_await yields(2);
      break;
    }
    case 3:
      co_await ok(just(std::expected<int, int>(std::unexpected(1))));
      break;
    case 4:
      co_await sleep_for(std::chrono::microseconds(random.below(100)));
      break;
    case 5:
      scope.cancel(kWhy);
      co_await suspend_forever();
      break;
    default:
      break;
  }
  co_return 1;
}

Task<void> leased_nursery(Holds& holds, Random& random) {
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (unsigned n = 1 + random.below(2); n > 0; --n)
      static_cast<void>(holds.swap(std::make_unique<Hold>(nursery.cancel_handle()), random));
    books().started();
    nursery.start(plain_child(random.split(), true));
    if (random.one_in(2)) co_await yield();
    co_return random.one_in(4) ? cancel : join;
  };
  co_await with_nursery(body);
}

// Opens a scope, leases it to whoever comes, and survives what its children throw.
Task<void> open_scope(Holds& holds, Random random) {
  Life life;
  FrameTally::touch();
  try {
    if (random.one_in(2)) {
      static_cast<void>(co_await leased_frame(holds, random));
    } else {
      co_await leased_nursery(holds, random);
    }
  } catch (const Planned&) {
  }
}

// The leased task has no handle: only its parent, on its own loop, and the holders of its leases
// can cancel it, and here both do.
Task<void> cancelled_by_both(Holds& holds, Random random) {
  Life life;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    books().started();
    nursery.start(open_scope(holds, random.split()));
    co_await yields(static_cast<int>(random.below(4)));
    co_return cancel;
  };
  co_await with_nursery(body);
}

// An error that meets a cancelled scope passes by every catch on its way out (L14); here it stops,
// before it can end the loop's root nursery.
Task<void> contained(Holds& holds, Random random) {
  Life life;
  FrameTally::touch();
  books().started();
  auto scope = (random.one_in(2) ? open_scope(holds, random) : cancelled_by_both(holds, random))
                   .start_in_current_scope();
  static_cast<void>(co_await scope.outcome());
}

class Leases : public StressTest {
 protected:
  static constexpr std::int64_t kOpenMax = 200;

  Leases() {
    watch_loop(&a_);
    watch_loop(&b_);
  }
  ~Leases() override { forget_loops(); }
  LoopThread& somewhere(Random& random) { return random.one_in(2) ? a_ : b_; }

  // Returns: whether there was a lease to deal with.
  bool lease_round(Random& random) {
    keep_below(kOpenMax);
    if (random.one_in(3)) {
      books().started();
      somewhere(random).lease().start(contained(holds_, random.split()));
    }
    auto hold = holds_.swap(nullptr, random);
    if (!hold) {
      if (random.one_in(8)) std::this_thread::yield();
      return false;
    }
    random.dawdle();
    deal_with(std::move(hold), random);
    round();
    return true;
  }

  void deal_with(std::unique_ptr<Hold> hold, Random& random) {
    PromiseChildLease& lease = hold->lease;
    switch (random.below(9)) {
      case 0:
        lease.cancel(kWhy);
        break;
      case 1: {  // a copy starts, the original goes on
        books().started();
        PromiseChildLease(lease).start(plain_child(random.split(), true));
        static_cast<void>(holds_.swap(std::move(hold), random));
        break;
      }
      case 2: {
        books().started();
        auto handle = child(random.split(), true).start_with_parent_scope(std::move(lease));
        random.dawdle();
        if (random.one_in(2)) handle.detach();
        break;
      }
      case 3: {
        books().started();
        auto handle = child(random.split(), true).start_with_parent_scope(lease);
        handle.cancel(kWhy);
        static_cast<void>(lease.is_cancelled());
        break;
      }
      case 4:
      case 5:
        books().started();
        somewhere(random).lease().start(invite(std::move(hold), random.split()));
        break;
      case 6: {
        for (int i = 0; i < 4 && !lease.is_cancelled(); ++i) random.dawdle();
        break;
      }
      case 7:
        static_cast<void>(holds_.swap(std::make_unique<Hold>(lease), random));
        break;
      default:
        break;
    }
  }

  LoopThread a_, b_;
  Holds holds_;
};

TEST_F(Leases, AreCopiedStartedCancelledAndDroppedAnywhere) {
  LogCapture log;  // an error that arrives after its handle was dropped is logged: many are
  constexpr std::size_t kThreads = 2;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      FrameTally::touch();
      Random mine = random(i + 1);
      for (std::size_t n = rounds(300'000) / kThreads; n > 0;) n -= lease_round(mine) ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  // Scopes that open now lease themselves to nobody: take what they leave until all have ended.
  while (books().open() > 0) {
    holds_.clear();
    std::this_thread::yield();
  }
  EXPECT_FALSE(a_.lease().is_cancelled() || b_.lease().is_cancelled());
  for (const std::string& line : log.take())
    EXPECT_NE(line.find("planned"), std::string::npos) << line;
}

// --- The parent is cancelled while the link is under way ----------------------------------------

Task<void> guest_of(PromiseChildLease lease, Random random) {
  Life life;
  FrameTally::touch();
  books().started();
  auto parks = [](Random mine) -> Task<int> {
    Life guest;
    FrameTally::touch();
    if (mine.one_in(2)) co_await yields(1);
    co_await suspend_forever();  // nobody but the parent ends it
    co_return 1;
  };
  auto handle = parks(random.split()).start_immediate_with_parent_scope(std::move(lease));
  if (random.one_in(2)) {
    Outcome<int> how = co_await handle.outcome();
    EXPECT_TRUE(how.is_cancelled());
  } else {
    handle.detach();
  }
}

Task<void> parent_of(LoopThread& other, Random random) {
  Life life;
  FrameTally::touch();
  Scope& scope = co_await current_scope();
  unsigned guests = 1 + random.below(3);
  for (unsigned i = 0; i < guests; ++i) {
    books().started();
    other.lease().start(guest_of(scope.lease(), random.split()));
  }
  if (random.one_in(2)) co_await yields(static_cast<int>(random.below(3)));
  if (random.one_in(2)) co_await sleep_for(std::chrono::microseconds(random.below(100)));
  co_await suspend_forever();
}

TEST_F(Leases, AParentReachesItsGuestsOnOtherLoopsAndWaitsForThem) {
  Random mine = random(9);
  struct Pending {
    StartedTask<void> handle;
  };
  Exchange<Pending, 8> pending;
  for (std::size_t n = rounds(120'000); n > 0; --n) {
    keep_below(kOpenMax);
    books().started();
    bool here = mine.one_in(2);
    auto next = std::make_unique<Pending>(
        parent_of(here ? b_ : a_, mine.split()).start_with_parent_scope((here ? a_ : b_).lease()));
    static_cast<void>(pending.swap(std::move(next), mine));
    round();
  }
  pending.clear();
  wait_until_all_ended();
  EXPECT_FALSE(a_.lease().is_cancelled() || b_.lease().is_cancelled());
}

// --- A holder and the parent cancel at the same moment ------------------------------------------

// Leases of siblings, on their way to the thread that cancels them one by one.
struct Batch {
  std::vector<PromiseChildLease> leases;
  std::atomic<bool> taken{false};
};

Task<void> leased_sibling(Batch& batch) {
  Life life;
  FrameTally::touch();
  Scope& scope = co_await current_scope();
  batch.leases.push_back(scope.lease());
  co_await suspend_forever();
}

// No handles: the parent's own loop, and the holder, are all that reaches them.
Task<void> cancels_its_children(std::atomic<Batch*>& to_holder, Random random) {
  constexpr std::size_t kSiblings = 16;
  Life life;
  FrameTally::touch();
  Batch batch;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    books().started(kSiblings);
    for (std::size_t i = 0; i < kSiblings; ++i) nursery.start(leased_sibling(batch));
    co_await yield();
    to_holder.store(&batch, std::memory_order_release);
    for (int spins = 0; !batch.taken.load(std::memory_order_acquire); ++spins)
      if (spins > 2000) std::this_thread::yield();
    random.dawdle();
    co_return cancel;
  };
  co_await with_nursery(body);
}

TEST_F(Leases, AHolderAndTheParentCancelAtTheSameMoment) {
  std::atomic<Batch*> to_holder{nullptr};
  std::atomic<bool> over{false};
  std::thread holder([&, mine = random(11)]() mutable {
    while (!over.load(std::memory_order_relaxed)) {
      Batch* batch = to_holder.exchange(nullptr, std::memory_order_acq_rel);
      if (!batch) {
        std::this_thread::yield();
        continue;
      }
      std::vector<PromiseChildLease> leases = std::move(batch->leases);
      batch->taken.store(true, std::memory_order_release);
      mine.dawdle();
      for (PromiseChildLease& lease : leases) lease.cancel(kWhy);
    }
  });
  Random mine = random(10);
  for (std::size_t n = rounds(100'000); n > 0; --n) {
    books().started();
    a_.lease().start(cancels_its_children(to_holder, mine.split()));
    wait_until_all_ended();
    round();
  }
  over = true;
  holder.join();
}

}  // namespace
