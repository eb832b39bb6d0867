// SPDX-License-Identifier: MIT
#include "weft/adapt/asio_loop.h"

#include <functional>
#include <stdexcept>

#include "support/bridge_suite.h"

namespace {

using namespace weft;
using namespace weft::test;
namespace asio = weft::detail::asio_lib;

struct AsioHome {
  asio::io_context context;

  auto& loop() { return context; }
  void call(std::function<void()> fn) { asio::post(context, std::move(fn)); }
  void stop() { context.stop(); }
};

}  // namespace

namespace weft::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Asio, BridgeTest, AsioHome);
}

namespace {

TEST(AsioLoop, StopFromAnotherThreadEndsTheTasks) {
  asio::io_context context;
  Events events;
  std::jthread stopper;
  auto main = [&]() -> Task<void> {
    stopper = std::jthread([&] { context.stop(); });
    Marker marker(events, "main");
    co_await suspend_forever();
  };
  EXPECT_THROW(run(context, main()), UsageError);
  EXPECT_EQ(events, (Events{"~main"}));
}

TEST(AsioLoop, OtherWorkOfTheContextStaysForLater) {
  asio::io_context context;
  int called = 0;
  asio::steady_timer timer(context, 20ms);
  timer.async_wait([&](auto) { ++called; });
  EXPECT_EQ(run(context, returns(1)), 1);
  EXPECT_EQ(called, 0);
  context.run();
  EXPECT_EQ(called, 1);
}

TEST(AsioLoop, WhatAHandlerThrowsEndsTheTasksAndIsRethrown) {
  asio::io_context context;
  Events events;
  asio::post(context, [] { throw std::runtime_error("handler"); });
  EXPECT_THROW(run(context, parked_with(events, "main")), std::runtime_error);
  EXPECT_EQ(events, (Events{"~main"}));
}

TEST(AsioLoopDeathTest, ASecondThreadThatRunsTheContextIsRefused) {
  EXPECT_DEATH(
      {
        asio::io_context context;
        auto main = [&]() -> Task<void> {
          std::jthread other([&] { context.run(); });
          for (;;) co_await yield();
        };
        run(context, main());
      },
      "run by that thread alone");
}

}  // namespace
