// SPDX-License-Identifier: MIT
// A loop whose EventLoopTraits have no post(): nobody can wake it from outside. Its own tasks wait for
// each other as anywhere; who has to notify one of them from another thread ends the process, because
// that task would wait for ever.
#include <atomic>
#include <chrono>
#include <thread>

#include "support/loop_fixture.h"
#include "support/toy_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;

TEST(LoopWithoutPost, ItsOwnTasksTakeTurns) {
  ToyLoop loop;
  Mutex mutex;
  Events events;
  auto visit = [&](const char* name) -> Task<void> {
    auto lock = co_await mutex.lock();
    events.push_back(name);
    co_await yield();
  };
  auto main = [&]() -> Task<void> {
    auto held = co_await mutex.lock();
    StartedTask<void> a = visit("a").start_in_current_scope();
    StartedTask<void> b = visit("b").start_in_current_scope();
    StartedTask<void> c = visit("c").start_in_current_scope();
    co_await yields(2);
    b.cancel();
    held.unlock();
    co_await std::move(a);
    co_await std::move(c);
    EXPECT_TRUE(b.is_done());
  };
  run(loop, main());
  EXPECT_EQ(events, (Events{"a", "c"}));
  EXPECT_FALSE(mutex.is_locked());
}

class LoopWithoutPostDeathTest : public ::testing::Test {
 protected:
  static constexpr const char* kWords = "from another thread needs EventLoopTraits::post";

  LoopWithoutPostDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Runs the task; `waits_` is set as soon as there is nothing left to do but to wait.
  void wait_here(Task<void> task) {
    loop_.on_idle = [this] {
      waits_ = true;
      std::this_thread::yield();
    };
    run(loop_, std::move(task));
  }

  ToyLoop loop_;
  std::atomic<bool> waits_ = false;
};

TEST_F(LoopWithoutPostDeathTest, AnUnlockElsewhereThatWouldHaveToWakeAWaiterThere) {
  auto misuse = [&] {
    Mutex mutex;
    std::atomic<bool> held = false;
    LoopThread other;
    auto holds = [&]() -> Task<void> {
      auto lock = co_await mutex.lock();
      held = true;
      while (!waits_) co_await yield();
    };
    auto waits = [&]() -> Task<void> {
      while (!held) std::this_thread::yield();
      auto lock = co_await mutex.lock();
    };
    other.lease().start(holds());
    wait_here(waits());
  };
  EXPECT_DEATH(misuse(), kWords);
}

TEST_F(LoopWithoutPostDeathTest, AnEventThatIsSetByAThread) {
  auto misuse = [&] {
    Event event;
    std::thread sets([&] {
      while (!waits_) std::this_thread::yield();
      event.set();
    });
    auto waits = [&]() -> Task<void> { co_await event.wait(); };
    wait_here(waits());
    sets.join();
  };
  EXPECT_DEATH(misuse(), kWords);
}

}  // namespace
