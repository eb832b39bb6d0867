// SPDX-License-Identifier: MIT
// L6 after the end: a foreign handle that is used when its co_await is over. Only debug builds keep
// the record that tells.
#include <coroutine>
#include <stdexcept>
#include <thread>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"
#include "weft/core/foreign_awaiter.h"

#ifdef WEFT_AWAITABLE_STATE_DEBUG

namespace {

using namespace weft;
using namespace weft::test;
using weft::detail::kQuarantinedFrames;
using weft::detail::quarantine_size;
using weft::testing::VirtualLoop;

// Leaves its handle with the test, and ends as the test says.
struct Leaky {
  enum class Ends { resumed, not_suspended, thrown, cancelled };
  Leaky(std::coroutine_handle<>& h, Ends e) : handle(&h), ends(e) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> given) {
    *handle = given;
    if (ends == Ends::not_suspended) return false;
    if (ends == Ends::thrown) throw std::runtime_error("not begun");
    if (ends == Ends::resumed) given.resume();
    return true;
  }
  void await_resume() {}
  auto await_cancel(std::coroutine_handle<>) noexcept { return std::true_type{}; }

  std::coroutine_handle<>* handle;
  Ends ends;
};

// The handle of a wait that is over, and whose frame is gone.
std::coroutine_handle<> stale_handle(Leaky::Ends ends) {
  std::coroutine_handle<> handle;
  VirtualLoop loop;
  auto waiter = [&]() -> Task<void> { co_await Leaky(handle, ends); };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = waiter().start_immediate_in_current_scope();
    if (ends == Leaky::Ends::cancelled) s.cancel();
    static_cast<void>(co_await s.outcome());
  };
  run_on(loop, root());
  return handle;
}

class LateDeathTest : public ::testing::TestWithParam<Leaky::Ends> {};

TEST_P(LateDeathTest, ALateResumeIsReportedWithTheAwaitersName) {
  std::coroutine_handle<> handle = stale_handle(GetParam());
  EXPECT_DEATH(handle.resume(), "gave to .*Leaky was resumed late.*L6: .*after the wait has ended");
}

TEST_P(LateDeathTest, ALateDestroyIsReported) {
  std::coroutine_handle<> handle = stale_handle(GetParam());
  EXPECT_DEATH(handle.destroy(), "gave to .*Leaky was destroyed late");
}

TEST_P(LateDeathTest, ALateResumeOnAnotherThreadIsReported) {
  std::coroutine_handle<> handle = stale_handle(GetParam());
  EXPECT_DEATH(std::thread([handle] { handle.resume(); }).join(), "was resumed late");
}

INSTANTIATE_TEST_SUITE_P(Ends, LateDeathTest,
                         ::testing::Values(Leaky::Ends::resumed, Leaky::Ends::not_suspended,
                                           Leaky::Ends::thrown, Leaky::Ends::cancelled));

TEST(Quarantine, HoldsTheNewestUpToItsBound) {
  std::coroutine_handle<> oldest = stale_handle(Leaky::Ends::resumed);
  auto waits = [](std::size_t count) -> Task<void> {
    std::coroutine_handle<> handle;
    for (std::size_t i = 0; i < count; ++i) co_await Leaky(handle, Leaky::Ends::not_suspended);
  };
  VirtualLoop loop;
  run_on(loop, waits(kQuarantinedFrames - 1));
  EXPECT_EQ(quarantine_size(), kQuarantinedFrames);
  EXPECT_DEATH(oldest.resume(), "was resumed late");  // the last place
  run_on(loop, waits(3 * kQuarantinedFrames));
  EXPECT_EQ(quarantine_size(), kQuarantinedFrames);
}

TEST(Quarantine, AWaitThatIsReadyTakesNoPlace) {
  std::coroutine_handle<> late = stale_handle(Leaky::Ends::resumed);
  auto ready = []() -> Task<void> {
    for (std::size_t i = 0; i < 2 * kQuarantinedFrames; ++i) co_await std::suspend_never();
  };
  VirtualLoop loop;
  run_on(loop, ready());
  EXPECT_DEATH(late.resume(), "was resumed late");
}

// Many threads end waits at once; the quarantine is the one thing that they share.
TEST(Quarantine, IsFilledFromManyThreads) {
  auto waits = [](int count) -> Task<void> {
    std::coroutine_handle<> handle;
    for (int i = 0; i < count; ++i) co_await Leaky(handle, Leaky::Ends::resumed);
  };
  auto worker = [&] {
    VirtualLoop loop;
    run_on(loop, waits(1000));
  };
  std::thread other(worker);
  worker();
  other.join();
  EXPECT_EQ(quarantine_size(), kQuarantinedFrames);
}

}  // namespace

#endif
