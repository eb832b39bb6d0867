// SPDX-License-Identifier: MIT
#include "weft/adapt/glib_loop.h"

#include <functional>
#include <future>

#include "support/bridge_suite.h"

namespace {

using namespace weft;
using namespace weft::test;

struct OwnContext {
  OwnContext() : context(g_main_context_new()), main_loop(g_main_loop_new(context, FALSE)) {}
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  ~OwnContext() {
    g_main_loop_unref(main_loop);
    g_main_context_unref(context);
  }
  void call(std::function<void()> fn) {
    GSource* source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    auto once = [](void* data) -> gboolean {
      (*static_cast<std::function<void()>*>(data))();
      return G_SOURCE_REMOVE;
    };
    auto free = [](void* data) { delete static_cast<std::function<void()>*>(data); };
    g_source_set_callback(source, once, new std::function<void()>(std::move(fn)), free);
    g_source_attach(source, context);
    g_source_unref(source);
  }
  GMainContext* context;
  GMainLoop* main_loop;
};

struct GlibLoopHome : OwnContext {
  auto& loop() { return *main_loop; }
  void stop() { g_main_loop_quit(main_loop); }
};

}  // namespace

namespace weft::test {
INSTANTIATE_TYPED_TEST_SUITE_P(GlibLoop, BridgeTest, GlibLoopHome);
}

namespace {

TEST(GlibLoop, QuitFromAnotherThreadEndsTheTasks) {
  OwnContext own;
  Events events;
  std::jthread quitter;
  auto main = [&]() -> Task<void> {
    co_await yield();
    quitter = std::jthread([&] { g_main_loop_quit(own.main_loop); });
    Marker marker(events, "main");
    co_await suspend_forever();
  };
  EXPECT_THROW(run(*own.main_loop, main()), UsageError);
  EXPECT_EQ(events, (Events{"~main"}));
}

TEST(GlibLoop, AContextIsALoopToo) {
  OwnContext own;
  auto main = [&]() -> Task<int> {
    EXPECT_EQ(g_main_context_get_thread_default(), own.context);
    auto late = co_await timeout(1ms, suspend_forever());
    EXPECT_THROW(run(*own.context, returns(1)), UsageError);
    EXPECT_THROW(run(*own.main_loop, returns(1)), UsageError) << "which is the same context";
    co_return late.has_value() ? 0 : 1;
  };
  EXPECT_EQ(run(*own.context, main()), 1);
  EXPECT_EQ(g_main_context_get_thread_default(), nullptr);
}

TEST(GlibLoop, AContextOfAnotherThreadIsRefused) {
  OwnContext own;
  std::promise<void> acquired, refused;
  std::jthread owner([&] {
    EXPECT_TRUE(g_main_context_acquire(own.context));
    acquired.set_value();
    refused.get_future().wait();
    g_main_context_release(own.context);
  });
  acquired.get_future().wait();
  EXPECT_THROW(run(*own.context, returns(1)), UsageError);
  refused.set_value();
}

TEST(GlibLoop, OtherSourcesStayForLater) {
  OwnContext own;
  int called = 0;
  GSource* timer = g_timeout_source_new(20);
  auto once = [](void* data) -> gboolean {
    ++*static_cast<int*>(data);
    return G_SOURCE_REMOVE;
  };
  g_source_set_callback(timer, once, &called, nullptr);
  g_source_attach(timer, own.context);
  g_source_unref(timer);
  EXPECT_EQ(run(*own.context, returns(1)), 1);
  EXPECT_EQ(called, 0);
  while (called == 0) g_main_context_iteration(own.context, TRUE);
}

}  // namespace
