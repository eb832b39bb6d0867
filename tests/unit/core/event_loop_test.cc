// SPDX-License-Identifier: MIT
#include "weft/core/event_loop.h"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

// Somebody else's event loop: a queue of functions. Idle time is not waited for: `on_idle` says what
// happens then.
struct ToyLoop {
  std::deque<std::function<void()>> queue;
  std::function<void()> on_idle;
  bool stopping = false;
  bool running = false;

  void exec() {
    running = true;
    stopping = false;
    while (!stopping) {
      if (queue.empty()) {
        if (!on_idle) break;
        on_idle();
        continue;
      }
      auto fn = std::move(queue.front());
      queue.pop_front();
      fn();
    }
    running = false;
  }
};
// The same with post() from any thread and call_at().
struct FullLoop : ToyLoop {
  std::mutex mutex;
  std::deque<std::function<void()>> posted;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> timers;

  void post(std::function<void()> fn) {
    std::lock_guard lock(mutex);
    posted.push_back(std::move(fn));
  }
  void idle() {
    {
      std::lock_guard lock(mutex);
      while (!posted.empty()) {
        queue.push_back(std::move(posted.front()));
        posted.pop_front();
      }
    }
    if (!queue.empty() || timers.empty()) {
      std::this_thread::yield();
      return;
    }
    auto next = timers.begin();
    if (next->first > std::chrono::steady_clock::now()) return;
    queue.push_back(std::move(next->second));
    timers.erase(next);
  }
};

}  // namespace

template <>
struct weft::EventLoopTraits<ToyLoop> {
  static void run(ToyLoop& loop) { loop.exec(); }
  static void stop(ToyLoop& loop) { loop.stopping = true; }
  static bool is_running(ToyLoop&) noexcept { return false; }
  static EventLoopID event_loop_id(ToyLoop& loop) { return EventLoopID(&loop); }
};
template <>
struct weft::EventLoopTraits<FullLoop> {
  static void run(FullLoop& loop) {
    loop.on_idle = [&] { loop.idle(); };
    loop.exec();
  }
  static void stop(FullLoop& loop) { loop.stopping = true; }
  static bool is_running(FullLoop& loop) noexcept { return loop.running; }
  static EventLoopID event_loop_id(FullLoop& loop) { return EventLoopID(&loop); }
  static void post(FullLoop& loop, void (*fn)(void*), void* context) {
    loop.post([=] { fn(context); });
  }
  static void call_at(FullLoop& loop, std::chrono::steady_clock::time_point when, void (*fn)(void*),
                      void* context) {
    loop.timers.emplace(when, [=] { fn(context); });
  }
};

namespace {

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
