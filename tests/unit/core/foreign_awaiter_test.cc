// SPDX-License-Identifier: MIT
// L13: any awaitable, any thread. Plain C++20 awaiters, unchanged.
#include "weft/core/foreign_awaiter.h"

#include <cerrno>
#include <coroutine>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::ThreadLoop;

struct ForeignTest : EachLoopTest {};

// --- The three kinds of await_suspend -----------------------------------------------------------

enum class When { inline_, later };

// void: resumed inside await_suspend, or through `pending` later.
struct VoidAwaiter {
  VoidAwaiter(When w, std::coroutine_handle<>& p) : when(w), pending(&p) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    if (when == When::inline_) {
      handle.resume();
    } else {
      *pending = handle;
    }
  }
  int await_resume() { return 1; }
  When when;
  std::coroutine_handle<>* pending;
};

struct BoolAwaiter : VoidAwaiter {
  using VoidAwaiter::VoidAwaiter;
  bool await_suspend(std::coroutine_handle<> handle) {
    if (when == When::inline_) return false;  // C++20's meaning: goes on at once
    *pending = handle;
    return true;
  }
};

struct HandleAwaiter : VoidAwaiter {
  using VoidAwaiter::VoidAwaiter;
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> handle) {
    if (when == When::inline_) return handle;
    *pending = handle;
    return std::noop_coroutine();
  }
};

template <class Aw>
Task<int> both_ways() {
  std::coroutine_handle<> pending;
  auto resumer = [&pending]() -> Task<void> {
    while (!pending) co_await yield();
    pending.resume();
  };
  int sum = co_await Aw(When::inline_, pending);
  StartedTask<void> r = resumer().start_in_current_scope();
  sum += co_await Aw(When::later, pending);
  co_await std::move(r);
  co_return sum;
}

LOOP_TEST(ForeignTest, AwaitSuspendMayReturnVoid) {
  EXPECT_EQ(run_on(loop, both_ways<VoidAwaiter>()), 2);
}
LOOP_TEST(ForeignTest, AwaitSuspendMayReturnBool) {
  EXPECT_EQ(run_on(loop, both_ways<BoolAwaiter>()), 2);
}
LOOP_TEST(ForeignTest, AwaitSuspendMayReturnAHandle) {
  EXPECT_EQ(run_on(loop, both_ways<HandleAwaiter>()), 2);
}

// A coroutine of somebody else's library.
struct Other {
  struct promise_type {
    Other get_return_object() {
      return Other{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit Other(std::coroutine_handle<> h) : handle(h) {}
  std::coroutine_handle<> handle;
};

LOOP_TEST(ForeignTest, ATransferToAnotherCoroutineRunsIt) {
  struct Transfer {
    explicit Transfer(bool& r) : ran(&r) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> back) {
      return coroutine(back, *ran).handle;
    }
    static Other coroutine(std::coroutine_handle<> back, bool& ran) {
      ran = true;
      back.resume();
      co_return;
    }
    void await_resume() {}
    bool* ran;
  };
  bool ran = false;
  auto body = [&]() -> Task<void> { co_await Transfer(ran); };
  run_on(loop, body());
  EXPECT_TRUE(ran);
}

LOOP_TEST(ForeignTest, AnotherLibrarysCoroutineAwaitsATask) {
  Events events;
  auto task = [&]() -> Task<int> {
    Marker frame(events, "frame");
    co_await yields(2);
    co_return 6;
  };
  auto other = [&](Gate& gate) -> Other {
    int got = co_await task();
    events.push_back(std::to_string(got));
    gate.fire();
  };
  auto body = [&]() -> Task<void> {
    Gate gate;
    other(gate).handle.resume();
    co_await gate;
    events.push_back("back");
  };
  run_on(loop, body());
  EXPECT_EQ(events, (Events{"~frame", "6", "back"}));
}

LOOP_TEST(ForeignTest, AResumeNeverRunsTheTaskInline) {
  Events events;
  auto waiter = [&](Gate& gate) -> Task<void> {
    co_await gate;
    events.push_back("resumed");
  };
  auto root = [&]() -> Task<void> {
    Gate gate;
    StartedTask<void> s = waiter(gate).start_immediate_in_current_scope();
    gate.fire();
    events.push_back("fired");
    co_await std::move(s);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"fired", "resumed"}));
}

TEST(ForeignThreads, AResumeFromAnotherThreadBringsTheTaskHome) {
  struct OnThread {
    explicit OnThread(std::thread& w) : worker(&w) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
      *worker = std::thread([handle] { handle.resume(); });
    }
    std::thread::id await_resume() { return std::this_thread::get_id(); }
    std::thread* worker;
  };
  ThreadLoop loop;
  auto body = [&]() -> Task<void> {
    for (int i = 0; i < 20; ++i) {
      std::thread worker;
      std::thread::id on = co_await OnThread(worker);
      worker.join();
      EXPECT_EQ(on, std::this_thread::get_id());
      EXPECT_EQ(Executor::current_or_null(), &loop);
    }
  };
  std::thread::id me = std::this_thread::get_id();
  run_on(loop, body());
  EXPECT_EQ(me, std::this_thread::get_id());
}

TEST(ForeignThreads, AnotherThreadMayResumeBeforeAwaitSuspendReturned) {
  struct Early {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> handle) {
      std::thread([handle] { handle.resume(); }).join();
      return true;
    }
    int await_resume() { return 3; }
  };
  ThreadLoop loop;
  auto body = []() -> Task<int> { co_return co_await Early(); };
  EXPECT_EQ(run_on(loop, body()), 3);
}

// --- Forms --------------------------------------------------------------------------------------

LOOP_TEST(ForeignTest, AReadyAwaiterDoesNotSuspend) {
  auto body = []() -> Task<void> {
    co_await std::suspend_never();
    std::suspend_never named;
    co_await named;
  };
  run_on(loop, body());
}

struct Described {
  explicit Described(int v) : value(v) {}
  struct Awaiter {
    explicit Awaiter(int v) : value(v) {}
    Awaiter(Awaiter&&) = delete;  // built in place
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) {
      self = this;
      return false;
    }
    int await_resume() {
      EXPECT_EQ(self, this);
      return value;
    }
    int value;
    Awaiter* self = nullptr;
  };
  Awaiter operator co_await() && { return Awaiter(value); }
  int value;
};

struct FreeDescribed {
  explicit FreeDescribed(int v) : value(v) {}
  int value;
};
Described::Awaiter operator co_await(FreeDescribed d) { return Described::Awaiter(d.value); }

LOOP_TEST(ForeignTest, AnAwaiterWhoseMoveIsDeletedIsBuiltInPlace) {
  auto body = []() -> Task<int> {
    int sum = co_await Described(1);
    sum += co_await FreeDescribed(2);
    co_return sum;
  };
  EXPECT_EQ(run_on(loop, body()), 3);
}

LOOP_TEST(ForeignTest, ACallableThatReturnsAnAwaiterIsAwaited) {
  auto body = []() -> Task<int> {
    std::coroutine_handle<> pending;
    auto make = [&pending] { return BoolAwaiter(When::inline_, pending); };
    int sum = co_await make;
    auto describe = [] { return Described(5); };
    sum += co_await describe;
    co_return sum;
  };
  EXPECT_EQ(run_on(loop, body()), 6);
}

LOOP_TEST(ForeignTest, ExceptionsOfEveryStepReachTheAwaitingTask) {
  struct Throws {
    explicit Throws(int s) : step(s) {}
    bool await_ready() {
      if (step == 0) throw std::runtime_error("ready");
      return false;
    }
    bool await_suspend(std::coroutine_handle<>) {
      if (step == 1) throw std::runtime_error("suspend");
      return false;
    }
    void await_resume() {
      if (step == 2) throw std::runtime_error("resume");
    }
    int step;
  };
  auto body = [](int step) -> Task<std::string> {
    try {
      co_await Throws(step);
    } catch (const std::runtime_error& error) {
      co_return error.what();
    }
    co_return "none";
  };
  EXPECT_EQ(run_on(loop, body(0)), "ready");
  EXPECT_EQ(run_on(loop, body(1)), "suspend");
  EXPECT_EQ(run_on(loop, body(2)), "resume");
}

// --- Seed 002's AsyncRead, in its three forms ---------------------------------------------------

// One read at a time, completed by the test.
struct Reads {
  std::function<void(long)> callback;
  void complete(long result) { std::exchange(callback, nullptr)(result); }
};

struct PlainRead {  // cannot be cancelled
  explicit PlainRead(Reads& r) : reads(&r) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    reads->callback = [handle, this](long r) {
      result = r;
      handle.resume();
    };
  }
  [[nodiscard]] long await_resume() const { return result; }
  Reads* reads;
  long result = 0;
};
struct AbortableRead : PlainRead {  // cancelled at once
  using PlainRead::PlainRead;
  auto await_cancel(std::coroutine_handle<>) noexcept {
    reads->callback = nullptr;
    return std::true_type{};
  }
};
struct AskedRead : PlainRead {  // cancelled later, or completed after all
  using PlainRead::PlainRead;
  bool await_cancel(std::coroutine_handle<>) noexcept { return false; }
  [[nodiscard]] bool await_must_resume() const noexcept { return result != -ECANCELED; }
};

struct Ended {
  Outcome<void> how = Outcome<void>::value({});
  long got = 0;
};

// Cancels a task in the middle of a read, then lets the read complete with `result`, if it can.
template <class Read>
Task<void> cancel_a_read(long result, Ended& ended) {
  Reads reads;
  auto reader = [&]() -> Task<void> {
    ended.got = co_await Read(reads);
    co_await yield();
    ended.got = -1;
  };
  StartedTask<void> s = reader().start_immediate_in_current_scope();
  s.cancel();
  co_await yields(2);
  if (reads.callback) reads.complete(result);
  ended.how = co_await s.outcome();
}

LOOP_TEST(ForeignTest, AsyncReadWithoutCancelDeliversAndIsCancelledAtTheNextAwait) {
  Ended ended;
  run_on(loop, cancel_a_read<PlainRead>(5, ended));
  EXPECT_TRUE(ended.how.is_cancelled());
  EXPECT_EQ(ended.got, 5);
}
LOOP_TEST(ForeignTest, AsyncReadThatCancelsAtOnceEndsThere) {
  Ended ended;
  run_on(loop, cancel_a_read<AbortableRead>(5, ended));
  EXPECT_TRUE(ended.how.is_cancelled());
  EXPECT_EQ(ended.got, 0);
}
LOOP_TEST(ForeignTest, AsyncReadThatConfirmsLaterIsCancelledThen) {
  Ended ended;
  run_on(loop, cancel_a_read<AskedRead>(-ECANCELED, ended));
  EXPECT_TRUE(ended.how.is_cancelled());
  EXPECT_EQ(ended.got, 0);
}
LOOP_TEST(ForeignTest, AsyncReadThatCompletedAfterAllDeliversItsBytes) {
  Ended ended;
  run_on(loop, cancel_a_read<AskedRead>(7, ended));
  EXPECT_TRUE(ended.how.is_cancelled());
  EXPECT_EQ(ended.got, 7);
}

}  // namespace
