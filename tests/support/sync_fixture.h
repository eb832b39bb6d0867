// SPDX-License-Identifier: MIT
#pragma once
// What the tests of sync/ share: a fixture with a book of what happened, and the scenes that every
// primitive must pass. A scene takes the wait as a callable: [&] { return event.wait(); }
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace weft::test {

using namespace std::chrono_literals;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

struct SyncTest : EachLoopTest {
  Events events;
  int asked = 0;  // how many times a task has come to the wait in question

  // Starts it there, and waits until it has asked: it stands in the queue then, or is through.
  // Requires: the task counts itself in the step in which it asks.
  Task<StartedTask<void>> begin(Scope& scope, Task<void> task) {
    const int before = asked;
    StartedTask<void> started = std::move(task).start(scope);
    while (asked == before) co_await yield();
    co_return started;
  }
  // Waits until tasks have asked so many times. One after the other they stand in the order of their start.
  Task<void> until_asked(int times) {
    while (asked < times) co_await yield();
  }
};

// Those who are woken together go on as their loop likes, and with WEFT_CHAOS_SEED it likes anything.
inline Events in_any_order(Events events) {
  std::sort(events.begin(), events.end());
  return events;
}

// They go on in the order in which they were woken, unless the loop shuffles. For both sides of an EXPECT_EQ.
inline Events in_ring_order(Events events) {
  return detail::Chaos::enabled() ? in_any_order(std::move(events)) : events;
}

// A task that is cancelled before it waits does not go on, even if it would not have to wait.
template <class Wait>
Task<void> wait_when_cancelled(Wait& wait) {
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    scope.cancel();
    static_cast<void>(co_await wait());
    ADD_FAILURE() << "went on";
  };
  StartedTask<void> started = body().start_in_current_scope();
  Outcome<void> how = co_await started.outcome();
  EXPECT_TRUE(how.is_cancelled());
}

// Two loops of one thread.
struct TwoLoops : ::testing::Test {
  VirtualLoop a;
  VirtualLoop b{a};

  // One has what hold() gives, and three wait, two of them elsewhere: each goes on where it awaited.
  template <class Hold, class Wait>
  void expect_to_go_on_where_they_awaited(Hold hold, Wait wait) {
    std::vector<Executor*> seen;
    auto waits = [&]() -> Task<void> {
      auto held = co_await wait();
      seen.push_back(Executor::current_or_null());
    };
    auto root = [&]() -> Task<void> {
      std::optional held(co_await hold());
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        n.start_on(b, waits());
        n.start(waits());
        n.start_on(b, waits());
        co_await sleep_for(1ms);
        EXPECT_TRUE(seen.empty());
        held.reset();
        co_return join;
      };
      co_await with_nursery(body);
    };
    run(a, root());
    EXPECT_EQ(seen.size(), 3u);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), &b), 2);
  }
};

// It waits on another loop, and the post that notifies it is under way there when the cancel comes.
template <class Wait, class Notify>
void cancel_while_notified_elsewhere(Wait wait, Notify notify) {
  VirtualLoop a;
  VirtualLoop b{a};
  auto there = [&]() -> Task<void> {
    static_cast<void>(co_await wait());
    ADD_FAILURE() << "went on";
  };
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(b, there());
      co_await sleep_for(1ms);
      notify();
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  run(a, root());
}

// For EXPECT_DEATH. `wait` takes the thing.
template <class Thing, class Wait>
void destroy_while_awaited(std::unique_ptr<Thing> thing, Wait wait) {
  VirtualLoop loop;
  auto waits = [&]() -> Task<void> { static_cast<void>(co_await wait(*thing)); };
  auto root = [&]() -> Task<void> {
    StartedTask<void> started = waits().start_in_current_scope();
    co_await yields(2);
    thing.reset();
  };
  run(loop, root());
}

}  // namespace weft::test
