// SPDX-License-Identifier: MIT
// L10: depth costs no stack. A chain of a million awaits is built, returned through, thrown through,
// cancelled and destroyed on an 8 MiB stack.
#include <pthread.h>

#include <cstddef>
#include <functional>
#include <stdexcept>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::VirtualLoop;

constexpr long kDepth = 1'000'000;
constexpr std::size_t kStackBytes = 8 << 20;

// Runs fn on a thread with exactly that stack, whatever `ulimit -s` says.
void on_stack(std::function<void()> fn) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  auto call = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &fn), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

enum class Leaf { returns, suspends, throws, parks, reads_gate };

struct Deep {
  explicit Deep(Leaf l) : leaf(l) {}
  Leaf leaf;
  long destroyed = 0;
  long next_expected = 0;  // innermost first
  bool in_order = true;
  Gate gate;
};

// Counts its frame's death and checks the order.
class AtDepth {
 public:
  AtDepth(Deep& deep, long depth) : deep_(&deep), depth_(depth) {}
  AtDepth(const AtDepth&) = delete;
  AtDepth& operator=(const AtDepth&) = delete;
  ~AtDepth() {
    if (depth_ != deep_->next_expected++) deep_->in_order = false;
    ++deep_->destroyed;
  }

 private:
  Deep* deep_;
  long depth_;
};

[[gnu::noinline]] Task<long> chain(Deep& deep, long depth) {
  AtDepth here(deep, depth);
  if (depth > 0) co_return 1 + co_await chain(deep, depth - 1);
  switch (deep.leaf) {
    case Leaf::returns:
      break;
    case Leaf::suspends:
      co_await yield();
      break;
    case Leaf::throws:
      co_await yield();
      throw std::runtime_error("from the bottom");
    case Leaf::parks:
      co_await suspend_forever();
      break;
    case Leaf::reads_gate:
      co_await deep.gate;
      break;
  }
  co_return 0;
}

void expect_all_gone(const Deep& deep) {
  EXPECT_EQ(deep.destroyed, kDepth + 1);
  EXPECT_TRUE(deep.in_order) << "frames die innermost first";
}

TEST(Depth, AMillionNestedAwaitsReturn) {
  on_stack([] {
    for (Leaf leaf : {Leaf::returns, Leaf::suspends}) {
      VirtualLoop loop;
      Deep deep(leaf);
      EXPECT_EQ(run_on(loop, chain(deep, kDepth)), kDepth);
      expect_all_gone(deep);
    }
  });
}

TEST(Depth, AMillionNestedAwaitsThrow) {
  on_stack([] {
    VirtualLoop loop;
    Deep deep(Leaf::throws);
    try {
      static_cast<void>(run_on(loop, chain(deep, kDepth)));
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "from the bottom");
    }
    expect_all_gone(deep);
  });
}

TEST(Depth, AMillionNestedAwaitsAreCancelledAndDestroyed) {
  on_stack([] {
    VirtualLoop loop;
    Deep deep(Leaf::parks);
    auto root = [&]() -> Task<void> {
      StartedTask<long> s = chain(deep, kDepth).start_in_current_scope();
      co_await yields(2);
      s.cancel();
      Outcome<long> how = co_await s.outcome();
      EXPECT_TRUE(how.is_cancelled());
    };
    run_on(loop, root());
    expect_all_gone(deep);
  });
}

TEST(Depth, AMillionNestedAwaitsDestroyedWithTheirDroppedHandle) {
  on_stack([] {
    VirtualLoop loop;
    Deep deep(Leaf::parks);
    auto root = [&]() -> Task<void> {
      StartedTask<long> s = chain(deep, kDepth).start_immediate_in_current_scope();
      co_return;
    };
    run_on(loop, root());
    expect_all_gone(deep);
  });
}

TEST(Depth, AMillionNestedAwaitsWhoseWaitCannotBeCancelledDeliverAndThenReturn) {
  on_stack([] {
    VirtualLoop loop;
    Deep deep(Leaf::reads_gate);
    auto root = [&]() -> Task<void> {
      StartedTask<long> s = chain(deep, kDepth).start_immediate_in_current_scope();
      s.cancel();
      co_await yield();
      deep.gate.fire();
      Outcome<long> how = co_await s.outcome();
      EXPECT_TRUE(how.has_value());  // no cancel point on the way up
    };
    run_on(loop, root());
    expect_all_gone(deep);
  });
}

// Each waits for the next by its handle: a million strands.
Task<long> handle_chain(long depth) {
  if (depth == 0) {
    co_await suspend_forever();
    co_return 0;
  }
  StartedTask<long> s = handle_chain(depth - 1).start_in_current_scope();
  co_return 1 + co_await std::move(s);
}

TEST(Depth, AMillionTasksThatWaitForEachOthersHandlesAreCancelled) {
  on_stack([] {
    VirtualLoop loop;
    auto root = [&]() -> Task<void> {
      StartedTask<long> s = handle_chain(kDepth).start_in_current_scope();
      co_await yields(kDepth + 10);
      s.cancel();
      Outcome<long> how = co_await s.outcome();
      EXPECT_TRUE(how.is_cancelled());
    };
    run_on(loop, root());
    EXPECT_EQ(loop.strand_count(), 0u);
  });
}

// Each frame waits at its end for its child.
Task<void> joined_chain(long depth) {
  if (depth > 0) joined_chain(depth - 1).start_in_current_scope().detach();
  co_return;
}

TEST(Depth, AMillionScopesThatWaitForEachOtherEnd) {
  on_stack([] {
    VirtualLoop loop;
    run_on(loop, joined_chain(kDepth));
    EXPECT_EQ(loop.strand_count(), 0u);
  });
}

// A loop of awaits must not grow the stack either: g++ makes no tail calls without -O2.
TEST(Depth, AMillionAwaitsInALoopReturn) {
  on_stack([] {
    VirtualLoop loop;
    auto body = []() -> Task<long> {
      long sum = 0;
      for (long i = 0; i < kDepth; ++i) sum += co_await returns<long>(1);
      co_return sum;
    };
    EXPECT_EQ(run_on(loop, body()), kDepth);
  });
}

}  // namespace
