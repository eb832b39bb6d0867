// SPDX-License-Identifier: MIT
#include "weft/adapt/libuv_loop.h"

#include <functional>
#include <memory>
#include <vector>

#include "support/bridge_suite.h"

namespace {

using namespace weft;
using namespace weft::test;

// Closing fails if a handle is left, so every test of the suite also shows that weft leaves none.
struct LibuvHome {
  LibuvHome() { uv_loop_init(&uv); }
  LibuvHome(const LibuvHome&) = delete;
  LibuvHome& operator=(const LibuvHome&) = delete;
  ~LibuvHome() { EXPECT_EQ(uv_loop_close(&uv), 0) << "a handle was left open"; }

  auto& loop() { return uv; }
  void call(std::function<void()> fn) {
    struct Soon {
      uv_timer_t timer;
      std::function<void()> fn;
    };
    auto* soon = new Soon{{}, std::move(fn)};
    uv_timer_init(&uv, &soon->timer);
    soon->timer.data = soon;
    auto due = [](uv_timer_t* timer) {
      static_cast<Soon*>(timer->data)->fn();
      uv_close(reinterpret_cast<uv_handle_t*>(timer),
               [](uv_handle_t* handle) { delete static_cast<Soon*>(handle->data); });
    };
    uv_timer_start(&soon->timer, due, 0, 0);
  }
  void stop() { uv_stop(&uv); }

  uv_loop_t uv;
};

}  // namespace

namespace weft::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Libuv, BridgeTest, LibuvHome);
}

namespace {

// Many posts, few wake-ups: uv_async_send() merges them, and none is lost.
TEST(LibuvLoop, MergedWakeUpsLoseNothing) {
  LibuvHome home;
  constexpr int kThreads = 2;
  constexpr int kPosts = 200;
  auto main = [&]() -> Task<int> {
    std::vector<std::jthread> threads;
    int sum = 0;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kThreads; ++i) {
        auto start = [&sum](const PromiseChildLease& lease) {
          auto adds = [](int& to) -> Task<void> {
            ++to;
            co_return;
          };
          for (int k = 0; k < kPosts; ++k) lease.start(adds(sum));
        };
        threads.emplace_back(start, n.lease());
      }
      co_return join;
    };
    co_await with_nursery(body);
    co_return sum;
  };
  EXPECT_EQ(run(home.loop(), main()), kThreads * kPosts);
}

TEST(LibuvLoop, OtherHandlesStayForLater) {
  LibuvHome home;
  int called = 0;
  uv_timer_t timer;
  uv_timer_init(&home.uv, &timer);
  timer.data = &called;
  uv_timer_start(&timer, [](uv_timer_t* t) { ++*static_cast<int*>(t->data); }, 20, 0);
  EXPECT_EQ(run(home.loop(), returns(1)), 1);
  EXPECT_EQ(called, 0);
  uv_run(&home.uv, UV_RUN_DEFAULT);
  EXPECT_EQ(called, 1);
  uv_close(reinterpret_cast<uv_handle_t*>(&timer), nullptr);
  uv_run(&home.uv, UV_RUN_DEFAULT);
}

}  // namespace
