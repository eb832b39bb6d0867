// SPDX-License-Identifier: MIT
#include "weft/adapt/stop_token.h"

#include <optional>
#include <thread>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

struct StopTokenTest : EachLoopTest {};

LOOP_TEST(StopTokenTest, ATokenThatIsNotStoppedChangesNothing) {
  std::stop_source source;
  int value = 3;
  auto main = [&]() -> Task<void> {
    std::expected<int, StopRequested> r = co_await with_stop_token(source.get_token(), returns(7));
    EXPECT_EQ(r, 7);
    auto nothing = co_await with_stop_token(std::stop_token(), yields(2));
    EXPECT_TRUE(nothing.has_value());
    auto at_once = co_await with_stop_token(source.get_token(), just(value));
    EXPECT_EQ(at_once, 3);
    bool thrown = false;
    try {
      co_await with_stop_token(source.get_token(), throws_after(1, "x"));
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
  };
  run_on(loop, main());
}

LOOP_TEST(StopTokenTest, AStoppedTokenCancelsAndTheCallerGoesOn) {
  std::stop_source source;
  Events events;
  auto main = [&]() -> Task<void> {
    auto stops = [&]() -> Task<void> {
      co_await yields(3);
      source.request_stop();
      events.push_back("request_stop() has returned");
    };
    StartedTask<void> s = stops().start_in_current_scope();
    auto r = co_await with_stop_token(source.get_token(), parked_with(events, "work"));
    EXPECT_EQ(r, std::unexpected(StopRequested{}));
    co_await yield();
    events.push_back("the caller goes on");
  };
  run_on(loop, main());
  EXPECT_EQ(events, (Events{"request_stop() has returned", "~work", "the caller goes on"}));
}

LOOP_TEST(StopTokenTest, ATokenThatIsStoppedAlreadyCancelsFromTheStart) {
  std::stop_source source;
  source.request_stop();
  Events events;
  auto main = [&]() -> Task<void> {
    bool started = false;
    auto start = [&](auto) { started = true; };
    auto cancel = [] {};
    auto skipped = co_await with_stop_token(source.get_token(), until_callback(start, cancel));
    EXPECT_FALSE(skipped.has_value() || started);
    auto entered = co_await with_stop_token(source.get_token(), parked_with(events, "work"));
    EXPECT_FALSE(entered.has_value());
    auto unshaken = co_await with_stop_token(source.get_token(), noncancellable(returns(5)));
    EXPECT_EQ(unshaken, 5) << "L5: a result is delivered";
  };
  run_on(loop, main());
  EXPECT_EQ(events, (Events{"~work"}));
}

LOOP_TEST(StopTokenTest, TheCallersOwnCancellationCancelsTheCaller) {
  std::stop_source source;
  Events events;
  auto waits = [&]() -> Task<void> {
    static_cast<void>(co_await with_stop_token(source.get_token(), parked_with(events, "work")));
    ADD_FAILURE();
  };
  auto main = [&]() -> Task<void> {
    StartedTask<void> s = waits().start_in_current_scope();
    co_await yields(3);
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
    // Both at once.
    StartedTask<void> both = waits().start_in_current_scope();
    co_await yields(3);
    source.request_stop();
    both.cancel();
    Outcome<void> end = co_await both.outcome();
    EXPECT_TRUE(end.is_cancelled());
  };
  run_on(loop, main());
  EXPECT_EQ(events, (Events{"~work", "~work"}));
}

LOOP_TEST(StopTokenTest, AStopThatComesWithTheEndIsWaitedFor) {
  std::stop_source source;
  auto main = [&]() -> Task<void> {
    auto stops_and_ends = [&]() -> Task<int> {
      co_await yield();
      source.request_stop();  // its post is under way when this ends
      co_return 2;
    };
    auto r = co_await with_stop_token(source.get_token(), stops_and_ends());
    EXPECT_EQ(r, 2);
  };
  run_on(loop, main());
}

LOOP_TEST(StopTokenTest, TheReasonIsTheToken) {
  std::stop_source source;
  const char* why = nullptr;
  auto main = [&]() -> Task<void> {
    auto work = [&]() -> Task<void> {
      StartedTask<void> child = parked().start_in_current_scope();
      Outcome<void> how = co_await noncancellable(child.outcome());
      why = how.reason().what;
    };
    auto stops = [&]() -> Task<void> {
      co_await yields(3);
      source.request_stop();
    };
    StartedTask<void> s = stops().start_in_current_scope();
    static_cast<void>(co_await with_stop_token(source.get_token(), work()));
  };
  run_on(loop, main());
  EXPECT_STREQ(why, reasons::stop_requested.what);
}

// request_stop() on another thread against the end of the work on this one.
TEST(StopToken, AStopFromAnotherThreadRacesTheEnd) {
  weft::testing::ThreadLoop loop;
  auto main = []() -> Task<int> {
    int ended = 0;
    for (int round = 0; round < 300; ++round) {
      std::stop_source source;
      std::jthread stopper([&source, round] {
        for (int i = 0; i < round % 30; ++i) std::this_thread::yield();
        source.request_stop();
      });
      auto r = co_await with_stop_token(source.get_token(), yields(round % 17));
      ended += r.has_value() || r.error() == StopRequested{};
      auto stopped = co_await with_stop_token(source.get_token(), suspend_forever());
      ended += !stopped.has_value();
    }
    co_return ended;
  };
  EXPECT_EQ(run(loop, main()), 600);
}

LOOP_TEST(StopTokenTest, ATasksTokenIsStoppedWithTheTask) {
  std::stop_token token;
  std::optional<std::thread::id> called_on;
  auto work = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    TaskStopSource stop(scope);
    token = stop.token();
    std::stop_callback callback(token, [&] { called_on = std::this_thread::get_id(); });
    EXPECT_FALSE(token.stop_requested());
    co_await suspend_forever();
  };
  auto main = [&]() -> Task<void> {
    StartedTask<void> s = work().start_in_current_scope();
    co_await yields(2);
    std::thread canceller([&] { s.cancel(); });
    canceller.join();
    EXPECT_FALSE(called_on.has_value()) << "L1: not on the canceller's stack";
    static_cast<void>(co_await s.outcome());
  };
  run_on(loop, main());
  EXPECT_TRUE(token.stop_requested());
  EXPECT_EQ(called_on, std::this_thread::get_id());
}

LOOP_TEST(StopTokenTest, ATasksTokenOutlivesItsTaskAndIsThenNeverStopped) {
  std::stop_token token;
  auto work = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    TaskStopSource stop(scope);
    token = stop.token();
    co_await yield();
  };
  run_on(loop, work());
  EXPECT_FALSE(token.stop_requested());
  EXPECT_FALSE(token.stop_possible());
}

}  // namespace
