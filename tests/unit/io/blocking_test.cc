// SPDX-License-Identifier: MIT
#include "weft/io/blocking.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;

// Blocking work that waits until it is let go.
class Gate {
 public:
  void open() {
    open_ = true;
    open_.notify_all();
  }
  void pass() { open_.wait(false); }

 private:
  std::atomic<bool> open_ = false;
};

struct BlockingTest : test::EachLoopTest {
  static constexpr std::array kLoops{test::LoopKind::thread, test::LoopKind::runtime};
};

LOOP_TEST(BlockingTest, RunsElsewhereAndComesBack) {
  auto main = []() -> Task<int> {
    std::thread::id here = std::this_thread::get_id();
    auto work = [here] { return std::this_thread::get_id() == here ? 0 : 42; };
    int result = co_await blocking(work);
    EXPECT_EQ(std::this_thread::get_id(), here);
    co_return result;
  };
  EXPECT_EQ(test::run_on(loop, main()), 42);
}

LOOP_TEST(BlockingTest, TheLoopGoesOnMeanwhile) {
  Gate gate;
  auto main = [&]() -> Task<void> {
    auto wait = [&] { gate.pass(); };
    auto open = [&]() -> Task<void> {
      co_await yield();
      gate.open();
    };
    co_await all_of(blocking(wait), open());
  };
  test::run_on(loop, main());
}

LOOP_TEST(BlockingTest, AnErrorComesBack) {
  auto main = []() -> Task<void> {
    auto fails = [] { throw std::runtime_error("there"); };
    co_await blocking(fails);
  };
  EXPECT_THROW(test::run_on(loop, main()), std::runtime_error);
}

LOOP_TEST(BlockingTest, ResultsMayBeMovedAndReferredTo) {
  int number = 7;
  auto main = [&]() -> Task<void> {
    auto make = [] { return std::make_unique<int>(5); };
    std::unique_ptr<int> made = co_await blocking(make);
    EXPECT_EQ(*made, 5);
    auto refer = [&]() -> int& { return number; };
    int& same = co_await blocking(refer);
    EXPECT_EQ(&same, &number);
  };
  test::run_on(loop, main());
}

LOOP_TEST(BlockingTest, RunningWorkSeesItsTokenStoppedAndItsResultIsDelivered) {
  std::atomic<bool> running = false;
  bool delivered = false, next_await_reached = false;
  auto worker = [&]() -> Task<void> {
    auto work = [&](StopToken stop) {
      running = true;
      while (!stop.stop_requested()) std::this_thread::yield();
      return 3;
    };
    delivered = co_await blocking(work) == 3;  // L5
    co_await yield();
    next_await_reached = true;
  };
  auto main = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(worker);
      while (!running) co_await yield();
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  test::run_on(loop, main());
  EXPECT_TRUE(delivered);
  EXPECT_FALSE(next_await_reached);
}

// --- The pool -----------------------------------------------------------------------------------

TEST(BlockingPool, QueuedWorkIsWithdrawnAndNeverRuns) {
  Gate gate;
  std::atomic<int> ran = 0;
  IOContext ctx{{.workers = 1, .blocking = {.threads_max = 1}}};
  auto holds = [&]() -> Task<void> {
    auto work = [&] { gate.pass(); };
    co_await blocking(work);
  };
  auto queued = [&]() -> Task<void> {
    auto work = [&] { ++ran; };
    co_await blocking(work);
  };
  auto main = [&]() -> Task<void> {
    auto outer = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(holds);
      co_await yield();
      while (BlockingPool::current().statistics().queued > 0) co_await yield();  // a thread has it
      auto inner = [&](Nursery& waiting) -> Task<NurseryEnd> {
        for (int i = 0; i < 10; ++i) waiting.start(queued);
        co_await yield();
        EXPECT_EQ(BlockingPool::current().statistics().queued, 10u);
        co_return cancel;
      };
      co_await with_nursery(inner);  // ends although the thread is held
      EXPECT_EQ(BlockingPool::current().statistics().queued, 0u);
      gate.open();
      co_return join;
    };
    co_await with_nursery(outer);
  };
  ctx.run(main());
  EXPECT_EQ(ran, 0);
}

TEST(BlockingPool, ThreadsAreBounded) {
  std::atomic<int> now = 0, most = 0;
  IOContext ctx{{.workers = 2, .blocking = {.threads_max = 3}}};
  auto one = [&]() -> Task<void> {
    auto work = [&] {
      int here = ++now;
      for (int seen = most; seen < here && !most.compare_exchange_weak(seen, here);) {
      }
      std::this_thread::sleep_for(100us);
      --now;
    };
    co_await blocking(work);
  };
  for (int i = 0; i < 100; ++i) ctx.schedule(one);
  ctx.run(noop());
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 1);
}

TEST(BlockingPool, AFullQueueSaysSo) {
  Gate gate;
  IOContext ctx{{.workers = 1, .blocking = {.threads_max = 1, .queue_max = 2}}};
  auto holds = [&]() -> Task<void> {
    auto work = [&] { gate.pass(); };
    co_await blocking(work);
  };
  auto main = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(holds);
      co_await yield();
      while (BlockingPool::current().statistics().queued > 0) co_await yield();  // a thread has it
      n.start(holds);
      n.start(holds);
      co_await yield();
      EXPECT_THROW(co_await holds(), UsageError);
      gate.open();
      co_return join;
    };
    co_await with_nursery(body);
  };
  ctx.run(main());
}

TEST(BlockingPool, IdleThreadsEnd) {
  IOContext ctx{{.workers = 1, .blocking = {.idle = 1ms}}};
  auto main = [&]() -> Task<void> {
    auto work = [] {};
    co_await blocking(work);
    for (int i = 0; i < 1000 && BlockingPool::current().statistics().threads > 0; ++i) {
      co_await sleep_for(1ms);
    }
    EXPECT_EQ(BlockingPool::current().statistics().threads, 0u);
    co_await blocking(work);  // and start again
    EXPECT_GE(BlockingPool::current().statistics().done, 1u);
  };
  ctx.run(main());
}

}  // namespace
