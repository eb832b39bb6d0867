// SPDX-License-Identifier: MIT
// Seed 002's state machine: every path through it that a Task can drive, by an awaiter that writes
// down what is called.
#include <coroutine>
#include <utility>

#include "support/loop_fixture.h"
#include "weft/core/concepts.h"

namespace {

using namespace weft;
using namespace weft::test;

struct ProtocolTest : EachLoopTest {};

// What the awaiter answers, and what it was asked.
struct Script {
  bool ready = false;
  bool early_cancel = false;
  bool suspends = true;  // what await_suspend returns
  bool cancel = false;
  bool resumes_in_cancel = false;
  bool must_resume = false;
  Events calls;
  std::coroutine_handle<> handle;
  int went_on = 0;

  void resume() { std::exchange(handle, nullptr).resume(); }
};

class Instrumented {
 public:
  explicit Instrumented(Script& script) : script_(&script) {}
  Instrumented(Instrumented&&) = delete;
  ~Instrumented() { note("destroyed"); }

  [[nodiscard]] bool await_ready() const {
    note("ready");
    return script_->ready;
  }
  bool await_suspend(std::coroutine_handle<> handle) {
    note("suspend");
    if (script_->suspends) script_->handle = handle;
    return script_->suspends;
  }
  int await_resume() {
    note("resume");
    return 1;
  }
  bool await_early_cancel() noexcept {
    note("early");
    return script_->early_cancel;
  }
  bool await_cancel(std::coroutine_handle<> handle) noexcept {
    note("cancel");
    EXPECT_EQ(handle, script_->handle);  // the one that await_suspend was given
    if (script_->resumes_in_cancel) script_->resume();
    return script_->cancel;
  }
  [[nodiscard]] bool await_must_resume() const noexcept {
    note("must");
    return script_->must_resume;
  }
  void await_set_executor(Executor* executor) noexcept {
    note("executor");
    EXPECT_EQ(executor, Executor::current_or_null());
  }

 private:
  void note(const char* what) const { script_->calls.push_back(what); }
  Script* script_;
};

Task<void> user(Script& script) { script.went_on += co_await Instrumented(script); }
Task<void> cancelled_user(Script& script) {
  Scope& scope = co_await current_scope();
  scope.cancel();
  script.went_on += co_await Instrumented(script);
}

// Starts user(), cancels it while it waits if asked to, resumes it if it still waits.
Task<Outcome<void>> drive(Script& script, bool cancel_it) {
  StartedTask<void> s = user(script).start_immediate_in_current_scope();
  if (cancel_it) s.cancel();
  co_await yields(2);
  if (script.handle && !s.is_done()) script.resume();
  co_return co_await s.outcome();
}
Task<Outcome<void>> drive_cancelled(Script& script) {
  StartedTask<void> s = cancelled_user(script).start_immediate_in_current_scope();
  co_await yields(2);
  if (script.handle && !s.is_done()) script.resume();
  co_return co_await s.outcome();
}

// await_must_resume() was asked last, and what it answered came to pass.
void expect_decided(const Outcome<void>& how, const Script& script, Events calls) {
  bool must = script.must_resume;
  EXPECT_EQ(how.has_value(), must);
  if (must) calls.push_back("resume");
  calls.push_back("destroyed");
  EXPECT_EQ(script.calls, calls);
  EXPECT_EQ(script.went_on, must ? 1 : 0);
}

// --- Not cancelled ------------------------------------------------------------------------------

LOOP_TEST(ProtocolTest, InitialReadyDone) {
  Script script;
  script.ready = true;
  EXPECT_TRUE(run_on(loop, drive(script, false)).has_value());
  EXPECT_EQ(script.calls, (Events{"ready", "resume", "destroyed"}));
}

LOOP_TEST(ProtocolTest, InitialNotReadyRunningReadyDone) {
  Script script;
  EXPECT_TRUE(run_on(loop, drive(script, false)).has_value());
  EXPECT_EQ(script.calls, (Events{"ready", "executor", "suspend", "resume", "destroyed"}));
  EXPECT_EQ(script.went_on, 1);
}

LOOP_TEST(ProtocolTest, ASuspendThatReturnsFalseGoesOnAtOnce) {
  Script script;
  script.suspends = false;
  EXPECT_TRUE(run_on(loop, drive(script, false)).has_value());
  EXPECT_EQ(script.calls, (Events{"ready", "executor", "suspend", "resume", "destroyed"}));
}

// --- Cancelled before it starts -----------------------------------------------------------------

LOOP_TEST(ProtocolTest, EarlyCancelTrueNeverStarts) {
  for (bool ready : {false, true}) {
    Script script;
    script.early_cancel = true;
    script.ready = ready;
    EXPECT_TRUE(run_on(loop, drive_cancelled(script)).is_cancelled());
    EXPECT_EQ(script.calls.front(), "early");
    EXPECT_EQ(script.calls.back(), "destroyed");
    for (const std::string& call : script.calls) {
      EXPECT_TRUE(call == "early" || call == "ready" || call == "destroyed") << call;
    }
    EXPECT_EQ(script.went_on, 0);
  }
}

LOOP_TEST(ProtocolTest, EarlyCancelFalseAndReadyAsksMustResumeTrue) {
  Script script;
  script.ready = true;
  script.must_resume = true;
  EXPECT_TRUE(run_on(loop, drive_cancelled(script)).has_value());
  EXPECT_EQ(script.calls, (Events{"early", "ready", "must", "resume", "destroyed"}));
  EXPECT_EQ(script.went_on, 1);
}

LOOP_TEST(ProtocolTest, EarlyCancelFalseAndReadyAsksMustResumeFalse) {
  Script script;
  script.ready = true;
  EXPECT_TRUE(run_on(loop, drive_cancelled(script)).is_cancelled());
  EXPECT_EQ(script.calls, (Events{"early", "ready", "must", "destroyed"}));
  EXPECT_EQ(script.went_on, 0);
}

LOOP_TEST(ProtocolTest, EarlyCancelFalseStartsWaitsAndIsNotAskedAgain) {
  for (bool must : {false, true}) {
    Script script;
    script.must_resume = must;
    Outcome<void> how = run_on(loop, drive_cancelled(script));
    expect_decided(how, script, {"early", "ready", "executor", "suspend", "must"});
  }
}

LOOP_TEST(ProtocolTest, EarlyCancelFalseAndASuspendThatReturnsFalseAsksMustResume) {
  for (bool must : {false, true}) {
    Script script;
    script.suspends = false;
    script.must_resume = must;
    Outcome<void> how = run_on(loop, drive_cancelled(script));
    expect_decided(how, script, {"early", "ready", "executor", "suspend", "must"});
  }
}

LOOP_TEST(ProtocolTest, ASecondCancelAfterAnEarlyOneDoesNotCallAwaitCancel) {
  Script script;
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = cancelled_user(script).start_immediate_in_current_scope();
    s.cancel();
    co_await yields(2);
    script.resume();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(script.calls, (Events{"early", "ready", "executor", "suspend", "must", "destroyed"}));
}

// --- Cancelled while it runs --------------------------------------------------------------------

LOOP_TEST(ProtocolTest, CancelTrueEndsTheWait) {
  Script script;
  script.cancel = true;
  EXPECT_TRUE(run_on(loop, drive(script, true)).is_cancelled());
  EXPECT_EQ(script.calls, (Events{"ready", "executor", "suspend", "cancel", "destroyed"}));
}

LOOP_TEST(ProtocolTest, CancelFalseWaitsForTheResumeAndAsksMustResume) {
  for (bool must : {false, true}) {
    Script script;
    script.must_resume = must;
    Outcome<void> how = run_on(loop, drive(script, true));
    expect_decided(how, script, {"ready", "executor", "suspend", "cancel", "must"});
  }
}

LOOP_TEST(ProtocolTest, AResumeInsideAwaitCancelIsAllowedAndMustResumeDecides) {
  for (bool must : {false, true}) {
    Script script;
    script.resumes_in_cancel = true;
    script.must_resume = must;
    Outcome<void> how = run_on(loop, drive(script, true));
    expect_decided(how, script, {"ready", "executor", "suspend", "cancel", "must"});
  }
}

LOOP_TEST(ProtocolTest, ACancelThatFindsTheHandleResumedDoesNotCallAwaitCancel) {
  Script script;
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = user(script).start_immediate_in_current_scope();
    script.resume();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.has_value());
  };
  run_on(loop, root());
  EXPECT_EQ(script.calls, (Events{"ready", "executor", "suspend", "resume", "destroyed"}));
}

LOOP_TEST(ProtocolTest, ATwiceCancelledWaitIsAskedOnce) {
  Script script;
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = user(script).start_immediate_in_current_scope();
    s.cancel();
    co_await yield();
    s.cancel();
    co_await yield();
    script.resume();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(script.calls, (Events{"ready", "executor", "suspend", "cancel", "must", "destroyed"}));
}

LOOP_TEST(ProtocolTest, ADeliveredValueLeavesTheRequestPendingForTheNextAwait) {
  Script script;
  script.must_resume = true;
  auto twice = [&]() -> Task<void> {
    script.went_on += co_await Instrumented(script);
    co_await yield();
    script.went_on += 10;
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = twice().start_immediate_in_current_scope();
    s.cancel();
    co_await yield();
    script.resume();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(script.went_on, 1);
}

LOOP_TEST(ProtocolTest, AnAwaiterThatIsNoCancelPointIsNotAskedUnderAGuard) {
  Script script;
  auto guarded = [&]() -> Task<void> {
    auto guard = co_await ignore_cancellation();
    Scope& scope = co_await current_scope();
    scope.cancel();
    script.went_on += co_await Instrumented(script);
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = guarded().start_immediate_in_current_scope();
    co_await yields(2);
    script.resume();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.has_value());
  };
  run_on(loop, root());
  EXPECT_EQ(script.calls, (Events{"ready", "executor", "suspend", "resume", "destroyed"}));
}

// --- What the concepts say ----------------------------------------------------------------------

struct Plain {
  bool await_ready();
  void await_suspend(std::coroutine_handle<>);
  int await_resume();
};
struct AbortablePlain : Plain {
  std::true_type await_cancel(std::coroutine_handle<>) noexcept;
};
struct NotSkippable : Plain {
  std::false_type await_early_cancel() noexcept;
  std::true_type await_must_resume() const noexcept;
};
struct NeverAfterCancel : Plain {
  bool await_cancel(std::coroutine_handle<>) noexcept;
  std::false_type await_must_resume() const noexcept;
};
struct NoSuspend {
  bool await_ready();
  void await_resume();
};
struct BadSuspend : Plain {
  int await_suspend(std::coroutine_handle<>);
};

static_assert(Awaitable<Plain> && Awaitable<Plain&> && Awaitable<Plain, int>);
static_assert(Awaitable<Plain, long> && !Awaitable<Plain, std::string>);
static_assert(!Awaitable<int> && !Awaitable<NoSuspend> && !Awaitable<BadSuspend>);
static_assert(Skippable<Plain> && !Abortable<Plain> && MayResumeAfterCancel<Plain>);
static_assert(Abortable<AbortablePlain> && Skippable<AbortablePlain>);
static_assert(!Skippable<NotSkippable> && MayResumeAfterCancel<NotSkippable>);
static_assert(!MayResumeAfterCancel<NeverAfterCancel>);
static_assert(Awaitable<Task<int>, int> && !Skippable<Task<int>>);
static_assert(std::same_as<AwaitResult<Task<int&>>, int&>);
static_assert(Awaitable<decltype(yield())> && Skippable<decltype(yield())>);
static_assert(Abortable<decltype(suspend_forever())> && !Skippable<decltype(just(1))>);
static_assert(!Skippable<decltype(noop())>);
static_assert(!std::copy_constructible<Task<int>> && std::movable<Task<int>>);

}  // namespace
