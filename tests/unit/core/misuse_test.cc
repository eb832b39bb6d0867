// SPDX-License-Identifier: MIT
// Bad use gets a clear answer: an exception where the caller can go on, a message that names the
// rule where nobody can.
#include <coroutine>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

struct MisuseTest : EachLoopTest {};

// The text of the UsageError that fn throws; "" if it throws none.
template <class Fn>
std::string usage_error(Fn&& fn) {
  try {
    fn();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}
#define EXPECT_USAGE_ERROR(statement, part)                                         \
  do {                                                                              \
    std::string what = usage_error([&] { statement; });                             \
    EXPECT_NE(what.find(part), std::string::npos) << "\"" << what << "\" was said"; \
  } while (false)

// --- Tasks and handles --------------------------------------------------------------------------

LOOP_TEST(MisuseTest, AwaitingAMovedFromOrUsedTaskThrows) {
  auto body = []() -> Task<void> {
    Task<int> task = returns(1);
    Task<int> moved = std::move(task);
    std::string first;
    try {
      static_cast<void>(co_await std::move(task));
    } catch (const UsageError& error) {
      first = error.what();
    }
    EXPECT_NE(first.find("moved from"), std::string::npos) << first;
    int value = co_await std::move(moved);
    EXPECT_EQ(value, 1);
    EXPECT_FALSE(moved.valid());
    bool twice = false;
    try {
      static_cast<void>(co_await std::move(moved));
    } catch (const UsageError&) {
      twice = true;
    }
    EXPECT_TRUE(twice) << "a finished Task was awaited";
  };
  run_on(loop, body());
}

LOOP_TEST(MisuseTest, StartingOrRunningAnEmptyTaskThrows) {
  EXPECT_USAGE_ERROR(run_on(loop, Task<void>()), "empty");
  auto body = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    EXPECT_USAGE_ERROR(Task<void>().start(scope).detach(), "empty");
    EXPECT_USAGE_ERROR(Task<void>().start_immediate(scope).detach(), "empty");
    EXPECT_USAGE_ERROR(Task<void>().start_with_parent_scope(scope.lease()).detach(), "empty");
  };
  run_on(loop, body());
  auto in_nursery = []() -> Task<void> {
    auto b = [](Nursery& n) -> Task<NurseryEnd> {
      EXPECT_USAGE_ERROR(n.start(Task<void>()), "empty");
      co_return join;
    };
    co_await with_nursery(b);
  };
  run_on(loop, in_nursery());
}

LOOP_TEST(MisuseTest, UsingAnEmptyHandleThrows) {
  auto body = []() -> Task<void> {
    StartedTask<int> empty;
    EXPECT_TRUE(empty.is_done());
    empty.cancel();
    empty.detach();
    EXPECT_USAGE_ERROR(static_cast<void>(empty.cancel_handle()), "empty");
    EXPECT_USAGE_ERROR(static_cast<void>(empty.outcome()), "empty");
    bool thrown = false;
    try {
      static_cast<void>(co_await std::move(empty));
    } catch (const UsageError&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
  };
  run_on(loop, body());
}

LOOP_TEST(MisuseTest, AnEmptyLeaseThrowsAndLeaksNothing) {
  auto holds = [](Counted) -> Task<void> { co_return; };
  auto body = [&]() -> Task<void> {
    PromiseChildLease empty;
    EXPECT_FALSE(empty.is_cancelled());
    empty.cancel();
    EXPECT_USAGE_ERROR(empty.start(holds(Counted(1))), "lease");
    EXPECT_USAGE_ERROR(holds(Counted(1)).start_with_parent_scope(PromiseChildLease()).detach(),
                       "lease");
    EXPECT_USAGE_ERROR(
        holds(Counted(1)).start_immediate_with_parent_scope(PromiseChildLease()).detach(), "lease");
    EXPECT_EQ(Counted::live, 0);
    co_return;
  };
  run_on(loop, body());
}

LOOP_TEST(MisuseTest, ASecondWaiterOfOneHandleThrows) {
  auto body = []() -> Task<void> {
    StartedTask<void> s = parked().start_in_current_scope();
    auto wait = [&]() -> Task<void> { static_cast<void>(co_await s.outcome()); };
    StartedTask<void> first = wait().start_immediate_in_current_scope();
    StartedTask<void> second = wait().start_immediate_in_current_scope();
    Outcome<void> refused = co_await second.outcome();
    EXPECT_TRUE(refused.has_error());
    if (refused.has_error()) {
      EXPECT_USAGE_ERROR(std::rethrow_exception(refused.error()), "one waiter at a time");
    }
    s.cancel();
    Outcome<void> served = co_await first.outcome();
    EXPECT_TRUE(served.has_value());
  };
  run_on(loop, body());
}

// --- Scopes, nurseries and loops ----------------------------------------------------------------

TEST(Misuse, StartInCurrentScopeOutsideATaskThrows) {
  EXPECT_USAGE_ERROR(returns(1).start_in_current_scope().detach(), "no current scope");
  EXPECT_USAGE_ERROR(returns(1).start_immediate_in_current_scope().detach(), "no current scope");
}

LOOP_TEST(MisuseTest, ARunInsideARunOfTheSameLoopThrows) {
  auto body = [&]() -> Task<void> {
    EXPECT_USAGE_ERROR(run_on(loop, returns(1)), "runs already");
    co_return;
  };
  run_on(loop, body());
  EXPECT_EQ(run_on(loop, returns(2)), 2);  // and the loop is none the worse
}

LOOP_TEST(MisuseTest, ARunOfAnotherLoopInsideIsAllowed) {
  auto body = [&]() -> Task<int> {
    Scope& mine = co_await current_scope();
    AnyLoop inner(loop.kind());
    int value = run_on(inner, returns(3));
    StartedTask<int> s = returns(4).start_in_current_scope();  // the current task is back
    EXPECT_EQ(&detail::running_scope("test"), &mine);
    value += co_await std::move(s);
    co_return value;
  };
  EXPECT_EQ(run_on(loop, body()), 7);
}

LOOP_TEST(MisuseTest, ScopeCallsOffHomeThrow) {
  auto body = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto in_nursery = [&](Nursery& n) -> Task<NurseryEnd> {
      std::thread([&] {
        EXPECT_USAGE_ERROR(scope.cancel(), "home");
        EXPECT_USAGE_ERROR(static_cast<void>(scope.lease()), "home");
        EXPECT_USAGE_ERROR(returns(1).start(scope).detach(), "home");
        EXPECT_USAGE_ERROR(returns(1).start_immediate(scope).detach(), "home");
        EXPECT_USAGE_ERROR(n.start(parked()), "home");
        EXPECT_USAGE_ERROR(n.cancel(), "home");
        EXPECT_USAGE_ERROR(static_cast<void>(n.cancel_handle()), "home");
        EXPECT_USAGE_ERROR(static_cast<void>(task_tree(scope)), "home");
        auto nothing = [] {};
        EXPECT_USAGE_ERROR(CancelHook hook(scope, nothing), "home");
      }).join();
      VirtualLoop other;  // another loop of the same thread is not home either
      auto there = [&]() -> Task<void> {
        EXPECT_USAGE_ERROR(n.start(parked()), "home");
        co_return;
      };
      run_on(other, there());
      EXPECT_EQ(n.size(), 1u);
      co_return join;
    };
    co_await with_nursery(in_nursery);
  };
  run_on(loop, body());
}

LOOP_TEST(MisuseTest, AnImmediateStartOffLoopThrows) {
  auto body = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    std::thread([lease = scope.lease()]() mutable {
      EXPECT_USAGE_ERROR(returns(1).start_immediate_with_parent_scope(std::move(lease)).detach(),
                         "event loop");
    }).join();
  };
  run_on(loop, body());
}

LOOP_TEST(MisuseTest, ANurseryThatHasEndedTakesNoMoreChildren) {
  // Between its end and its caller's next step another task may still hold a reference.
  auto root = [&]() -> Task<void> {
    Nursery* ended = nullptr;
    bool tried = false;
    auto late = [&]() -> Task<void> {
      while (!ended) co_await yield();
      tried = true;
      EXPECT_USAGE_ERROR(ended->start(parked()), "ended");
      EXPECT_USAGE_ERROR(parked().start(*ended).detach(), "ended");
      EXPECT_USAGE_ERROR(static_cast<void>(ended->lease()), "ended");
    };
    StartedTask<void> s = late().start_in_current_scope();
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      co_await yield();
      ended = &n;
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_TRUE(tried) << "the test came too late to see anything";
  };
  run_on(loop, root());
}

LOOP_TEST(MisuseTest, AScopeWhoseFrameIsBeingDestroyedTakesNoMoreChildren) {
  // A cancelled task's locals die after its children were joined: nobody would wait for one more.
  int refused = 0;
  auto inner = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    OnExit late([&] {
      EXPECT_USAGE_ERROR(parked().start(scope).detach(), "ended");
      ++refused;
    });
    co_await suspend_forever();
  };
  auto outer = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    OnExit late([&] {
      EXPECT_USAGE_ERROR(parked().start(scope).detach(), "ended");
      EXPECT_USAGE_ERROR(parked().start_in_current_scope().detach(), "ended");
      EXPECT_USAGE_ERROR(static_cast<void>(scope.lease()), "ended");
      ++refused;
    });
    co_await inner();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = outer().start_immediate_in_current_scope();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(refused, 2);
}

LOOP_TEST(MisuseTest, TooManyLoopsThrow) {
  std::vector<std::unique_ptr<VirtualLoop>> loops;
  std::string what = usage_error([&] {
    for (detail::HomeIndex i = 0; i <= detail::kLoopsMax; ++i) {
      loops.push_back(std::make_unique<VirtualLoop>());
    }
  });
  EXPECT_NE(what.find("kLoopsMax"), std::string::npos) << what;
  loops.clear();
  VirtualLoop again;
  EXPECT_EQ(run_on(again, returns(1)), 1);
}

TEST(Misuse, ALoopWithoutTimersRefusesThem) {
  struct Bare final : Executor {
    [[nodiscard]] std::int64_t now_ns() const override { return 0; }
  };
  Bare bare;
  detail::TimerNode timer;
  EXPECT_USAGE_ERROR(bare.arm_timer(timer, 1), "timers");
}

// --- What nobody can go on from -----------------------------------------------------------------

struct Twice {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    handle.resume();
    handle.resume();
  }
  void await_resume() {}
};
struct ResumesAndSaysFalse : Twice {
  bool await_suspend(std::coroutine_handle<> handle) {
    handle.resume();
    return false;
  }
};
struct DestroysTheHandle : Twice {
  void await_suspend(std::coroutine_handle<> handle) { handle.destroy(); }
};
struct ResumesInCancelAndSaysTrue {
  explicit ResumesInCancelAndSaysTrue(Gate& g) : gate(&g) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) { gate->await_suspend(handle); }
  void await_resume() {}
  std::true_type await_cancel(std::coroutine_handle<>) noexcept {
    gate->fire();
    return {};
  }
  Gate* gate;
};

template <class Aw, class... Args>
void await_one(Args&... args) {
  VirtualLoop loop;
  auto body = [&]() -> Task<void> {
    auto inner = [&]() -> Task<void> { co_await Aw(args...); };
    StartedTask<void> s = inner().start_immediate_in_current_scope();
    co_await yield();
    s.cancel();
    co_await yield();
  };
  run_on(loop, body());
}

TEST(MisuseDeathTest, ResumingAHandleTwiceNamesTheRule) {
  EXPECT_DEATH(await_one<Twice>(), "L6: the handle of a wait is resumed once");
}
TEST(MisuseDeathTest, ResumingAndReturningFalseNamesTheRule) {
  EXPECT_DEATH(await_one<ResumesAndSaysFalse>(), "does not return false");
}
TEST(MisuseDeathTest, DestroyingTheHandleNamesTheRule) {
  EXPECT_DEATH(await_one<DestroysTheHandle>(), "destroying it is not for awaiters");
}
TEST(MisuseDeathTest, ResumingInsideAwaitCancelAndReturningTrueNamesTheRule) {
  Gate gate;
  EXPECT_DEATH(await_one<ResumesInCancelAndSaysTrue>(gate), "await_cancel");
}

TEST(MisuseDeathTest, ALoopThatEndsWithATaskNamesTheRule) {
  auto abandon = [] {
    auto loop = std::make_unique<VirtualLoop>();
    VirtualLoop other(*loop);
    auto root = [&]() -> Task<void> {
      Scope& scope = co_await current_scope();
      StartedTask<void> s = parked().start_immediate(scope);
      loop.reset();
      co_await yield();
    };
    run_on(*loop, root());
  };
  EXPECT_DEATH(abandon(), "L12");
}

TEST(MisuseDeathTest, TooManyHandlesOrLeasesNameTheBound) {
  CancellationState state(CancellationState::HOMED | (CancellationState::kReferencesMax - 1));
  state.add_ref();
  EXPECT_DEATH(state.add_ref(), "kReferencesMax");
  detail::LeaseCount leases(detail::LeaseCount::kLeasesMax - 1);
  leases.add();
  EXPECT_DEATH(leases.add(), "kLeasesMax");
}

// A parameter lives as long as the frame: its destructor runs when the coroutine is at its end.
class StartsWhenItDies {
 public:
  StartsWhenItDies(Scope*& scope, bool& refused) : scope_(&scope), refused_(&refused) {}
  StartsWhenItDies(StartsWhenItDies&& other) noexcept
      : scope_(std::exchange(other.scope_, nullptr)), refused_(other.refused_) {}
  StartsWhenItDies& operator=(StartsWhenItDies&&) = delete;
  ~StartsWhenItDies() {
    if (!scope_ || !*scope_) return;
    try {
      yields(1).start(**scope_).detach();
    } catch (const UsageError&) {
      *refused_ = true;
    }
  }
  void found(Scope& scope) { *scope_ = &scope; }

 private:
  Scope** scope_;
  bool* refused_;
};
Task<void> with_a_child_or_without(StartsWhenItDies parameter, bool child) {
  Scope& scope = co_await current_scope();
  parameter.found(scope);
  if (child) yields(2).start(scope).detach();
}

LOOP_TEST(MisuseTest, AFrameThatIsBeingDestroyedTakesNoChild) {
  for (bool child : {false, true}) {
    for (bool in_line : {false, true}) {
      bool refused = false;
      auto body = [&]() -> Task<void> {
        Scope* scope = nullptr;
        Task<void> task = with_a_child_or_without(StartsWhenItDies(scope, refused), child);
        if (in_line) {
          co_await std::move(task);
        } else {
          StartedTask<void> started = std::move(task).start_in_current_scope();
          co_await std::move(started);
        }
      };
      run_on(loop, body());
      EXPECT_TRUE(refused) << (child ? "after a join" : "") << (in_line ? ", in line" : "");
    }
  }
}

}  // namespace
