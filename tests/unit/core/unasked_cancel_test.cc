// SPDX-License-Identifier: MIT
// A started task that ends cancelled, unasked, awaited inside each combinator and wrapper (DESIGN 3,
// "Awaiting a handle"): the waiting task is cancelled along, with the same reason; where it is
// shielded or ignoring it gets TaskCancelled instead.
#include <gtest/gtest.h>

#include <functional>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

constexpr CancelReason kWhy{"unasked"};
using Handle = StartedTask<int>;

Task<int> forever_int() {
  co_await suspend_forever();
  co_return 0;
}

Task<void> directly(Handle s) { co_await std::move(s); }
Task<void> in_all_of(Handle s) { co_await all_of(suspend_forever(), std::move(s)); }
Task<void> in_any_of(Handle s) { co_await any_of(std::move(s)); }
Task<void> in_most_of(Handle s) { co_await most_of(std::move(s)); }
Task<void> in_range(Handle s) {
  std::vector<Handle> handles;
  handles.push_back(std::move(s));
  co_await all_of(std::move(handles));
}
Task<void> before_then(Handle s) {
  auto next = [](int) { return noop(); };
  co_await (std::move(s) | then(next));
}
Task<void> in_then(Handle s) {
  auto next = [&s] { return std::move(s); };
  co_await (noop() | then(next));
}
Task<void> in_try(Handle s) {
  auto body = [&s] { return std::move(s); };
  auto handler = [](const std::exception_ptr&) { return just(1); };
  co_await try_(body).catch_(handler);
}
Task<void> in_handler(Handle s) {
  auto body = []() -> Task<int> {
    throw 1;
    co_return 0;
  };
  auto handler = [&s](int&) { return std::move(s); };
  co_await try_(body).catch_(handler);
}
Task<void> in_with(Handle s) { co_await with(suspend_forever(), std::move(s)); }
Task<void> in_timeout(Handle s) { co_await timeout(1h, std::move(s)); }
Task<void> in_annotate(Handle s) { co_await annotate("name", std::move(s)); }
Task<void> in_disposable(Handle s) { co_await disposable(std::move(s)); }
Task<void> in_callable(Handle s) {
  auto callable = [&s] { return std::move(s); };
  co_await timeout(1h, callable);
}
Task<void> in_layers(Handle s) {
  co_await all_of(timeout(1h, any_of(annotate("name", std::move(s)))), suspend_forever());
}
Task<std::expected<void, int>> ok_body(StartedTask<std::expected<int, int>> s) {
  co_await ok(std::move(s));
  co_return std::expected<void, int>();
}

struct Way {
  const char* name;
  Task<void> (*wait)(Handle);
};
const Way kWays[] = {
    {"Directly", directly},        {"AllOf", in_all_of},
    {"AnyOf", in_any_of},          {"MostOf", in_most_of},
    {"Range", in_range},           {"BeforeThen", before_then},
    {"InThen", in_then},           {"Try", in_try},
    {"Handler", in_handler},       {"With", in_with},
    {"Timeout", in_timeout},       {"Annotate", in_annotate},
    {"Disposable", in_disposable}, {"Callable", in_callable},
    {"Layers", in_layers},
};

class UnaskedCancelTest : public ::testing::TestWithParam<Way> {
 protected:
  VirtualLoop loop;
};

// What becomes of a task that waits for a handle whose task is cancelled: before the wait, or in it.
Task<void> check(std::function<Task<void>(Handle)> wait, bool before) {
  Handle target = forever_int().start_immediate_in_current_scope();
  CancelHandle cancel = target.cancel_handle();
  if (before) {
    cancel.cancel(kWhy);
    for (int i = 0; i < 3; ++i) co_await yield();
    EXPECT_TRUE(target.is_done());
  }
  StartedTask<void> waiter = wait(std::move(target)).start_in_current_scope();
  if (!before) {
    co_await sleep_for(1ms);
    cancel.cancel(kWhy);
  }
  Outcome<void> how = co_await waiter.outcome();
  EXPECT_TRUE(how.is_cancelled() && &how.reason() == &kWhy);
}

TEST_P(UnaskedCancelTest, TheWaiterIsCancelledAlong) { run(loop, check(GetParam().wait, false)); }
TEST_P(UnaskedCancelTest, TheWaiterIsCancelledAlongIfItHadEndedBefore) {
  run(loop, check(GetParam().wait, true));
}

Task<void> shielded(Task<void> (*wait)(Handle), Handle s) {
  auto guard = co_await ignore_cancellation();
  bool threw = false;
  try {
    co_await wait(std::move(s));
  } catch (const TaskCancelled& error) {
    threw = &error.reason() == &kWhy;
  }
  EXPECT_TRUE(threw);
}
Task<void> under_a_guard(Task<void> (*wait)(Handle), bool before) {
  Handle target = forever_int().start_immediate_in_current_scope();
  CancelHandle cancel = target.cancel_handle();
  if (before) {
    cancel.cancel(kWhy);
    for (int i = 0; i < 3; ++i) co_await yield();
  }
  StartedTask<void> waiter = shielded(wait, std::move(target)).start_in_current_scope();
  if (!before) {
    co_await sleep_for(1ms);
    cancel.cancel(kWhy);
  }
  co_await std::move(waiter);
}
TEST_P(UnaskedCancelTest, AnIgnoringWaiterGetsTaskCancelled) {
  run(loop, under_a_guard(GetParam().wait, false));
  run(loop, under_a_guard(GetParam().wait, true));
}

INSTANTIATE_TEST_SUITE_P(Core, UnaskedCancelTest, ::testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(UnaskedCancel, NoncancellableGetsTaskCancelled) {
  VirtualLoop loop;
  auto root = []() -> Task<void> {
    Handle target = forever_int().start_immediate_in_current_scope();
    CancelHandle cancel = target.cancel_handle();
    auto later = [cancel]() -> Task<void> {
      co_await sleep_for(1ms);
      cancel.cancel(kWhy);
    };
    StartedTask<void> canceller = later().start_in_current_scope();
    try {
      co_await noncancellable(std::move(target));
      ADD_FAILURE();
    } catch (const TaskCancelled& error) {
      EXPECT_EQ(&error.reason(), &kWhy);
    }
    co_await std::move(canceller);
  };
  run(loop, root());
}

TEST(UnaskedCancel, OkIsCancelledAlong) {
  VirtualLoop loop;
  auto forever = []() -> Task<std::expected<int, int>> {
    co_await suspend_forever();
    co_return 1;
  };
  auto root = [&](bool before) -> Task<void> {
    StartedTask<std::expected<int, int>> target = forever().start_immediate_in_current_scope();
    CancelHandle cancel = target.cancel_handle();
    if (before) {
      cancel.cancel(kWhy);
      for (int i = 0; i < 3; ++i) co_await yield();
    }
    StartedTask<std::expected<void, int>> waiter =
        ok_body(std::move(target)).start_in_current_scope();
    co_await sleep_for(1ms);
    cancel.cancel(kWhy);
    Outcome<std::expected<void, int>> how = co_await waiter.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(loop, root(false));
  run(loop, root(true));
}

TEST(UnaskedCancel, AnyOfGoesOnWhileAnotherBranchMayWin) {
  VirtualLoop loop;
  auto root = []() -> Task<void> {
    Handle target = forever_int().start_in_current_scope();
    target.cancel(kWhy);
    auto [a, b] = co_await any_of(std::move(target), sleep_for(1ms));
    EXPECT_FALSE(a);
    EXPECT_TRUE(b);
  };
  run(loop, root());
}

TEST(UnaskedCancel, OutcomeIsNeverCancelledAlong) {
  VirtualLoop loop;
  auto root = []() -> Task<void> {
    Handle target = forever_int().start_in_current_scope();
    target.cancel(kWhy);
    auto [how, slept] = co_await all_of(target.outcome(), sleep_for(1ms));
    EXPECT_TRUE(how.is_cancelled());
  };
  run(loop, root());
}

}  // namespace
