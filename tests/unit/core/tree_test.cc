// SPDX-License-Identifier: MIT
#include "weft/core/tree.h"

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <string>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;

struct TreeTest : EachLoopTest {};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_HAS(text, part) \
  EXPECT_TRUE(has(text, part)) << "no \"" << (part) << "\" in:\n" << (text)

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(TreeNames, OfAThingWithoutOneHaveTheRightArticle) {
  EXPECT_EQ(detail::thing_name("Event", nullptr), "an Event");
  EXPECT_EQ(detail::thing_name("Mutex", nullptr), "a Mutex");
  EXPECT_EQ(detail::thing_name("Event", "door"), "Event 'door'");
}

LOOP_TEST(TreeTest, TheRunningTaskSaysSo) {
  auto body = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    std::string text = task_tree(scope);
    EXPECT_HAS(text, "<running>");
    EXPECT_HAS(text, "<you are here>");
  };
  run_on(loop, body());
}

LOOP_TEST(TreeTest, AChildShowsWhatItAwaitsAndWhere) {
  auto body = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> parked_child = parked().start_immediate(scope);
    StartedTask<void> fresh = yields(1).start(scope);
    std::string text = task_tree(scope);
    EXPECT_HAS(text, "waits");
    EXPECT_HAS(text, "suspend_forever");
    EXPECT_HAS(text, "loop_fixture.h:");  // where parked() awaits it
    EXPECT_HAS(text, "<scheduled>");
    fresh.detach();
  };
  run_on(loop, body());
}

LOOP_TEST(TreeTest, ChildrenAreIndentedUnderTheirParent) {
  auto child = []() -> Task<void> {
    StartedTask<void> grandchild = parked().start_immediate_in_current_scope();
    co_await suspend_forever();
  };
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> s = child().start_immediate(scope);
    std::string text = task_tree(scope);
    EXPECT_EQ(count(text, "suspend_forever"), 2) << text;
    std::size_t deepest = 0;
    std::size_t start = 0;
    while (start < text.size()) {
      std::size_t indent = text.find_first_not_of(' ', start) - start;
      deepest = std::max(deepest, indent);
      start = text.find('\n', start) + 1;
    }
    EXPECT_GE(deepest, 6u) << text;
  };
  run_on(loop, body());
}

// Was asked to cancel, and answers later.
struct SlowToCancel : Gate {
  static bool await_cancel(std::coroutine_handle<>) noexcept { return false; }
  static bool await_must_resume() noexcept { return true; }
};

LOOP_TEST(TreeTest, ACancellingTaskSaysSoAndWhy) {
  static constexpr CancelReason kWhy{"the test said so"};
  auto child = [](SlowToCancel& gate) -> Task<void> { co_await gate; };
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    SlowToCancel gate;
    StartedTask<void> s = child(gate).start_immediate(scope);
    s.cancel(kWhy);
    co_await yield();
    std::string text = task_tree(scope);
    EXPECT_HAS(text, "cancelling");
    EXPECT_HAS(text, "the test said so");
    gate.fire();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.has_value());
  };
  run_on(loop, body());
}

LOOP_TEST(TreeTest, ATaskThatWaitsForItsChildrenSaysSo) {
  auto parent = []() -> Task<void> {
    parked().start_in_current_scope().detach();
    co_return;
  };
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> s = parent().start(scope);
    co_await yields(2);
    EXPECT_HAS(task_tree(scope), "waits for its children");
  };
  run_on(loop, body());
}

struct Described : Gate {
  void await_introspect(auto& tree) noexcept {
    tree.node("a described wait", this);
    tree.child(inner);
  }
  struct Inner {
    static void await_introspect(auto& tree) noexcept { tree.node("its inside"); }
  };
  Inner inner;
};
struct Undescribed : Gate {};

LOOP_TEST(TreeTest, AwaitersDescribeThemselvesOrAreNamedByTheirType) {
  auto waits = [](auto& awaiter) -> Task<void> { co_await awaiter; };
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    Described described;
    Undescribed undescribed;
    StartedTask<void> a = waits(described).start_immediate(scope);
    StartedTask<void> b = waits(undescribed).start_immediate(scope);
    std::string text = task_tree(scope);
    EXPECT_HAS(text, "a described wait");
    EXPECT_HAS(text, "its inside");
    EXPECT_HAS(text, "Undescribed");
    described.fire();
    undescribed.fire();
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, body());
}

LOOP_TEST(TreeTest, ANurseryShowsItsBodyAndChildren) {
  auto user = [](Nursery*& out) -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      out = &n;
      n.start(parked());
      n.start(parked());
      co_await suspend_forever();
      co_return join;
    };
    co_await with_nursery(body);
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    Nursery* nursery = nullptr;
    StartedTask<void> s = user(nursery).start(scope);
    co_await yields(3);
    std::string whole = task_tree(scope);
    EXPECT_HAS(whole, "nursery");
    EXPECT_EQ(count(whole, "suspend_forever"), 3) << whole;
    EXPECT_EQ(count(task_tree(*nursery), "suspend_forever"), 3);
  };
  run_on(loop, root());
}

LOOP_TEST(TreeTest, ManyChildrenAreCountedNotPrinted) {
  auto root = []() -> Task<void> {
    auto body = [](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < TaskTreeCollector::kChildrenMax + 50; ++i) n.start(parked());
      co_await yields(2);
      std::string text = task_tree(n);
      EXPECT_HAS(text, " more)");
      EXPECT_LE(count(text, "suspend_forever"), TaskTreeCollector::kChildrenMax);
      co_return cancel;
    };
    co_await with_nursery(body);
  };
  run_on(loop, root());
}

Task<std::string> innermost() { co_return async_stack_trace(); }
Task<std::string> middle() { co_return co_await innermost(); }
Task<std::string> outermost() { co_return co_await middle(); }

LOOP_TEST(TreeTest, TheAsyncStackTraceNamesEveryAwaitInnermostFirst) {
  std::string text = run_on(loop, outermost());
  std::size_t first = text.find("middle");
  std::size_t second = text.find("outermost");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_NE(second, std::string::npos) << text;
  EXPECT_LT(first, second) << text;
  EXPECT_EQ(async_stack_trace(), "");  // no task, no stack
}

// --- Across strands -----------------------------------------------------------------------------

// The lines of a trace.
Events hops(const std::string& trace) {
  Events lines;
  for (std::size_t at = 0; at < trace.size();) {
    std::size_t end = trace.find('\n', at);
    lines.push_back(trace.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}
// What each line of the trace must have in it.
#define EXPECT_HOPS(trace, ...)                                            \
  do {                                                                     \
    Events seen = hops(trace);                                             \
    Events expected{__VA_ARGS__};                                          \
    EXPECT_EQ(seen.size(), expected.size()) << (trace);                    \
    for (std::size_t i = 0; i < seen.size() && i < expected.size(); ++i) { \
      EXPECT_HAS(seen[i], expected[i]);                                    \
    }                                                                      \
  } while (false)

Task<void> traces(std::string& into) {
  co_await yield();
  into = async_stack_trace();
}
Task<void> traces_in_line(std::string& into) { co_await traces(into); }
Task<void> with_started_child(std::string& into) {
  StartedTask<void> s = traces_in_line(into).start_in_current_scope();
  co_await std::move(s);
}
Task<void> with_nursery_child(std::string& into) {
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(traces_in_line(into));
    co_return join;
  };
  co_await with_nursery(body);
}

LOOP_TEST(TreeTest, TheAsyncStackTraceCrossesStartedTasks) {
  std::string trace;
  run_on(loop, with_started_child(trace));
  EXPECT_HOPS(trace, "#0 awaited by", "#1 started in the scope of");
  EXPECT_HAS(trace, "with_started_child");
}

LOOP_TEST(TreeTest, TheAsyncStackTraceCrossesNurseries) {
  std::string trace;
  run_on(loop, with_nursery_child(trace));
  EXPECT_HOPS(trace, "#0 awaited by", "#1 started in a nursery of");
  EXPECT_HAS(trace, "with_nursery_child");
}

Task<void> with_branches(std::string& into) { co_await all_of(traces_in_line(into), yields(3)); }
Task<void> with_wrappers(std::string& into) {
  auto body = [&] { return noncancellable(timeout(std::chrono::hours(1), traces(into))); };
  auto nothing = [] { return yields(0); };
  auto after = [](auto&&) { return yields(0); };
  co_await (try_(body).finally(nothing) | then(after));
}

LOOP_TEST(TreeTest, TheAsyncStackTraceCrossesCombinatorsAndWrappers) {
  std::string trace;
  run_on(loop, with_branches(trace));
  EXPECT_HOPS(trace, "#0 awaited by", "#1 awaited, as a branch, by");
  EXPECT_HAS(trace, "with_branches");
  run_on(loop, with_wrappers(trace));
  EXPECT_HOPS(trace, "#0 awaited, as a branch, by");
  EXPECT_HAS(trace, "with_wrappers");
}

TEST(Tree, AChildOnAnotherLoopIsNamedNotEntered) {
  weft::testing::VirtualLoop here;
  weft::testing::VirtualLoop there(here);
  struct Start : Runnable {
    explicit Start(PromiseChildLease l) : Runnable(&call), lease(std::move(l)) {}
    static void call(Runnable& work) noexcept {
      auto& self = static_cast<Start&>(work);
      self.started = parked().start_immediate_with_parent_scope(std::move(self.lease));
    }
    PromiseChildLease lease;
    StartedTask<void> started;
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    Start start(scope.lease());
    EXPECT_TRUE(there.post(start));
    co_await yields(4);
    EXPECT_HAS(task_tree(scope), "another loop");
    start.started.cancel();
    Outcome<void> how = co_await start.started.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(here, root());
}

Task<void> trace_when_it_can(std::string& into) {
  auto guard = co_await ignore_cancellation();
  co_await yields(4);
  into = async_stack_trace();
}
Task<void> fails_before_its_child(std::string& into) {
  trace_when_it_can(into).start_in_current_scope().detach();
  co_await yield();
  throw std::runtime_error("first");
}

LOOP_TEST(TreeTest, AStackTraceBelowATaskThatHasFailedSaysSo) {
  std::string trace;
  EXPECT_THROW(run_on(loop, fails_before_its_child(trace)), std::runtime_error);
  EXPECT_NE(trace.find("a task that has failed"), std::string::npos) << trace;
}

}  // namespace
