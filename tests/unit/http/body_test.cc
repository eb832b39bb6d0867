// SPDX-License-Identifier: MIT
// Bodies of requests: how slow they may be, how much of one is held, and how often a byte is looked at.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "http/input.h"
#include "http/parser.h"
#include "support/http_fixture.h"
#include "weft/http/error.h"
#include "weft/testing/virtual_loop.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;
using test::parse_answers;

const std::string kPost = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ";

// A connection on a virtual clock; `client` is a coroutine, and does as it likes. Returns: the time it took.
using Client = std::function<Task<void>(net::MemoryStream&)>;
std::chrono::nanoseconds talk(Handler& handler, ServerOptions options,
                              net::MemoryStreamOptions wire, Client client) {
  weft::testing::VirtualLoop loop;
  Server server(handler, std::move(options));
  auto both = [&]() -> Task<void> {
    auto [near, far] = net::memory_streams(wire);
    net::MemoryStream mine = std::move(near);
    StreamTransport transport(std::move(far));
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    auto ask = [&]() -> Task<void> {
      co_await client(mine);
      mine.close();
    };
    co_await all_of(serve(), ask());
  };
  run(loop, both());
  EXPECT_EQ(loop.strand_count(), 0u);
  return loop.elapsed();
}

Task<void> send(net::MemoryStream& stream, std::string text) {
  Result<void> sent = co_await net::write_all(stream, text);
  or_throw(sent);
}

// --- How slow -----------------------------------------------------------------------------------------

// Sends `count` bytes, one each `pause`, and says what the answer was, and when.
struct Drip {
  int status = 0;
  std::chrono::nanoseconds after{};
};
Drip drip(Limits limits, std::size_t count, std::chrono::nanoseconds pause, Handler& handler) {
  Drip result;
  talk(handler, {.limits = limits}, {}, [&](net::MemoryStream& mine) -> Task<void> {
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      TimePoint start = now();
      auto write = [&]() -> Task<void> {
        co_await send(mine, kPost + std::to_string(count) + "\r\nConnection: close\r\n\r\n");
        for (std::size_t i = 0; i < count; ++i) {
          co_await sleep_for(pause);
          Result<void> sent = co_await net::write_all(mine, "x");
          if (!sent) co_return;
        }
      };
      nursery.start(write);
      std::array<std::byte, 1000> buffer;
      Result<std::size_t> head = co_await mine.read_some(buffer);
      result.after = now() - start;
      std::string text(reinterpret_cast<const char*>(buffer.data()), or_throw(head));
      result.status = parse_answers(text).at(0).status;
      co_return cancel;
    };
    co_await with_nursery(both);
  });
  return result;
}

struct HttpBody : ::testing::Test {
  HttpBody() {
    routes.post("/", [this](const Request& request, Response&) -> Task<void> {
      std::array<std::byte, 1> one;
      while (true) {
        Result<std::size_t> count = co_await request.body().read_some(one);
        if (or_throw(count) == 0) co_return;
        co_await sleep_for(pause);
      }
    });
  }
  std::chrono::milliseconds pause{0};  // of the handler, between two reads
  Router routes;
};

// A byte now and then is enough for body_timeout, and would hold the connection for years.
TEST_F(HttpBody, OneThatDripsIs408) {
  Limits limits{.body_timeout = 30s, .body_rate_min = 10, .body_grace = 60s};
  Drip slow = drip(limits, 1000, 29s, routes);
  EXPECT_EQ(slow.status, 408);
  EXPECT_EQ(slow.after, 60s + 200ms) << "its grace, and what two bytes have earned";
  slow = drip(limits, 1000, 5s, routes);
  EXPECT_EQ(slow.status, 408);
  EXPECT_EQ(slow.after, 60s + 1200ms) << "of twelve";
}

TEST_F(HttpBody, AsFastAsItMustBeIsFastEnough) {
  Limits limits{.body_timeout = 30s, .body_rate_min = 10, .body_grace = 1s};
  EXPECT_EQ(drip(limits, 1000, 100ms, routes).status, 200);
  EXPECT_EQ(drip(limits, 1000, 110ms, routes).status, 408);
  limits.body_rate_min = 0;
  EXPECT_EQ(drip(limits, 100, 29s, routes).status, 200) << "no matter how slow";
}

// The time between two reads is the handler's own: of a peer that is always a moment late, only the moment counts.
TEST_F(HttpBody, TheHandlersTimeIsNotThePeers) {
  pause = 10s;
  Limits limits{.body_timeout = 30s, .body_rate_min = 10, .body_grace = 11s};
  EXPECT_EQ(drip(limits, 100, 10s + 50ms, routes).status, 200);
}

// And what it waited for, and gave up, is the peer's.
TEST_F(HttpBody, WaitsThatAreGivenUpCount) {
  Router patient;
  TimePoint start{}, end{};
  patient.post("/", [&](const Request& request, Response&) -> Task<void> {
    std::array<std::byte, 1> one;
    start = now();
    for (int i = 0; i < 100; ++i) {
      auto count = co_await timeout(1s, request.body().read_some(one));
      if (!count) continue;
      end = now();
      or_throw(*count);
    }
  });
  Limits limits{.body_timeout = 30s, .body_rate_min = 10, .body_grace = 10s};
  EXPECT_EQ(drip(limits, 1000, 1h, patient).status, 408);
  EXPECT_EQ(end - start, 10s);
}

// --- How much -----------------------------------------------------------------------------------------

TEST_F(HttpBody, OneThatIsNotReadHoldsThePeerBack) {
  constexpr std::size_t kWire = 4096;
  Event may_read;
  std::size_t read = 0;
  Router routes;
  routes.post("/", [&](const Request& request, Response&) -> Task<void> {
    request.body().allow(10'000'000);
    co_await may_read.wait();
    std::array<std::byte, 1000> buffer;
    while (true) {
      Result<std::size_t> count = co_await request.body().read_some(buffer);
      if (or_throw(count) == 0) co_return;
      read += *count;
    }
  });
  talk(routes, {}, {.bytes_max = kWire}, [&](net::MemoryStream& mine) -> Task<void> {
    std::string body(1'000'000, 'b');
    co_await send(mine, kPost + std::to_string(body.size()) + "\r\n\r\n");
    std::size_t sent = 0;
    auto write = [&]() -> Task<void> {
      while (sent < body.size()) {
        std::string_view rest = std::string_view(body).substr(sent);
        Result<std::size_t> count = co_await mine.write_some(std::as_bytes(std::span(rest)));
        sent += or_throw(count);
      }
    };
    auto look = [&]() -> Task<void> {
      co_await sleep_for(1min);
      EXPECT_LE(sent, kWire + PooledBytes::kBytes) << "more than one read, and what is on its way";
      may_read.set();
    };
    co_await all_of(write(), look());
    std::array<std::byte, 1000> buffer;
    Result<std::size_t> answer = co_await mine.read_some(buffer);
    EXPECT_GT(or_throw(answer), 0u);
  });
  EXPECT_EQ(read, 1'000'000u);
}

// A hundred times what all buffers hold, in both directions, to a peer that is slow to read. What comes back is more than what was
// sent, so that a handler could write for long between two reads, which would make its output leave.
TEST_F(HttpBody, OneThatIsLargerThanAllBuffersStreams) {
  constexpr std::size_t kWire = 4096, kOutput = 8192, kPiece = 1000, kBody = 1'000'000, kTimes = 5;
  std::size_t sent = 0, read = 0, written = 0, received = 0;
  std::size_t ahead_most = 0, behind_most = 0, under_way_most = 0;
  Router routes;
  routes.post("/", [&](const Request& request, Response& response) -> Task<void> {
    request.body().allow(kBody);
    response.content_length(kTimes * kBody);
    std::array<std::byte, kPiece> buffer;
    while (true) {
      Result<std::size_t> count = co_await request.body().read_some(buffer);
      if (or_throw(count) == 0) co_return;
      read += *count;
      std::span<const std::byte> piece = std::span(buffer).first(*count);
      for (std::size_t i = 0; i < kTimes; ++i) {
        Result<void> done = co_await response.write(piece);
        or_throw(done);
        written += piece.size();
      }
    }
  });
  ServerOptions options{.limits = {.output_bytes = kOutput}};
  talk(routes, options, {.bytes_max = kWire}, [&](net::MemoryStream& mine) -> Task<void> {
    co_await send(mine, kPost + std::to_string(kBody) + "\r\nConnection: close\r\n\r\n");
    auto write = [&]() -> Task<void> {
      std::string piece(5000, 'p');
      while (sent < kBody) {
        Result<std::size_t> count = co_await mine.write_some(std::as_bytes(std::span(piece)));
        sent += or_throw(count);
        under_way_most =
            std::max(under_way_most, kTimes * sent - std::min(kTimes * sent, received));
      }
    };
    auto take = [&]() -> Task<void> {
      std::array<std::byte, 700> buffer;
      while (true) {
        ahead_most = std::max(ahead_most, sent - read);
        behind_most = std::max(behind_most, written - std::min(written, received));
        Result<std::size_t> count = co_await mine.read_some(buffer);
        if (or_throw(count) == 0) co_return;
        received += *count;
        co_await sleep_for(1ms);
      }
    };
    co_await all_of(write(), take());
  });
  EXPECT_GE(received, kTimes * kBody);
  EXPECT_LE(ahead_most, kWire + PooledBytes::kBytes);
  EXPECT_LE(behind_most, kWire + kOutput + kPiece);
  constexpr std::size_t kHeld =
      kTimes * (kWire + PooledBytes::kBytes + kPiece) + kOutput + kPiece + kWire;
  EXPECT_LE(under_way_most, kHeld) << "what comes back does so while the rest is still being sent";
}

// --- How often a byte is looked at ----------------------------------------------------------------------

// A head of single bytes is put together in one place, and each byte is parsed once.
TEST_F(HttpBody, AHeadOfSingleBytesIsParsedOnce) {
  std::string head = "GET /torn HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 50; ++i)
    head += "X-" + std::to_string(i) + ": " + std::string(100, 'v') + "\r\n";
  head += "\r\n";
  http::detail::MessageParser parser(
      http::detail::MessageParser::Kind::request,
      {.target_bytes_max = 1000, .bytes_max = 100'000, .fields_max = 100});
  http::detail::Input input;
  std::size_t given = 0;
  auto stop = http::detail::MessageParser::Stop::more;
  for (char c : head) {
    ASSERT_EQ(stop, http::detail::MessageParser::Stop::more);
    PooledBytes one = PooledBytes::allocate();
    one.room()[0] = static_cast<std::byte>(c);
    one.set_size(1);
    input.add(std::move(one), parser, false);
    given += input.next().size();
    auto step = parser.walk(input.next());
    stop = step.stop;
    input.take(step.taken);
  }
  EXPECT_EQ(stop, http::detail::MessageParser::Stop::message);
  EXPECT_EQ(given, head.size());
  EXPECT_EQ(parser.target(), "/torn");
  ASSERT_EQ(parser.fields().size(), 51u);
  EXPECT_EQ(parser.fields()[50].value, std::string(100, 'v'));
}

}  // namespace
