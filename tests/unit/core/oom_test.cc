// SPDX-License-Identifier: MIT
// Running out of memory at a frame, for every frame of a program that uses most of what there is:
// bad_alloc arrives where the frame was asked for, and nothing leaks.
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "support/loop_fixture.h"
#include "weft/core/frame_pool.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

// A frame allocator whose n-th allocation fails.
class Failing {
 public:
  explicit Failing(long nth) : left_(nth), hook_{&allocate, &release, this} {
    set_frame_allocator(&hook_);
  }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
  ~Failing() {
    EXPECT_EQ(live_, 0) << "frames leaked";
    set_frame_allocator(nullptr);
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] long live() const { return live_; }

 private:
  static void* allocate(std::size_t bytes, void* context) {
    auto& self = *static_cast<Failing*>(context);
    if (self.left_-- == 0) {
      self.failed_ = true;
      throw std::bad_alloc();
    }
    ++self.live_;
    return std::aligned_alloc(16, (bytes + 15) / 16 * 16);
  }
  static void release(void* block, std::size_t, void* context) noexcept {
    --static_cast<Failing*>(context)->live_;
    std::free(block);
  }

  long left_;
  long live_ = 0;
  bool failed_ = false;
  FrameAllocator hook_;
};

TaskLocal<int> local;

Task<Counted> make(int value) {
  co_await yield();
  co_return Counted(value);
}
Task<int> nested(int depth, Counted carried) {
  if (depth == 0) co_return carried.value();
  co_return co_await nested(depth - 1, Counted(carried.value() + 1));
}
Task<void> holds(Counted) { co_await suspend_forever(); }
Task<void> child_of_nursery(Counted counted) {
  co_await yields(counted.value() % 3);
  Counted got = co_await make(counted.value());
  EXPECT_EQ(got.value(), counted.value());
}

Task<void> with_children() {
  auto body = [](Nursery& n) -> Task<NurseryEnd> {
    for (int i = 0; i < 4; ++i) n.start(child_of_nursery(Counted(i)));
    n.start([held = Counted(7)]() -> Task<void> {
      co_await yields(2);
      EXPECT_EQ(held.value(), 7);
    });
    PromiseChildLease lease = n.lease();
    lease.start(child_of_nursery(Counted(9)));
    co_await yields(2);
    co_return join;
  };
  co_await with_nursery(body);
}

Task<void> with_handles() {
  Scope& scope = co_await current_scope();
  auto nothing = [] {};
  CancelHook hook(scope, nothing);
  StartedTask<Counted> a = make(1).start(scope);
  StartedTask<Counted> b = make(2).start_immediate(scope);
  StartedTask<void> dropped = holds(Counted(3)).start(scope);
  StartedTask<Counted> leased = make(4).start_with_parent_scope(scope.lease());
  Counted first = co_await std::move(a);
  Outcome<Counted> second = co_await b.outcome();
  EXPECT_TRUE(second.has_value());
  Counted third = co_await std::move(leased);
  EXPECT_EQ(first.value() + third.value(), 5);
}

Task<void> with_shield() {
  auto guard = co_await ignore_cancellation();
  int bound = co_await local.with(5, nested(2, Counted(0)));
  EXPECT_EQ(bound, 2);
}

Task<int> program() {
  int sum = co_await nested(5, Counted(1));
  co_await with_children();
  co_await with_handles();
  co_await with_shield();
  try {
    co_await throws_after(1, "on purpose");
  } catch (const std::runtime_error&) {
    ++sum;
  }
  auto callable = [held = Counted(1)]() -> Task<int> { co_return held.value(); };
  sum += co_await callable;
  co_return sum;
}

template <class L>
void fail_at_every_frame() {
  long n = 0;
  for (;; ++n) {
    Failing failing(n);
    {
      L loop;
      try {
        EXPECT_EQ(run_on(loop, program()), 8);
        EXPECT_FALSE(failing.failed()) << "allocation " << n << " failed and nobody noticed";
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(failing.failed());
      }
      EXPECT_EQ(loop.strand_count(), 0u);
    }
    EXPECT_EQ(Counted::live, 0) << "after allocation " << n << " failed";
    EXPECT_EQ(failing.live(), 0) << "after allocation " << n << " failed";
    if (!failing.failed() || ::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(n, 20) << "the program has become too small to show anything";
}

TEST(OutOfMemory, AtEveryFrameIsBadAllocAndLeaksNothing) {
  fail_at_every_frame<VirtualLoop>();
  fail_at_every_frame<ThreadLoop>();
}

TEST(OutOfMemory, AnAwaitThatFailsCanBeCaughtAndTheTaskGoesOn) {
  Failing failing(2);  // the root, then one child, then none
  VirtualLoop loop;
  auto root = []() -> Task<int> {
    int caught = 0;
    for (int i = 0; i < 3; ++i) {
      Task<int> made;
      try {
        made = returns(i);
        caught += co_await std::move(made);
      } catch (const std::bad_alloc&) {
        caught += 100;
      }
    }
    co_return caught;
  };
  EXPECT_EQ(run_on(loop, root()), 102);  // 0, failed, 2
}

TEST(OutOfMemory, ANurseryChildThatCannotBeMadeLeavesTheOthersAlone) {
  Failing failing(4);
  VirtualLoop loop;
  auto root = []() -> Task<int> {
    int failed = 0;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 4; ++i) {
        try {
          n.start(yields(2));
        } catch (const std::bad_alloc&) {
          ++failed;
        }
      }
      EXPECT_EQ(n.size(), 4u);
      co_return join;
    };
    co_await with_nursery(body);
    co_return failed;
  };
  EXPECT_EQ(run_on(loop, root()), 1);
}

}  // namespace
