// SPDX-License-Identifier: MIT
#include "weft/core/event_loop.h"

#include <atomic>
#include <functional>
#include <future>
#include <stdexcept>
#include <thread>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"
#include "support/toy_loop.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST(EventLoop, FourFunctionsSuffice) {
  ToyLoop loop;
  Gate gate;
  Events events;
  auto main = [&]() -> Task<int> {
    co_await all_of(yields(3), gate);
    events.push_back("resumed");
    co_return 5;
  };
  loop.queue.push_back([&] {
    gate.fire();
    events.push_back("callback");
  });
  EXPECT_EQ(run(loop, main()), 5);
  EXPECT_TRUE(events == (Events{"resumed", "callback"}) ||
              events == (Events{"callback", "resumed"}));
}

TEST(EventLoop, ATaskThatNeverWaitsNeedsNoLoop) {
  ToyLoop loop;
  EXPECT_EQ(run(loop, returns(3)), 3);
  EXPECT_THROW(run(loop, throws_after(1, "main")), std::runtime_error);
  EXPECT_EQ(run(loop, returns(4)), 4) << "and it can be used again";
}

TEST(EventLoop, SleepingWithoutCallAtSaysWhatIsMissing) {
  ToyLoop loop;
  auto main = []() -> Task<void> { co_await sleep_for(1ms); };
  try {
    run(loop, main());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("call_at"), std::string::npos);
  }
}

TEST(EventLoop, ALoopStoppedBySomeoneElseEndsTheTask) {
  ToyLoop loop;
  Events events;
  loop.queue.push_back([&] { loop.stopping = true; });
  EXPECT_THROW(run(loop, parked_with(events, "main")), UsageError);
  EXPECT_EQ(events, (Events{"~main"}));
}

// ... and all that it started, which takes more than one turn, on a loop that calls back no more.
template <class L>
void stopped_with_an_open_nursery(L& loop, const std::function<void()>& when_parked) {
  Events events;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(parked_with(events, "a"));
    n.start(parked_with(events, "b"));
    co_await yields(4);
    when_parked();
    co_return join;
  };
  auto main = [&]() -> Task<void> { co_await with_nursery(body); };
  EXPECT_THROW(run(loop, main()), UsageError);
  EXPECT_EQ(events, (Events{"~a", "~b"}));
}

TEST(EventLoop, ALoopStoppedBySomeoneElseEndsANurseryWithoutPost) {
  ToyLoop loop;
  stopped_with_an_open_nursery(loop, [] {});  // it stops when its queue is empty
}
TEST(EventLoop, ALoopStoppedBySomeoneElseEndsANurseryWithPost) {
  FullLoop loop;
  stopped_with_an_open_nursery(loop, [&] { loop.post([&] { loop.stopping = true; }); });
}

// stop() from a callback of a loop that cannot be posted to runs its end on the spot.
TEST(EventLoop, StopFromACallbackOfALoopWithoutPostEndsTheTask) {
  ToyLoop loop;
  Events events;
  Loop* inside = nullptr;
  auto main = [&]() -> Task<void> {
    inside = dynamic_cast<Loop*>(Executor::current_or_null());
    Marker marker(events, "main");
    co_await suspend_forever();
  };
  loop.on_idle = [&] { inside->stop(); };
  EXPECT_THROW(run(loop, main()), TaskCancelled);
  EXPECT_EQ(events, (Events{"~main"}));
}

TEST(EventLoop, WithCallAtTimersWork) {
  FullLoop loop;
  auto main = []() -> Task<int> {
    auto late = co_await timeout(1ms, suspend_forever());
    auto [slow, quick] = co_await any_of(sleep_for(1h), sleep_for(1ms));
    co_return late.has_value() || slow ? 0 : 1;
  };
  EXPECT_EQ(run(loop, main()), 1);
  EXPECT_EQ(loop.timers.size(), 1u) << "the loop cannot take the long one back; it does nothing";
  loop.timers.begin()->second();
}

TEST(EventLoop, WithPostAnotherThreadMayResumeAndCancel) {
  FullLoop loop;
  auto main = []() -> Task<int> {
    std::thread other;
    auto init = [&](auto done) { other = std::thread([done] { done(2); }); };
    int value = co_await until_callback<void(int)>(init);
    other.join();
    StartedTask<void> s = parked().start_in_current_scope();
    CancelHandle handle = s.cancel_handle();
    std::thread canceller([&] { handle.cancel(); });
    Outcome<void> how = co_await s.outcome();
    canceller.join();
    co_return how.is_cancelled() ? value : 0;
  };
  EXPECT_EQ(run(loop, main()), 2);
}

// A thread cancels a task that ends just then: its kick may arrive after the root's end (L12).
TEST(EventLoop, ACancelThatRacesTheEndIsWaitedFor) {
  constexpr int kRounds = 30;
  std::atomic<const CancelHandle*> offered = nullptr;
  std::atomic<bool> over = false;
  std::thread canceller([&] {
    while (!over) {
      const CancelHandle* target = offered;
      if (!target) {
        std::this_thread::yield();
        continue;
      }
      target->cancel();
      offered = nullptr;
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    FullLoop loop;
    CancelHandle handle;
    auto main = [&]() -> Task<void> {
      StartedTask<void> s = yields(round % 3).start_in_current_scope();
      handle = s.cancel_handle();
      offered = &handle;
      static_cast<void>(co_await s.outcome());
    };
    run(loop, main());
    while (offered) std::this_thread::yield();
  }
  over = true;
  canceller.join();
}

// What a callback of the loop makes ready without resuming anything: a start, a cancel.
template <class L>
void work_from_callbacks() {
  L loop;
  Events events;
  Nursery* open = nullptr;
  StartedTask<void> victim;
  auto child = [&]() -> Task<void> {
    co_await yield();
    events.push_back("child");
    open->cancel();
  };
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    open = &n;
    co_await suspend_forever();
    co_return join;
  };
  auto main = [&]() -> Task<void> {
    victim = parked_with(events, "victim").start_in_current_scope();
    co_await with_nursery(body);
  };
  auto call = [&](const std::function<void()>& fn) {
    if constexpr (std::is_same_v<L, FullLoop>) {
      loop.post(fn);
    } else {
      loop.queue.push_back(fn);
    }
  };
  std::function<void()> start = [&] {
    open->start(child);
    events.push_back("callback ends");
  };
  std::function<void()> stop = [&] {
    if (!open) return call(stop);  // it has not come that far
    victim.cancel();
    call(start);
  };
  call(stop);
  run(loop, main());
  EXPECT_EQ(events, (Events{"~victim", "callback ends", "child"}));
}
TEST(EventLoop, ACallbackMayStartAndCancelTasks) { work_from_callbacks<FullLoop>(); }
TEST(EventLoop, ACallbackMayStartAndCancelTasksWithFourFunctions) {
  work_from_callbacks<ToyLoop>();
}

// L2: a task that resumes another, directly or in a callback that it causes, goes on first.
TEST(EventLoop, WithFourFunctionsTasksDoNotRunInsideTasks) {
  ToyLoop loop;
  Gate gate, inner, last;
  Events events;
  auto waits = [&](Gate& at, std::string name) -> Task<void> {
    co_await at;
    events.push_back(name);
  };
  auto fires = [&]() -> Task<void> {
    co_await gate;
    events.push_back("fires");
    loop.queue.front()();  // a callback inside of a task: what a nested event loop does
    loop.queue.pop_front();
    events.push_back("fired");
  };
  loop.queue.push_back([&] {
    gate.fire();
    events.push_back("outer callback ends");
  });
  loop.queue.push_back([&] {
    inner.fire();
    events.push_back("inner callback ends");
  });
  loop.queue.push_back([&] { last.fire(); });
  auto main = [&]() -> Task<void> {
    co_await all_of(fires(), waits(inner, "inner"), waits(last, "last"));
  };
  run(loop, main());
  // The outermost callback's resume runs all that it leads to, before it returns.
  EXPECT_EQ(events, (Events{"fires", "inner callback ends", "fired", "inner", "outer callback ends",
                            "last"}));
}

TEST(EventLoop, WithFourFunctionsNoTaskComesOrGoes) {
  ToyLoop loop;
  weft::testing::LoopThread other;
  auto main = [&]() -> Task<int> {
    Executor& here = Executor::current("the test");
    int refused = 0;
    auto count = [&](const UsageError& error) {
      refused += std::string(error.what()).find("EventLoopTraits::post") != std::string::npos;
    };
    try {
      co_await on(other.executor(), returns(1));
    } catch (const UsageError& error) {
      count(error);
    }
    try {
      co_await resume_on(other.executor());
    } catch (const UsageError& error) {
      count(error);
    }
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      try {
        n.start_on(other.executor(), parked());
      } catch (const UsageError& error) {
        count(error);
      }
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_EQ(co_await on(here, returns(1)), 1) << "on itself it works";
    std::promise<bool> refused_there;
    auto comes = [&](Executor& to) -> Task<void> {
      try {
        co_await on(to, returns(1));
        refused_there.set_value(false);
      } catch (const UsageError&) {
        refused_there.set_value(true);
      }
    };
    other.lease().start(comes(here));
    refused += refused_there.get_future().get();
    co_return refused;
  };
  EXPECT_EQ(run(loop, main()), 4);
}

TEST(EventLoop, WithPostTasksComeAndGo) {
  FullLoop loop;
  weft::testing::LoopThread other;
  auto main = [&]() -> Task<int> {
    Executor& here = Executor::current("the test");
    auto back = [&]() -> Task<int> {
      co_await resume_on(here);
      EXPECT_TRUE(here.is_current());
      co_return 2;
    };
    int value = co_await on(other.executor(), back());
    co_await resume_on(other.executor());
    EXPECT_FALSE(here.is_current());
    co_return value * 10 + co_await on(here, returns(3));
  };
  EXPECT_EQ(run(loop, main()), 23);
}

TEST(EventLoop, ALoopStoppedBySomeoneElseEndsItsGuests) {
  FullLoop loop;
  weft::testing::LoopThread other;
  StartedTask<void> waiter;
  std::atomic<bool> there = false;
  auto guest = [&]() -> Task<void> {
    there = true;
    co_await suspend_forever();
  };
  auto main = [&]() -> Task<void> {
    Executor& here = Executor::current("the test");
    auto sends = [&](Executor& to) -> Task<void> { co_await on(to, guest()); };
    waiter = sends(here).start_with_parent_scope(other.lease());
    while (!there) co_await yield();
    loop.post([&] { loop.stopping = true; });
    co_await suspend_forever();
  };
  EXPECT_THROW(run(loop, main()), UsageError);
  weft::testing::ThreadLoop reader;
  auto read = [&]() -> Task<void> {
    Outcome<void> how = co_await waiter.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(reader, read());
}

TEST(EventLoop, ARunInsideARunOfTheSameLoopIsRefusedAndOfAnotherAllowed) {
  ToyLoop outer;
  FullLoop inner;
  auto main = [&]() -> Task<int> {
    EXPECT_THROW(run(outer, returns(1)), UsageError);
    auto nested = [&]() -> Task<int> {
      EXPECT_THROW(run(outer, returns(1)), UsageError);
      EXPECT_THROW(run(inner, returns(1)), UsageError);
      co_await sleep_for(1us);
      co_return 6;
    };
    int value = run(inner, nested());
    co_await yield();
    co_return value;
  };
  EXPECT_EQ(run(outer, main()), 6);
}

}  // namespace
