// SPDX-License-Identifier: MIT
// Waits that end on threads which the runtime does not own, while they are being cancelled: plain
// C++20 awaiters, callbacks with a cancel function, and cancel nodes disarmed elsewhere.
#include <coroutine>
#include <deque>

#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;

constexpr CancelReason kWhy{"the race said so"};

// A library of another kind: its own threads complete requests, in any order, and it can be asked
// to forget one. The mutex decides who was first.
class Library {
 public:
  struct Request {
    std::coroutine_handle<> handle;
    std::function<void(int)> callback;
    bool queued = false;
    std::atomic<bool> called{false};
  };

  Library(std::size_t threads, Random random) {
    for (std::size_t i = 0; i < threads; ++i)
      threads_.emplace_back([this, mine = random.split()] { complete(mine); });
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    bell_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  void submit(Request& request) {
    {
      std::lock_guard lock(mutex_);
      request.queued = true;
      requests_.push_back(&request);
    }
    bell_.notify_one();
  }
  // Returns: true if it will not be completed.
  bool forget(Request& request) {
    std::lock_guard lock(mutex_);
    if (!request.queued) return false;
    request.queued = false;
    std::erase(requests_, &request);
    return true;
  }
  // For callbacks: when this returns, none is called any more.
  void forget_for_good(Request& request) {
    if (forget(request)) return;
    while (!request.called.load(std::memory_order_acquire)) std::this_thread::yield();
  }

 private:
  void complete(Random random) {
    FrameTally::touch();
    std::unique_lock lock(mutex_);
    for (;;) {
      bell_.wait(lock, [&] { return over_ || !requests_.empty(); });
      if (requests_.empty()) return;
      auto at = requests_.begin() + random.below(static_cast<unsigned>(requests_.size()));
      Request& request = **at;
      requests_.erase(at);
      request.queued = false;
      std::coroutine_handle<> handle = request.handle;
      std::function<void(int)> callback = std::move(request.callback);
      lock.unlock();
      random.dawdle();
      if (handle) {
        handle.resume();
      } else {
        callback(7);
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable bell_;
  std::deque<Request*> requests_;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

// Not cancellable: the value is delivered, cancellation strikes next.
struct PlainWait {
  explicit PlainWait(Library& library) : library(library) {}
  PlainWait(const PlainWait&) = delete;
  PlainWait& operator=(const PlainWait&) = delete;
  static bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    request.handle = handle;
    library.submit(request);  // from here on *this may be resumed on another thread
  }
  int await_resume() noexcept { return 7; }
  Library& library;
  Library::Request request;
};

// Cancellable: either forgotten, or on its way.
struct ForgettableWait : PlainWait {
  using PlainWait::PlainWait;
  bool await_cancel(std::coroutine_handle<>) noexcept { return library.forget(request); }
  static bool await_must_resume() noexcept { return true; }
};

// A description, for combinators.
auto forgettable(Library& library) { return make_awaitable<ForgettableWait>(std::ref(library)); }

Task<int> wait_plain(Library& library) { co_return co_await PlainWait(library); }

// The cancel function says whether a callback will still come.
Task<int> wait_callback(Library& library) {
  Library::Request request;
  co_return co_await until_callback<void(int)>(
      [&](auto done) {
        request.callback = done;
        library.submit(request);
      },
      [&]() -> bool { return library.forget(request); });
}

// The cancel function sees to it that none will. The request outlives the wait by a reference of
// the library's own.
Task<int> wait_callback_for_good(Library& library) {
  auto request = std::make_shared<Library::Request>();
  co_return co_await until_callback<void(int)>(
      [&](auto done) {
        request->callback = [done, request](int value) {
          done(value);
          request->called.store(true, std::memory_order_release);
        };
        library.submit(*request);
      },
      [&] {
        library.forget_for_good(*request);
        request->callback = nullptr;  // a forgotten one holds itself
      });
}

Task<int> waits(Library& library, Random random) {
  Life life;
  FrameTally::touch();
  switch (random.below(7)) {
    case 0:
      co_return co_await wait_plain(library);
    case 1:
      co_return co_await ForgettableWait(library);
    case 2:
      co_return co_await wait_callback(library);
    case 3: {
      auto both = co_await any_of(forgettable(library), wait_plain(library));
      co_return std::get<0>(both).value_or(7);
    }
    case 4:
      co_return co_await wait_callback_for_good(library);
    case 5: {
      auto in_time =
          co_await timeout(std::chrono::microseconds(random.below(60)), forgettable(library));
      co_return in_time.value_or(7);
    }
    default: {
      auto [a, b] = co_await all_of(wait_callback(library), forgettable(library));
      co_return (a + b) / 2;
    }
  }
}

Task<int> waits_often(Library& library, Random random) {
  Life life;
  FrameTally::touch();
  int sum = 0;
  for (unsigned n = 1 + random.below(3); n > 0; --n) {
    books().started();
    int got = co_await waits(library, random.split());
    EXPECT_EQ(got, 7);
    sum += got;
  }
  co_return sum;
}

class ForeignWait : public StressTest {
 protected:
  static constexpr std::int64_t kOpenMax = 100;
  ForeignWait() {
    watch_loop(&a_);
    watch_loop(&b_);
  }
  ~ForeignWait() override { forget_loops(); }
  PromiseChildLease somewhere(Random& random) { return (random.one_in(2) ? a_ : b_).lease(); }

  LoopThread a_, b_;
};

TEST_F(ForeignWait, ResumedElsewhereWhileBeingCancelled) {
  Random mine = random(1);
  Library library(2, mine.split());
  struct Item {
    StartedTask<int> handle;
  };
  Exchange<Item, 8> items;
  for (std::size_t n = rounds(200'000); n > 0; --n) {
    keep_below(kOpenMax);
    books().started();
    auto item = std::make_unique<Item>(
        waits_often(library, mine.split()).start_with_parent_scope(somewhere(mine)));
    auto other = items.swap(std::move(item), mine);
    if (other && mine.one_in(2)) {
      other->handle.cancel(kWhy);
      if (mine.one_in(2)) other->handle.detach();
    } else if (other && mine.one_in(2)) {
      other->handle.detach();
    }
    round();
  }
  items.clear();
  wait_until_all_ended();
  EXPECT_FALSE(a_.lease().is_cancelled() || b_.lease().is_cancelled());
}

// --- Cancel nodes -------------------------------------------------------------------------------

struct NodeBooks {
  std::atomic<std::int64_t> unsettled{0}, unpublished{0}, cancelled{0}, cleaned{0}, disarmed{0},
      alive{0};
};

class Node final : public HeapCancelNode {
 public:
  explicit Node(NodeBooks& books) : books_(books) { ++books_.alive; }
  void settle() { EXPECT_FALSE(settled_.exchange(true)) << "settled twice"; }

 private:
  ~Node() override {
    if (!settled_) ++books_.unsettled;
    --books_.alive;
  }
  void do_cancel() noexcept override {
    settle();
    ++books_.cancelled;
  }
  void do_cleanup() noexcept override {
    settle();
    ++books_.cleaned;
  }

  NodeBooks& books_;
  std::atomic<bool> settled_{false};
};

// One reference, and the right to disarm.
class NodeRef {
 public:
  explicit NodeRef(Node& node) noexcept : node_(&node) { node.add_ref(); }
  NodeRef(const NodeRef&) = delete;
  NodeRef& operator=(const NodeRef&) = delete;
  ~NodeRef() { node_->drop_ref(); }
  void disarm(NodeBooks& books) {
    if (!node_->disarm()) return;
    node_->settle();
    ++books.disarmed;
  }

 private:
  Node* node_;
};

Task<void> publishes(NodeBooks& nodes, Exchange<NodeRef>& refs, Random random) {
  Life life;
  FrameTally::touch();
  Scope& scope = co_await current_scope();
  for (unsigned n = 1 + random.below(3); n > 0; --n) {
    auto* node = new Node(nodes);
    NodeRef own(*node);  // also when a cancel point below is the end
    node->drop_ref();
    bool early = random.one_in(2);  // others may disarm it before it is published
    if (early) static_cast<void>(refs.swap(std::make_unique<NodeRef>(*node), random));
    if (random.one_in(4)) {
      ++nodes.unpublished;  // if cancellation comes first
      auto guard = co_await ignore_cancellation();
      --nodes.unpublished;
      EXPECT_TRUE(scope.publish_cancel_node(*node));
    } else {
      EXPECT_TRUE(scope.publish_cancel_node(*node));
    }
    EXPECT_FALSE(scope.publish_cancel_node(*node));
    if (!early) static_cast<void>(refs.swap(std::make_unique<NodeRef>(*node), random));
    if (random.one_in(2)) co_await yield();
  }
  if (random.one_in(3)) co_await suspend_forever();
}

TEST_F(ForeignWait, ACancelNodeIsSettledOnceHoweverItIsDisarmed) {
  NodeBooks nodes;
  {
    Exchange<NodeRef> refs;
    std::atomic<bool> over{false};
    std::thread disarmer([&, mine = random(5)]() mutable {
      while (!over) {
        auto ref = refs.swap(nullptr, mine);
        if (!ref) std::this_thread::yield();
        if (ref && mine.one_in(2)) ref->disarm(nodes);
      }
    });
    Random mine = random(4);
    struct Item {
      StartedTask<void> handle;
    };
    Exchange<Item, 8> items;
    for (std::size_t n = rounds(150'000); n > 0; --n) {
      keep_below(kOpenMax);
      books().started();
      auto item = std::make_unique<Item>(
          publishes(nodes, refs, mine.split()).start_with_parent_scope(somewhere(mine)));
      static_cast<void>(items.swap(std::move(item), mine));  // dropped, hence cancelled
      if (auto ref = refs.swap(nullptr, mine)) ref->disarm(nodes);
      round();
    }
    items.clear();
    wait_until_all_ended();
    over = true;
    disarmer.join();
  }
  // What is under way home leaves with a turn of each loop.
  while (nodes.alive > 0) std::this_thread::yield();
  // Only a node that no scope ever got may end unsettled.
  EXPECT_LE(nodes.unsettled, nodes.unpublished);
  EXPECT_GT(nodes.cancelled, 0);
  EXPECT_GT(nodes.cleaned, 0);
  EXPECT_GT(nodes.disarmed, 0);
}

// More nodes come home in the loop's last turn than the turn has budget for.
TEST_F(ForeignWait, WhatALoopTookItRunsBeforeItIsGone) {
  NodeBooks nodes;
  {
    weft::testing::ThreadLoop loop;
    auto root = [&]() -> Task<void> {
      Life life;
      Scope& scope = co_await current_scope();
      std::vector<std::unique_ptr<NodeRef>> refs;
      for (std::size_t i = 0; i < 2 * Executor::kTurnBudget; ++i) {
        auto* node = new Node(nodes);
        EXPECT_TRUE(scope.publish_cancel_node(*node));
        refs.push_back(std::make_unique<NodeRef>(*node));
        node->drop_ref();
      }
      std::thread([&] {
        for (auto& ref : refs) ref->disarm(nodes);
        refs.clear();
      }).join();
      co_await yield();
    };
    books().started();
    run(loop, root());
  }
  EXPECT_EQ(nodes.alive, 0);
}

}  // namespace
