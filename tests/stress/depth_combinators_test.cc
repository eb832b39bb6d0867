// SPDX-License-Identifier: MIT
// L10: a chain of 1,000,000 awaits through wrappers can be built, returned through, thrown through,
// cancelled and destroyed on an 8 MiB stack.
#include <gtest/gtest.h>
#include <pthread.h>

#include <stdexcept>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

constexpr int kDepth = 1'000'000;
constexpr std::size_t kStackBytes = 8u << 20;

// How the innermost level ends.
enum class Bottom { value, error, parked };

struct Level {
  Bottom bottom;
  int* live;
};

class Live {
 public:
  explicit Live(const Level& level) : live_(level.live) { ++*live_; }
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;
  ~Live() { --*live_; }

 private:
  int* live_;
};

Task<int> at_bottom(Level level) {
  Live live(level);
  if (level.bottom == Bottom::error) throw std::runtime_error("bottom");
  if (level.bottom == Bottom::parked) co_await suspend_forever();
  co_return 0;
}

struct InLine {
  static Task<int> link(Level level, int depth) {
    Live live(level);
    if (depth == 0) co_return co_await at_bottom(level);
    co_return co_await link(level, depth - 1) + 1;
  }
};
struct ThroughTimeout {
  static Task<int> link(Level level, int depth) {
    Live live(level);
    if (depth == 0) co_return co_await at_bottom(level);
    std::expected<int, TimedOut> value = co_await timeout(1h, link(level, depth - 1));
    co_return *value + 1;
  }
};
struct ThroughAnyOf {
  static Task<int> link(Level level, int depth) {
    Live live(level);
    if (depth == 0) co_return co_await at_bottom(level);
    auto [value, never] = co_await any_of(link(level, depth - 1), suspend_forever());
    co_return *value + 1;
  }
};
struct ThroughNoncancellable {
  static Task<int> link(Level level, int depth) {
    Live live(level);
    if (depth == 0) co_return co_await at_bottom(level);
    co_return co_await noncancellable(link(level, depth - 1)) + 1;
  }
};
struct ThroughTry {
  static Task<int> link(Level level, int depth) {
    Live live(level);
    if (depth == 0) co_return co_await at_bottom(level);
    auto body = [&] { return link(level, depth - 1); };
    auto last = [] { return noop(); };
    co_return co_await try_(body).finally(last) + 1;
  }
};
struct ThroughThenAndAllOf {
  static Task<int> link(Level level, int depth) {
    Live live(level);
    if (depth == 0) co_return co_await at_bottom(level);
    auto next = [&] { return link(level, depth - 1); };
    auto [value] = co_await all_of(noop() | then(next));
    co_return value + 1;
  }
};

void on_small_stack(void (*fn)(void*), void* argument) {
  struct Call {
    void (*fn)(void*);
    void* argument;
  } call{fn, argument};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  auto enter = [](void* context) -> void* {
    auto* what = static_cast<Call*>(context);
    what->fn(what->argument);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, enter, &call), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

template <class Through>
class DepthTest : public ::testing::Test {
 protected:
  static void reach(Bottom bottom) {
    on_small_stack([](void* how) { on_this_stack(*static_cast<Bottom*>(how)); }, &bottom);
  }

 private:
  static void on_this_stack(Bottom bottom) {
    VirtualLoop loop;
    int live = 0;
    Level level{bottom, &live};
    auto root = [&]() -> Task<void> {
      StartedTask<int> s = Through::link(level, kDepth).start_in_current_scope();
      if (bottom == Bottom::parked) {
        co_await sleep_for(1ms);
        EXPECT_EQ(live, kDepth + 2);
        s.cancel();
      }
      Outcome<int> how = co_await s.outcome();
      EXPECT_EQ(live, 0);
      EXPECT_EQ(how.has_value(), bottom == Bottom::value);
      EXPECT_EQ(how.has_error(), bottom == Bottom::error);
      EXPECT_TRUE(!how.has_value() || std::move(how).get() == kDepth);
    };
    run(loop, root());
  }
};

using Wrappers = ::testing::Types<InLine, ThroughTimeout, ThroughAnyOf, ThroughNoncancellable,
                                  ThroughTry, ThroughThenAndAllOf>;
TYPED_TEST_SUITE(DepthTest, Wrappers);

TYPED_TEST(DepthTest, ReturnsThroughEveryLevel) { TestFixture::reach(Bottom::value); }
TYPED_TEST(DepthTest, ThrowsThroughEveryLevel) { TestFixture::reach(Bottom::error); }

// Nothing gets through noncancellable(): see below for its chain.
template <class Through>
class CancelledDepthTest : public DepthTest<Through> {};
using CancellableWrappers =
    ::testing::Types<InLine, ThroughTimeout, ThroughAnyOf, ThroughTry, ThroughThenAndAllOf>;
TYPED_TEST_SUITE(CancelledDepthTest, CancellableWrappers);
TYPED_TEST(CancelledDepthTest, IsDestroyedInnermostFirst) { TestFixture::reach(Bottom::parked); }

// A cancel that noncancellable() holds back at the top strikes when all levels have returned.
TEST(DepthNoncancellable, HoldsACancelBackThroughEveryLevel) {
  auto body = [](void*) {
    VirtualLoop loop;
    int live = 0;
    Level level{Bottom::value, &live};
    auto root = [&]() -> Task<void> {
      StartedTask<int> s = ThroughNoncancellable::link(level, kDepth).start_in_current_scope();
      co_await yield();
      co_await yield();
      s.cancel();
      Outcome<int> how = co_await s.outcome();
      EXPECT_TRUE(how.has_value());
      EXPECT_EQ(live, 0);
    };
    run(loop, root());
  };
  on_small_stack(body, nullptr);
}

}  // namespace
