// SPDX-License-Identifier: MIT
#include "weft/testing/virtual_loop.h"

#include <optional>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::Stuck;
using weft::testing::VirtualLoop;

// Starts a task on the loop that it is posted to, as a child of a scope elsewhere.
struct StartThere : Runnable {
  StartThere(PromiseChildLease l, Task<void> t)
      : Runnable(&start), lease(std::move(l)), task(std::move(t)) {}
  static void start(Runnable& self) noexcept {
    auto& here = static_cast<StartThere&>(self);
    here.started = std::move(here.task).start_immediate_with_parent_scope(std::move(here.lease));
  }
  PromiseChildLease lease;
  Task<void> task;
  StartedTask<void> started;
};

TEST(VirtualLoop, NothingToDoAndNotDoneIsStuckWithTheTree) {
  VirtualLoop loop;
  try {
    run(loop, parked());
    FAIL();
  } catch (const Stuck& stuck) {
    EXPECT_NE(std::string(stuck.what()).find("suspend_forever"), std::string::npos);
  }
}

TEST(VirtualLoop, TimeStandsStillWhileAnythingCanRunOnAnyLoop) {
  VirtualLoop loop;
  VirtualLoop other(loop);
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartThere there(scope.lease(), yields(100));
    other.post(there);
    co_await sleep_for(1ms);
    EXPECT_EQ(other.strand_count(), 0u);
  };
  run(loop, root());
}

// A kick that only hands itself on to a loop that had its turn already is work too: neither does
// time pass, nor is the world stuck.
TEST(VirtualLoop, AKickOnItsWayToAnotherLoopIsNotIdleness) {
  VirtualLoop first;
  VirtualLoop second(first);
  VirtualLoop third(first);
  std::optional<StartThere> on_first;
  auto parent = [&]() -> Task<void> {  // ends, and waits for its child
    Scope& scope = co_await current_scope();
    on_first.emplace(scope.lease(), parked());
    first.post(*on_first);
  };
  auto root = [&](bool with_timer) -> Task<void> {
    Scope& scope = co_await current_scope();
    StartThere on_second(scope.lease(), parent());
    second.post(on_second);
    co_await sleep_for(1ms);
    on_second.started.cancel();
    if (with_timer) {
      auto [how, late] = co_await any_of(on_second.started.outcome(), sleep_for(1ms));
      EXPECT_TRUE(how.has_value());
    } else {
      static_cast<void>(co_await on_second.started.outcome());
    }
  };
  run(third, root(true));
  EXPECT_EQ(first.elapsed(), 1ms);
  EXPECT_NO_THROW(run(third, root(false)));
}

TEST(VirtualLoop, TheSameSeedGivesTheSameOrder) {
  auto order = [](std::uint64_t seed) {
    VirtualLoop loop;
    loop.shuffle_by(seed);
    Events events;
    auto child = [&](int i) -> Task<void> {
      co_await yield();
      events.push_back(std::to_string(i));
    };
    auto root = [&]() -> Task<void> {
      std::vector<Task<void>> children;
      for (int i = 0; i < 8; ++i) children.push_back(child(i));
      co_await all_of(std::move(children));
    };
    run(loop, root());
    return events;
  };
  EXPECT_EQ(order(0), (Events{"0", "1", "2", "3", "4", "5", "6", "7"}));
  EXPECT_EQ(order(42), order(42));
  EXPECT_NE(order(42), order(0));
}

}  // namespace
