// SPDX-License-Identifier: MIT
// An answer and the next request in one wait: what it says of each, and what it does to the other. What is sent is one byte where all of it is to
// arrive at once: in chaos mode anything longer comes in pieces.
#include "weft/http/write_and_read.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "support/drivers.h"
#include "support/http_fixture.h"
#include "support/loop_fixture.h"
#include "support/temporary_directory.h"
#include "weft/net/unix.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;
using http::detail::write_and_read;
using http::detail::WriteAndReadTimes;
using http::detail::WrittenAndRead;

constexpr WriteAndReadTimes kLong{10s, 10s};

struct WriteAndRead : ::testing::TestWithParam<Driver>, http::detail::WriteListener {
  // Runs `body` with two ends of one connection.
  template <class Body>
  void with_pair(Body body) {
    EventLoop loop({.driver = GetParam()});
    auto root = [&]() -> Task<void> {
      auto [ours, theirs] = or_throw(net::UnixStream::pair());
      net::UnixStream mine = std::move(ours), peer = std::move(theirs);
      socket = &mine.descriptor();
      co_await body(mine, peer);
    };
    run(loop, root());
    EXPECT_EQ(loop.strand_count(), 0u);
  }
  Task<WrittenAndRead> exchange(std::string_view bytes, WriteAndReadTimes times = kLong) {
    return write_and_read(*socket, std::as_bytes(std::span(bytes)), times, *this);
  }
  // Until nothing more goes without waiting.
  std::size_t fill() {
    std::string piece(4096, 'f');
    std::size_t bytes = 0;
    while (true) {
      ssize_t count =
          ::send(socket->number(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count <= 0) return bytes;
      bytes += static_cast<std::size_t>(count);
    }
  }
  bool written() noexcept override {
    ++heard;
    return goes_on;
  }

  Descriptor* socket = nullptr;
  int heard = 0;
  bool goes_on = true;
};

std::string text_of(const WrittenAndRead& outcome) {
  if (!outcome.read) return "nothing";
  if (!*outcome.read) return (*outcome.read).error().message();
  const PooledBytes& bytes = **outcome.read;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Task<std::string> read_some(net::UnixStream& stream, std::size_t bytes_max) {
  std::string bytes(bytes_max, '\0');
  Result<std::size_t> count = co_await stream.read_some(std::as_writable_bytes(std::span(bytes)));
  bytes.resize(or_throw(count));
  co_return bytes;
}

Task<std::string> read_to_end(net::UnixStream& stream) {
  std::string all;
  while (true) {
    std::string more = co_await read_some(stream, 4096);
    if (more.empty()) co_return all;
    all += more;
  }
}

TEST_P(WriteAndRead, WhatIsWrittenLeavesAndWhatComesNextIsRead) {
  with_pair([&](net::UnixStream&, net::UnixStream& peer) -> Task<void> {
    auto answer = [&]() -> Task<void> {
      std::string question = co_await read_some(peer, 100);
      EXPECT_EQ(question, "q");
      Result<void> sent = co_await net::write_all(peer, "a");
      or_throw(sent);
    };
    auto [outcome, none] = co_await all_of(exchange("q"), answer());
    EXPECT_EQ(outcome.written, 1u);
    EXPECT_FALSE(outcome.write_error);
    EXPECT_EQ(text_of(outcome), "a");
    EXPECT_EQ(heard, 1);
  });
}

// W1: also if something was there before, and the read did not have to wait.
TEST_P(WriteAndRead, TheWriteIsWaitedForThoughTheReadIsOver) {
  with_pair([&](net::UnixStream&, net::UnixStream& peer) -> Task<void> {
    Result<void> sent = co_await net::write_all(peer, "e");
    or_throw(sent);
    std::size_t filled = fill();
    bool is_over = false;
    auto drain = [&]() -> Task<void> {
      for (int i = 0; i < 10; ++i) co_await yield();
      EXPECT_FALSE(is_over);
      for (std::size_t read = 0; read < filled + 1;) {
        std::string some = co_await read_some(peer, 4096);
        read += some.size();
      }
    };
    auto ask = [&]() -> Task<void> {
      WrittenAndRead outcome = co_await exchange("l");
      is_over = true;
      EXPECT_EQ(outcome.written, 1u);
      EXPECT_EQ(text_of(outcome), "e");
      EXPECT_EQ(heard, 1);
    };
    co_await all_of(ask(), drain());
  });
}

// W2.
TEST_P(WriteAndRead, AShortWriteEndsTheRead) {
  with_pair([&](net::UnixStream&, net::UnixStream&) -> Task<void> {
    std::string many(8'000'000, 'm');
    TimePoint begun = now();
    WrittenAndRead outcome = co_await exchange(many);
    EXPECT_LT(now() - begun, kLong.read) << "nobody else would have ended it";
    EXPECT_GT(outcome.written, 0u);
    EXPECT_LT(outcome.written, many.size());
    EXPECT_FALSE(outcome.write_error);
    EXPECT_EQ(text_of(outcome), "nothing");
    EXPECT_EQ(heard, 0);
  });
}

TEST_P(WriteAndRead, APeerThatHasGoneIsAnErrorOfTheWrite) {
  with_pair([&](net::UnixStream&, net::UnixStream& peer) -> Task<void> {
    peer.close();
    WrittenAndRead outcome = co_await exchange("?");
    EXPECT_EQ(outcome.write_error, std::errc::broken_pipe);
    EXPECT_EQ(outcome.written, 0u);
    EXPECT_EQ(heard, 0);
  });
}

TEST_P(WriteAndRead, APeerThatEndsIsTheEndOfTheRead) {
  with_pair([&](net::UnixStream&, net::UnixStream& peer) -> Task<void> {
    Result<void> shut = co_await peer.shutdown_write();
    or_throw(shut);
    WrittenAndRead outcome = co_await exchange("?");
    EXPECT_EQ(outcome.written, 1u);
    EXPECT_EQ(text_of(outcome), "");
    EXPECT_EQ(heard, 1);
  });
}

TEST_P(WriteAndRead, AWriteHasItsTime) {
  with_pair([&](net::UnixStream&, net::UnixStream&) -> Task<void> {
    fill();
    TimePoint begun = now();
    WrittenAndRead outcome = co_await exchange("s", {20ms, 10s});
    EXPECT_GE(now() - begun, 20ms);
    EXPECT_EQ(outcome.write_error, std::errc::timed_out);
    EXPECT_EQ(text_of(outcome), "nothing");
    EXPECT_EQ(heard, 0);
  });
}

// W3: that of the write is over before, or comes long after.
TEST_P(WriteAndRead, AReadHasItsOwnTime) {
  with_pair([&](net::UnixStream&, net::UnixStream&) -> Task<void> {
    for (std::chrono::milliseconds write : {1ms, 15ms, 10'000ms}) {
      TimePoint begun = now();
      WrittenAndRead outcome = co_await exchange("h", {write, 30ms});
      EXPECT_GE(now() - begun, 30ms);
      EXPECT_LT(now() - begun, 5s);
      EXPECT_FALSE(outcome.write_error);
      EXPECT_EQ(text_of(outcome), std::make_error_code(std::errc::timed_out).message());
    }
    EXPECT_EQ(heard, 3);
  });
}

// W2.
TEST_P(WriteAndRead, TheReadMayBeGivenUpWhenAllHasLeft) {
  goes_on = false;
  with_pair([&](net::UnixStream&, net::UnixStream& peer) -> Task<void> {
    TimePoint begun = now();
    WrittenAndRead outcome = co_await exchange("g");
    EXPECT_LT(now() - begun, kLong.read);
    EXPECT_EQ(outcome.written, 1u);
    EXPECT_EQ(text_of(outcome), "nothing");
    std::string there = co_await read_some(peer, 100);
    EXPECT_EQ(there, "g");
  });
}

// L5.
TEST_P(WriteAndRead, CancelledWhileItWritesItDeliversWhatWasRead) {
  with_pair([&](net::UnixStream&, net::UnixStream& peer) -> Task<void> {
    Result<void> sent = co_await net::write_all(peer, "e");
    or_throw(sent);
    fill();
    std::string got;
    auto ask = [&]() -> Task<void> {
      WrittenAndRead outcome = co_await exchange("s");
      got = text_of(outcome);
    };
    auto given_up = co_await timeout(20ms, ask());
    EXPECT_TRUE(given_up.has_value()) << "it has a result after all";
    EXPECT_EQ(got, "e");
    EXPECT_EQ(heard, 0);
  });
}

// L5. Who is cancelled has taken nothing, or delivers it.
TEST_P(WriteAndRead, CancelledAnywhereItLosesNothing) {
  with_pair([&](net::UnixStream& mine, net::UnixStream& peer) -> Task<void> {
    std::string sent, received;
    int cancelled = 0;
    for (int round = 0; round < 200; ++round) {
      auto ask = [&]() -> Task<void> {
        WrittenAndRead outcome = co_await exchange("q");
        if (outcome.read) received += text_of(outcome);
      };
      auto answer = [&]() -> Task<void> {
        for (int i = 0; i < round % 7; ++i) co_await yield();
        if (round % 3 == 0) co_return;
        std::string letter(1, static_cast<char>('a' + sent.size() % 26));
        Result<void> gone = co_await net::write_all(peer, letter);
        or_throw(gone);
        sent += letter;
        for (int i = 0; i < round % 5; ++i) co_await yield();
      };
      auto [asked, answered] = co_await any_of(ask(), answer());
      if (!asked) ++cancelled;
    }
    Result<void> shut = co_await peer.shutdown_write();
    or_throw(shut);
    received += co_await read_to_end(mine);
    EXPECT_EQ(received, sent);
    mine.close();
    std::string questions = co_await read_to_end(peer);
    EXPECT_EQ(questions, std::string(static_cast<std::size_t>(heard), 'q'));
    EXPECT_GT(cancelled, 0);
    EXPECT_LT(cancelled, 200);
  });
}

// Two that are asked for at once. The second one's handler lets others run, and so the first answer is about to leave by itself when
// both could: it leaves once, and nobody else writes meanwhile.
TEST_P(WriteAndRead, AnAnswerThatIsOvertakenLeavesOnce) {
  Router routes;
  routes.get("/", [](const Request&, Response& response) -> Task<void> {
    response.body("text/plain", "first");
    co_return;
  });
  routes.get("/later", [](const Request&, Response& response) -> Task<void> {
    co_await yield();
    response.body("text/plain", "second");
  });
  EventLoop loop({.driver = GetParam()});
  Server server(routes);
  test::LogCapture log;
  const std::string both =
      "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /later HTTP/1.1\r\nHost: a\r\n\r\n";
  auto [ours, theirs] = or_throw(net::UnixStream::pair());
  net::UnixStream mine = std::move(ours);
  StreamTransport transport(std::move(theirs));
  auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(serve);
    for (int round = 0; round < 20; ++round) {
      Result<void> asked = co_await net::write_all(mine, both);
      or_throw(asked);
      std::string answers;
      while (!answers.ends_with("second")) {
        std::string more = co_await read_some(mine, 4096);
        if (more.empty()) break;
        answers += more;
      }
      EXPECT_EQ(test::parse_answers(answers).size(), 2u);
    }
    mine.close();
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(all); };
  run(loop, root());
  for (const std::string& line : log.take()) EXPECT_EQ(line.find("writ"), line.npos) << line;
}

// The answers that fill the socket were begun before the stop: the peer has them all, when it reads at last.
TEST_P(WriteAndRead, AStopLetsTheAnswerLeaveThatHasNoRoom) {
  const std::string body(15'000, 'b');
  Router routes;
  int handled = 0;
  AutoEvent moved;
  routes.get("/", [&](const Request&, Response& response) -> Task<void> {
    response.body("text/plain", body);
    ++handled;
    moved.set();
    co_return;
  });
  EventLoop loop({.driver = GetParam()});
  Server server(routes);
  test::TemporaryDirectory directory;
  const std::string path = directory.file("socket");
  std::string answers;
  net::UnixListener listener = or_throw(net::UnixListener::listen(path));
  auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto serving = serve().start(nursery);
    Result<net::UnixStream> connected = co_await net::UnixStream::connect(path);
    net::UnixStream mine = or_throw(std::move(connected));
    while (true) {
      Result<void> asked = co_await net::write_all(mine, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      or_throw(asked);
      auto goes_on = co_await timeout(50ms, moved.wait());
      if (!goes_on) break;
    }
    serving.cancel();
    for (int i = 0; i < 10; ++i) co_await yield();
    EXPECT_EQ(server.connections(), 1u) << "it was cut off";
    answers = co_await read_to_end(mine);
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(all); };
  run(loop, root());
  std::vector<test::Answer> whole = test::parse_answers(answers);
  EXPECT_GT(handled, 5);
  EXPECT_EQ(whole.size(), static_cast<std::size_t>(handled));
  for (const test::Answer& answer : whole) EXPECT_EQ(answer.body, body);
}

INSTANTIATE_TEST_SUITE_P(Drivers, WriteAndRead, ::testing::ValuesIn(test::drivers_here()),
                         test::driver_name);

}  // namespace
