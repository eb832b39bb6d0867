// SPDX-License-Identifier: MIT
#include "weft/adapt/asio_token.h"

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/loop_fixture.h"
#include "weft/adapt/asio_loop.h"
#ifdef WEFT_ASIO_STANDALONE
#include <asio.hpp>
#else
#include <boost/asio.hpp>
#endif

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
namespace asio = weft::detail::asio_lib;
using asio::ip::tcp;
using error_code = weft::detail::AsioError;

// An io_context that a thread of its own runs, until it is destroyed.
class ContextThread {
 public:
  ~ContextThread() { stop(); }
  void stop() {
    work_.reset();
    if (thread_.joinable()) thread_.join();
  }
  asio::io_context context;

 private:
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_{
      context.get_executor()};
  std::thread thread_{[this] { context.run(); }};
};

struct Pair {
  explicit Pair(asio::io_context& context) : near(context), far(context) {
    tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    near.connect(acceptor.local_endpoint());
    acceptor.accept(far);
  }
  tcp::socket near;
  tcp::socket far;
};

// --- With the context as the home ---------------------------------------------------------------

TEST(AsioToken, ReadsWritesAndWaits) {
  asio::io_context context;
  Pair pair(context);
  auto main = [&]() -> Task<std::string> {
    std::string text = "hello";
    Result<std::size_t> sent = co_await asio::async_write(pair.near, asio::buffer(text), use_weft);
    EXPECT_EQ(sent, 5u);
    std::array<char, 16> bytes;
    Result<std::size_t> got = co_await pair.far.async_read_some(asio::buffer(bytes), use_weft);
    asio::steady_timer timer(context, 1ms);
    Result<void> waited = co_await timer.async_wait(use_weft);
    EXPECT_TRUE(waited.has_value());
    co_await asio::post(context, use_weft);
    co_return std::string(bytes.data(), or_throw(got));
  };
  EXPECT_EQ(run(context, main()), "hello");
}

TEST(AsioToken, AnErrorIsAResultAndTheTupleKeepsWhatCameBeforeIt) {
  asio::io_context context;
  Pair pair(context);
  auto main = [&]() -> Task<void> {
    std::string text = "abc";
    co_await asio::async_write(pair.near, asio::buffer(text), use_weft);
    pair.near.close();
    std::array<char, 16> bytes;
    auto [error, n] = co_await asio::async_read(pair.far, asio::buffer(bytes), use_weft_tuple);
    EXPECT_EQ(error, asio::error::eof);
    EXPECT_EQ(n, 3u);
    Result<std::size_t> got = co_await pair.far.async_read_some(asio::buffer(bytes), use_weft);
    EXPECT_FALSE(got.has_value());
    EXPECT_TRUE(got.error() == error_code(asio::error::eof));
  };
  run(context, main());
}

Task<void> reads_forever(tcp::socket& socket, Events& events) {
  Marker marker(events, "reader");
  std::array<char, 16> bytes;
  static_cast<void>(co_await socket.async_read_some(asio::buffer(bytes), use_weft));
  events.push_back("read");
}

TEST(AsioToken, ACancelledOperationEndsCancelled) {
  asio::io_context context;
  Pair pair(context);
  Events events;
  auto main = [&]() -> Task<void> {
    StartedTask<void> reader = reads_forever(pair.far, events).start_in_current_scope();
    co_await yields(3);
    reader.cancel();
    Outcome<void> how = co_await reader.outcome();
    EXPECT_TRUE(how.is_cancelled());
    auto late = co_await timeout(1ms, reads_forever(pair.far, events));
    EXPECT_FALSE(late.has_value());
    // The socket is as good as before.
    std::string text = "x";
    co_await asio::async_write(pair.near, asio::buffer(text), use_weft);
    co_await reads_forever(pair.far, events);
  };
  run(context, main());
  EXPECT_EQ(events, (Events{"~reader", "~reader", "read", "~reader"}));
}

// L5: the bytes were there before the request arrived.
TEST(AsioToken, AnOperationThatWasDoneBeforeTheCancelIsDelivered) {
  asio::io_context context;
  Pair pair(context);
  Events events;
  auto main = [&]() -> Task<void> {
    pair.near.send(asio::buffer("x", 1));
    StartedTask<void> reader = reads_forever(pair.far, events).start_in_current_scope();
    while (pair.far.available() == 0) std::this_thread::yield();
    co_await yield();  // the reader has started, and tried at once
    reader.cancel();
    static_cast<void>(co_await reader.outcome());
  };
  run(context, main());
  EXPECT_EQ(events, (Events{"read", "~reader"}));
}

// L5: a part of the bytes has left the socket, and cannot go back.
TEST(AsioToken, WhatACancelledOperationDidInPartIsDelivered) {
  asio::io_context context;
  Pair pair(context);
  std::optional<Result<std::size_t>> got;
  std::array<char, 16> bytes;
  auto reads_all = [&]() -> Task<void> {
    got = co_await asio::async_read(pair.far, asio::buffer(bytes), use_weft);
    co_await yield();
    ADD_FAILURE() << "cancellation strikes at the next co_await";
  };
  auto main = [&]() -> Task<void> {
    StartedTask<void> reader = reads_all().start_in_current_scope();
    pair.near.send(asio::buffer("abc", 3));
    do {
      co_await yield();
    } while (pair.far.available() != 0);  // until they were read
    reader.cancel();
    Outcome<void> how = co_await reader.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(context, main());
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(*got, 3u);
}

TEST(AsioToken, SomeoneElsesAbortIsAnErrorAndNotACancellation) {
  asio::io_context context;
  asio::steady_timer timer(context, 1h);
  auto main = [&]() -> Task<void> {
    asio::post(context, [&] { timer.cancel(); });
    Result<void> waited = co_await timer.async_wait(use_weft);
    EXPECT_FALSE(waited.has_value());
    EXPECT_TRUE(waited.error() == error_code(asio::error::operation_aborted));
  };
  run(context, main());
}

TEST(AsioToken, OperationsInFlightEndWhenTheContextIsStopped) {
  asio::io_context context;
  Pair pair(context);
  Events events;
  auto main = [&]() -> Task<void> {
    asio::post(context, [&] { context.stop(); });
    co_await reads_forever(pair.far, events);
  };
  EXPECT_THROW(run(context, main()), UsageError);
  EXPECT_EQ(events, (Events{"~reader"}));
}

// Its signal has no thread of its own to be emitted on.
TEST(AsioToken, AnOperationThatNamesNoExecutorIsWaitedFor) {
  asio::io_context context;
  asio::steady_timer timer(context, 3ms);
  std::optional<int> got;
  auto waits = [&]() -> Task<void> {
    auto init = [&](auto handler) {
      timer.async_wait([handler = std::move(handler)](auto) mutable { std::move(handler)(4); });
    };
    got = co_await asio::async_initiate<const UseWeft<false>, void(int)>(init, use_weft);
    co_await yield();
    ADD_FAILURE() << "cancellation strikes at the next co_await";
  };
  auto main = [&]() -> Task<void> {
    StartedTask<void> s = waits().start_in_current_scope();
    co_await yields(2);
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_TRUE(how.is_cancelled());
  };
  run(context, main());
  EXPECT_EQ(got, 4);
}

TEST(AsioToken, AnInitiationThatThrowsIsNoWait) {
  asio::io_context context;
  auto main = [&]() -> Task<void> {
    auto init = [](auto) { throw std::runtime_error("init"); };
    bool thrown = false;
    try {
      co_await asio::async_initiate<const UseWeft<false>, void(int)>(init, use_weft);
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
    auto drops = [](auto) {};
    try {
      co_await asio::async_initiate<const UseWeft<false>, void(int)>(drops, use_weft);
      ADD_FAILURE();
    } catch (const std::system_error&) {
    }
    co_await yield();
  };
  run(context, main());
}

TEST(AsioToken, CompletionsOfEveryShape) {
  asio::io_context context;
  auto start = [&](auto signature, auto... values) {
    using Signature = typename decltype(signature)::type;
    auto init = [&context, values...](auto handler) mutable {
      asio::post(context, [handler = std::move(handler), values...]() mutable {
        std::move(handler)(values...);
      });
    };
    return asio::async_initiate<const UseWeft<false>, Signature>(init, use_weft);
  };
  error_code none;
  std::exception_ptr no_exception;
  auto main = [&]() -> Task<void> {
    co_await start(std::type_identity<void()>());
    EXPECT_EQ(co_await start(std::type_identity<void(int)>(), 1), 1);
    auto both = co_await start(std::type_identity<void(int, char)>(), 1, 'a');
    EXPECT_EQ(both, std::tuple(1, 'a'));
    auto two = co_await start(std::type_identity<void(error_code, int, char)>(), none, 1, 'a');
    EXPECT_TRUE(two.has_value() && *two == std::tuple(1, 'a'));
    int value =
        co_await start(std::type_identity<void(std::exception_ptr, int)>(), no_exception, 2);
    EXPECT_EQ(value, 2);
    std::exception_ptr error = std::make_exception_ptr(std::runtime_error("x"));
    bool thrown = false;
    try {
      co_await start(std::type_identity<void(std::exception_ptr)>(), error);
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
  };
  run(context, main());
}

// --- With the context on a thread of its own ----------------------------------------------------

struct AsioTokenTest : LoopTest<weft::testing::ThreadLoop> {};

TEST_F(AsioTokenTest, ACompletionOnAnotherThreadComesHome) {
  ContextThread other;
  auto main = [&]() -> Task<void> {
    for (int i = 0; i < 200; ++i) {
      std::thread::id here = std::this_thread::get_id();
      asio::steady_timer timer(other.context, 0ms);
      Result<void> waited = co_await timer.async_wait(use_weft);
      EXPECT_TRUE(waited.has_value());
      EXPECT_EQ(std::this_thread::get_id(), here);
    }
  };
  run_on(loop, main());
}

// Cancel and completion race on two threads: each wait ends in one way or the other, and once.
TEST_F(AsioTokenTest, ACancelRacesTheCompletion) {
  ContextThread other;
  int cancelled = 0;
  int done = 0;
  auto waits = [&](std::chrono::microseconds time) -> Task<void> {
    asio::steady_timer timer(other.context, time);
    Result<void> waited = co_await timer.async_wait(use_weft);
    EXPECT_TRUE(waited.has_value());
    ++done;
  };
  auto main = [&]() -> Task<void> {
    for (int i = 0; i < 300; ++i) {
      StartedTask<void> s = waits(std::chrono::microseconds(i % 100)).start_in_current_scope();
      co_await sleep_for(std::chrono::microseconds(i % 97));
      s.cancel();
      Outcome<void> how = co_await s.outcome();
      cancelled += how.is_cancelled();
    }
  };
  run_on(loop, main());
  EXPECT_EQ(cancelled + done, 300);
}

TEST_F(AsioTokenTest, ACancelFromAThirdThreadEndsALongWait) {
  ContextThread other;
  auto main = [&]() -> Task<void> {
    for (int i = 0; i < 20; ++i) {
      asio::steady_timer timer(other.context, 1h);
      auto waits = [&]() -> Task<void> { co_await timer.async_wait(use_weft); };
      StartedTask<void> s = waits().start_in_current_scope();
      std::jthread canceller([handle = s.cancel_handle()] { handle.cancel(); });
      Outcome<void> how = co_await s.outcome();
      EXPECT_TRUE(how.is_cancelled());
    }
  };
  run_on(loop, main());
}

TEST_F(AsioTokenTest, AnOperationWhoseContextIsDestroyedEnds) {
  auto context = std::make_unique<asio::io_context>();
  auto timer = std::make_unique<asio::steady_timer>(*context, 1h);
  std::jthread destroyer;
  auto main = [&]() -> Task<void> {
    auto destroys = [&]() -> Task<void> {
      co_await yield();
      destroyer = std::jthread([&] {
        timer.reset();    // makes the handler ready, with operation_aborted
        context.reset();  // and drops it, because nobody runs it
      });
    };
    StartedTask<void> s = destroys().start_in_current_scope();
    Result<void> waited = co_await timer->async_wait(use_weft);
    EXPECT_FALSE(waited.has_value());
    co_await std::move(s);
  };
  run_on(loop, main());
}

}  // namespace
