// SPDX-License-Identifier: MIT
#include "weft/core/cancel_node.h"

#include <atomic>
#include <thread>

#include "support/loop_fixture.h"
#include "support/manual_awaiter.h"

namespace {

using namespace weft;
using namespace weft::test;

struct CancelNodeTest : EachLoopTest {};

// What became of a node, kept by the test.
struct Fate {
  std::atomic<int> cancelled{0};
  std::atomic<int> cleaned{0};
  std::atomic<int> deleted{0};
  [[nodiscard]] int settled() const { return cancelled + cleaned; }
};

class Node final : public HeapCancelNode {
 public:
  explicit Node(Fate& fate) : fate_(&fate) {}
  ~Node() override { ++fate_->deleted; }

 private:
  void do_cancel() noexcept override { ++fate_->cancelled; }
  void do_cleanup() noexcept override { ++fate_->cleaned; }
  Fate* fate_;
};

LOOP_TEST(CancelNodeTest, CleanupReachesANodeStillPublishedAtTheScopesEnd) {
  Fate fate;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto* node = new Node(fate);
    EXPECT_TRUE(scope.publish_cancel_node(*node));
    node->drop_ref();
    EXPECT_EQ(fate.settled(), 0);
  };
  run_on(loop, body());
  EXPECT_EQ(fate.cleaned, 1);
  EXPECT_EQ(fate.cancelled, 0);
  EXPECT_EQ(fate.deleted, 1);
}

LOOP_TEST(CancelNodeTest, CleanupWaitsForTheScopesChildren) {
  Fate fate;
  auto child = [&]() -> Task<void> {
    co_await yields(4);
    EXPECT_EQ(fate.settled(), 0);
  };
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto* node = new Node(fate);
    scope.publish_cancel_node(*node);
    node->drop_ref();
    child().start(scope).detach();
  };
  run_on(loop, body());
  EXPECT_EQ(fate.cleaned, 1);
}

LOOP_TEST(CancelNodeTest, CancelReachesAPublishedNodeExactlyOnce) {
  Fate fate;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto* node = new Node(fate);
    scope.publish_cancel_node(*node);
    node->drop_ref();
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_in_current_scope();
    co_await yields(2);
    s.cancel();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(fate.cancelled, 1);
  EXPECT_EQ(fate.cleaned, 0);
  EXPECT_EQ(fate.deleted, 1);
}

LOOP_TEST(CancelNodeTest, PublishedIntoACancelledScopeItFiresAtOnce) {
  Fate fate;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    scope.cancel();
    auto* node = new Node(fate);
    EXPECT_TRUE(scope.publish_cancel_node(*node));
    EXPECT_EQ(fate.cancelled, 1);
    node->drop_ref();
    EXPECT_EQ(fate.deleted, 1);
  };
  run_on(loop, body());
  EXPECT_EQ(fate.settled(), 1);
}

LOOP_TEST(CancelNodeTest, PublishedIntoAnIgnoringScopeItFiresWhenTheGuardIsLeft) {
  Fate fate;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    {
      auto guard = co_await ignore_cancellation();
      scope.cancel();
      auto* node = new Node(fate);
      EXPECT_TRUE(scope.publish_cancel_node(*node));
      node->drop_ref();
      co_await yields(2);
      EXPECT_EQ(fate.settled(), 0);
    }
    EXPECT_EQ(fate.cancelled, 1);
  };
  run_on(loop, body());
  EXPECT_EQ(fate.settled(), 1);
}

LOOP_TEST(CancelNodeTest, ASecondPublishIsRefused) {
  Fate fate;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto* node = new Node(fate);
    EXPECT_TRUE(scope.publish_cancel_node(*node));
    EXPECT_FALSE(scope.publish_cancel_node(*node));
    EXPECT_TRUE(node->disarm());
    EXPECT_FALSE(scope.publish_cancel_node(*node));  // nor after it left
    node->drop_ref();
    EXPECT_EQ(fate.deleted, 1);
  };
  run_on(loop, body());
  EXPECT_EQ(fate.settled(), 0);
}

LOOP_TEST(CancelNodeTest, DisarmedItLeavesAtOnceAndNothingIsCalled) {
  Fate fate;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto* node = new Node(fate);
    scope.publish_cancel_node(*node);
    EXPECT_TRUE(node->is_armed());
    EXPECT_TRUE(node->disarm());
    EXPECT_FALSE(node->is_armed());
    EXPECT_FALSE(node->disarm());  // one winner
    node->drop_ref();
    EXPECT_EQ(fate.deleted, 1);  // the scope holds it no more
    scope.cancel();
  };
  run_on(loop, body());
  EXPECT_EQ(fate.settled(), 0);
}

LOOP_TEST(CancelNodeTest, DisarmLosesAgainstACancelThatCameFirst) {
  Fate fate;
  auto child = [&](Node*& node) -> Task<void> {
    Scope& scope = co_await current_scope();
    node = new Node(fate);
    scope.publish_cancel_node(*node);
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    Node* node = nullptr;
    StartedTask<void> s = child(node).start_immediate_in_current_scope();
    s.cancel();
    co_await yield();
    EXPECT_FALSE(node->disarm());
    node->drop_ref();
  };
  run_on(loop, root());
  EXPECT_EQ(fate.cancelled, 1);
  EXPECT_EQ(fate.deleted, 1);
}

LOOP_TEST(CancelNodeTest, DisarmedBeforeItIsPublishedItIsNeverCalled) {
  Fate fate;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto* node = new Node(fate);
    EXPECT_TRUE(node->disarm());
    EXPECT_TRUE(scope.publish_cancel_node(*node));
    node->drop_ref();
    scope.cancel();
  };
  run_on(loop, body());
  EXPECT_EQ(fate.settled(), 0);
  EXPECT_EQ(fate.deleted, 1);
}

LOOP_TEST(CancelNodeTest, ANurseryReachesItsNodesToo) {
  Fate cleaned;
  Fate cancelled;
  auto root = [&]() -> Task<void> {
    auto quiet = [&](Nursery& n) -> Task<NurseryEnd> {
      auto* node = new Node(cleaned);
      n.publish_cancel_node(*node);
      node->drop_ref();
      co_return join;
    };
    co_await with_nursery(quiet);
    auto loud = [&](Nursery& n) -> Task<NurseryEnd> {
      auto* node = new Node(cancelled);
      n.publish_cancel_node(*node);
      node->drop_ref();
      co_return cancel;
    };
    co_await with_nursery(loud);
  };
  run_on(loop, root());
  EXPECT_EQ(cleaned.cleaned, 1);
  EXPECT_EQ(cleaned.cancelled, 0);
  EXPECT_EQ(cancelled.settled(), 1);
  EXPECT_EQ(cleaned.deleted + cancelled.deleted, 2);
}

LOOP_TEST(CancelNodeTest, DisarmFromAnotherThreadLeavesByAPost) {
  Fate fate;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto* node = new Node(fate);
    scope.publish_cancel_node(*node);
    std::thread([node] { EXPECT_TRUE(node->disarm()); }).join();
    node->drop_ref();
    co_await yields(3);
    EXPECT_EQ(fate.deleted, 1);
  };
  run_on(loop, body());
  EXPECT_EQ(fate.settled(), 0);
}

LOOP_TEST(CancelNodeTest, DisarmFromAnotherThreadAfterTheScopeEndedIsHarmless) {
  Fate fate;
  auto* node = new Node(fate);
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    scope.publish_cancel_node(*node);
  };
  run_on(loop, body());
  EXPECT_EQ(fate.cleaned, 1);
  std::thread([node] { EXPECT_FALSE(node->disarm()); }).join();
  node->drop_ref();
  EXPECT_EQ(fate.deleted, 1);
}

// --- CancelHook ---------------------------------------------------------------------------------

LOOP_TEST(CancelNodeTest, AHookRunsIfItsScopeIsCancelledWhileItLives) {
  int called = 0;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto count = [&called] { ++called; };
    CancelHook hook(scope, count);
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_immediate_in_current_scope();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(called, 1);
}

LOOP_TEST(CancelNodeTest, AHookThatDiedIsNotCalled) {
  int called = 0;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto count = [&called] { ++called; };
    for (int i = 0; i < 3; ++i) {
      CancelHook hook(scope, count);
      co_await yield();
    }
    scope.cancel();
  };
  run_on(loop, body());
  EXPECT_EQ(called, 0);
}

LOOP_TEST(CancelNodeTest, AHookInACancelledScopeRunsAtOnce) {
  int called = 0;
  auto body = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    scope.cancel();
    auto count = [&called] { ++called; };
    CancelHook hook(scope, count);
    EXPECT_EQ(called, 1);
  };
  run_on(loop, body());
  EXPECT_EQ(called, 1);
}

LOOP_TEST(CancelNodeTest, HooksDieInAnyOrder) {
  Events events;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto note = [&](const char* name) { return [&events, name] { events.push_back(name); }; };
    auto a = std::make_unique<CancelHook<decltype(note(""))>>(scope, note("a"));
    auto b = std::make_unique<CancelHook<decltype(note(""))>>(scope, note("b"));
    auto c = std::make_unique<CancelHook<decltype(note(""))>>(scope, note("c"));
    b.reset();
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_immediate_in_current_scope();
    s.cancel();
    co_await yield();
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"c", "a"}));  // newest first
}

LOOP_TEST(CancelNodeTest, AHookMayEndTheWaitItselfAndSeesTheWaitBeforeItIsCancelled) {
  // Hooks run before await_cancel of the same strand: the gate's wait has ended when that comes.
  auto child = [](Gate& gate, bool& went_on) -> Task<void> {
    Scope& scope = co_await current_scope();
    auto open = [&gate] { gate.fire(); };
    CancelHook hook(scope, open);
    co_await gate;
    went_on = true;
  };
  bool went_on = false;
  auto root = [&]() -> Task<void> {
    Gate gate;
    StartedTask<void> s = child(gate, went_on).start_immediate_in_current_scope();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.has_value());  // what was produced is delivered, and nothing is awaited after
  };
  run_on(loop, root());
  EXPECT_TRUE(went_on);
}

LOOP_TEST(CancelNodeTest, AHookMayPublishAnotherIntoTheSameScope) {
  Fate fate;
  auto child = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto more = [&] {
      auto* node = new Node(fate);
      scope.publish_cancel_node(*node);
      node->drop_ref();
    };
    CancelHook hook(scope, more);
    co_await suspend_forever();
  };
  auto root = [&]() -> Task<void> {
    StartedTask<void> s = child().start_immediate_in_current_scope();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run_on(loop, root());
  EXPECT_EQ(fate.cancelled, 1);
  EXPECT_EQ(fate.deleted, 1);
}

}  // namespace
