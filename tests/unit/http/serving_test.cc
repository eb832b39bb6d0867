// SPDX-License-Identifier: MIT
// The server on real sockets: stopping, peers that misbehave, other people's clients.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/drivers.h"
#include "support/http_fixture.h"
#include "support/temporary_directory.h"
#include "weft/http/error.h"
#include "weft/net/tcp.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;
using test::parse_answers;

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

Task<void> hello(const Request&, Response& response) {
  response.body("text/plain", "Hello.\n");
  co_return;
}

struct HttpServing : testing::Test {
  HttpServing() : listener(or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)))) {
    where = or_throw(listener.local_address());
    routes.get("/", hello);
  }

  // Runs `client` beside the server, then stops that.
  template <class Client>
  void with_server(ServerOptions options, Client client, Driver driver = Driver::automatic) {
    EventLoop loop({.driver = driver});
    Server server(routes, std::move(options));
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
      nursery.start(serve);
      co_await client();
      co_return cancel;
    };
    auto body = [&]() -> Task<void> { co_await with_nursery(both); };
    run(loop, body());
    EXPECT_EQ(server.connections(), 0u);
    EXPECT_EQ(loop.strand_count(), 0u);
  }
  Task<net::TcpStream> connect() {
    Result<net::TcpStream> stream = co_await net::TcpStream::connect(where);
    co_return or_throw(std::move(stream));
  }

  net::TcpListener listener;
  net::Address where;
  Router routes;
};

Task<void> send(net::TcpStream& stream, std::string text) {
  Result<void> sent = co_await net::write_all(stream, text);
  or_throw(sent);
}

// All that comes until `count` answers with a body of `body` are there, or until the end.
Task<std::string> receive(net::TcpStream& stream, std::string_view until) {
  std::string all;
  std::array<std::byte, 4096> buffer;
  while (all.find(until) == all.npos) {
    Result<std::size_t> count = co_await stream.read_some(buffer);
    if (!count || *count == 0) break;
    all.append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
  co_return all;
}

Task<std::string> receive_all(net::TcpStream& stream) {
  co_return co_await receive(stream, std::string_view("\0never", 6));
}

// RFC 9112, 9.6: the last answer says that it is.
TEST_F(HttpServing, AStopClosesWhoWaitsAndLetsTheOthersFinish) {
  Event begun, may_end;
  routes.get("/slow", [&](const Request&, Response& response) -> Task<void> {
    begun.set();
    co_await may_end.wait();
    response.body("done");
  });
  EventLoop loop;
  Server server(routes);
  std::string slow_answer, idle_answer;
  Nursery* all_of_it = nullptr;
  auto clients = [&]() -> Task<void> {
    net::TcpStream idle = co_await connect();
    co_await send(idle, kGet);
    idle_answer = co_await receive(idle, "Hello.\n");
    net::TcpStream slow = co_await connect();
    co_await send(slow, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n" + kGet);
    co_await begun.wait();
    all_of_it->cancel();
    // The one that waited for a request is closed; the other is not.
    std::string rest = co_await receive_all(idle);
    EXPECT_EQ(rest, "");
    may_end.set();
    slow_answer = co_await receive_all(slow);
  };
  auto shielded = [&]() -> Task<void> { co_await noncancellable(clients); };
  auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    all_of_it = &nursery;
    nursery.start(serve);
    nursery.start(shielded);
    co_return join;
  };
  auto body = [&]() -> Task<void> { co_await with_nursery(all); };
  run(loop, body());
  auto answers = parse_answers(slow_answer);
  ASSERT_EQ(answers.size(), 1u) << slow_answer;  // the second request came too late
  EXPECT_EQ(answers[0].body, "done");
  EXPECT_EQ(answers[0].field("connection"), "close");
  EXPECT_EQ(server.connections(), 0u);
}

TEST_F(HttpServing, WhatDoesNotEndIsCancelledAfterTheDrainTimeout) {
  bool was_cancelled = false;
  Event begun;
  routes.get("/stuck", [&](const Request&, Response&) -> Task<void> {
    struct Ends {
      bool& ended;
      explicit Ends(bool& flag) : ended(flag) {}
      ~Ends() { ended = true; }
    } ends(was_cancelled);
    begun.set();
    co_await suspend_forever();
  });
  auto start = std::chrono::steady_clock::now();
  net::TcpStream stuck;
  with_server({.limits = {.drain_timeout = 30ms}}, [&]() -> Task<void> {
    stuck = co_await connect();
    co_await send(stuck, "GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await begun.wait();
    start = std::chrono::steady_clock::now();
  });
  auto spent = std::chrono::steady_clock::now() - start;
  EXPECT_TRUE(was_cancelled);
  EXPECT_GE(spent, 30ms);
  EXPECT_LT(spent, 5s);
}

// What was finished before has left, though it came in one piece with what is not.
TEST_F(HttpServing, WhatWasFinishedBeforeACancelArrives) {
  for (Driver driver : test::drivers_here()) {
    SCOPED_TRACE(to_string(driver));
    Event begun;
    Router both;
    both.get("/", hello);
    both.get("/stuck", [&](const Request&, Response&) -> Task<void> {
      begun.set();
      co_await suspend_forever();
    });
    listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    where = or_throw(listener.local_address());
    EventLoop loop({.driver = driver});
    Server server(both, {.limits = {.drain_timeout = 10ms}});
    std::string text;
    auto all = [&]() -> Task<void> {
      net::TcpStream stream = co_await connect();
      auto serving = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
        nursery.start(serve);
        co_await send(stream, kGet + "GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
        co_await begun.wait();
        co_return cancel;
      };
      co_await with_nursery(serving);
      text = co_await receive_all(stream);
    };
    run(loop, all());
    auto answers = parse_answers(text);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].body, "Hello.\n");
  }
}

// A handler that gave up, and comes back after write_timeout: what the peer has read meanwhile is seen by trying, whatever the driver.
TEST_F(HttpServing, WhoGaveUpAndComesBackFindsThePeerReading) {
  for (Driver driver : test::drivers_here()) {
    SCOPED_TRACE(to_string(driver));
    Event given_up, has_read;
    Router only;
    std::error_code said;
    only.get("/", [&](const Request&, Response& response) -> Task<void> {
      while (!given_up.is_set()) {
        Result<void> written = co_await response.write(std::string(10'000, 'x'));
        or_throw(written);
        auto flushed = co_await timeout(5ms, response.flush());
        if (!flushed) given_up.set();
      }
      co_await has_read.wait();
      co_await sleep_for(50ms);  // and write_timeout passes
      Result<void> written = co_await response.flush();
      if (!written) said = written.error();
    });
    listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    where = or_throw(listener.local_address());
    EventLoop loop({.driver = driver});
    Server server(only, {.limits = {.write_timeout = 40ms, .output_bytes = 100'000'000}});
    auto all = [&]() -> Task<void> {
      auto serving = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
        nursery.start(serve);
        net::TcpStream stream = co_await connect();
        co_await send(stream, kGet);
        co_await given_up.wait();
        std::array<std::byte, 60'000> buffer;
        auto read_all = [&]() -> Task<void> {
          while (true) {
            auto count = co_await timeout(20ms, stream.read_some(buffer));
            if (!count) has_read.set();  // nothing more has come
            if (count && or_throw(*count) < 5) co_return;
            if (count && std::memcmp(buffer.data() + **count - 5, "0\r\n\r\n", 5) == 0) co_return;
          }
        };
        auto in_time = co_await timeout(10s, read_all);
        EXPECT_TRUE(in_time.has_value());
        co_return cancel;
      };
      co_await with_nursery(serving);
    };
    run(loop, all());
    EXPECT_EQ(said, std::error_code()) << said.message();
  }
}

// More of a file than was promised: not a byte of it, also if the kernel would send it.
TEST_F(HttpServing, AFileThatIsLongerThanThePromiseIsNotSent) {
  test::TemporaryDirectory directory;
  std::string path = directory.write("file", std::string(1'000'000, 'f'));
  std::error_code said;
  routes.get("/file", [&](const Request&, Response& response) -> Task<void> {
    Descriptor file(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    response.content_length(20'000);
    FileRange all{.offset = 0, .bytes = 1'000'000};
    Result<void> written = co_await response.write_file(file, all);
    if (!written) said = written.error();
  });
  for (Driver driver : test::drivers_here()) {
    SCOPED_TRACE(to_string(driver));
    said.clear();
    listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    where = or_throw(listener.local_address());
    auto client = [&]() -> Task<void> {
      net::TcpStream stream = co_await connect();
      co_await send(stream, kGet + "GET /file HTTP/1.1\r\nHost: a\r\n\r\n" + kGet);
      std::string text = co_await receive_all(stream);
      EXPECT_EQ(text.find("fff"), text.npos);
      EXPECT_EQ(parse_answers(text).size(), 1u);
    };
    with_server({}, client, driver);
    EXPECT_EQ(said, Error::wrong_length);
  }
}

TEST_F(HttpServing, PeersThatResetOrVanishDoNotDisturbTheOthers) {
  routes.get("/large", [](const Request&, Response& response) -> Task<void> {
    std::string piece(100'000, 'x');
    for (int i = 0; i < 100; ++i) {
      Result<void> written = co_await response.write(piece);
      if (!written) co_return;
    }
  });
  with_server({}, [&]() -> Task<void> {
    for (int round = 0; round < 20; ++round) {
      net::TcpStream resets = co_await connect();
      or_throw(resets.set_reset_on_close(true));
      co_await send(resets, round % 2 == 0 ? "GET /large HTTP/1.1\r\nHost: a\r\n\r\n" : "GET / HT");
      co_await yield();
      resets.close();
      net::TcpStream good = co_await connect();
      co_await send(good, kGet);
      std::string answer = co_await receive(good, "Hello.\n");
      EXPECT_TRUE(answer.ends_with("Hello.\n"));
    }
  });
}

// FIELD: 16 of 40 pipelined answers arrived when the handlers waited.
// RFC 9112, 9.3.2.
TEST_F(HttpServing, FortyPipelinedAnswersArriveThoughTheHandlersWait) {
  routes.get("/{n}", [](const Request& request, Response& response) -> Task<void> {
    co_await sleep_for(std::chrono::microseconds(200));
    response.body("<" + request.parameter("n") + ">");
  });
  with_server({}, [&]() -> Task<void> {
    net::TcpStream stream = co_await connect();
    std::string bytes, expected;
    for (int i = 0; i < 40; ++i) {
      bytes += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
      expected += "<" + std::to_string(i) + ">";
    }
    co_await send(stream, bytes);
    std::string text = co_await receive(stream, "<39>");
    std::string bodies;
    for (const auto& answer : parse_answers(text)) bodies += answer.body;
    EXPECT_EQ(bodies, expected);
  });
}

// More than a socket takes at once, and nobody reads: what was written without waiting is followed by the rest of it.
TEST_F(HttpServing, AnswersThatDoNotFitIntoTheSocketArriveWholeAndInOrder) {
  constexpr int kRequests = 1000;
  constexpr std::size_t kBodyBytes = 16'000;
  routes.get("/{n}", [](const Request& request, Response& response) -> Task<void> {
    std::string body = "<" + request.parameter("n") + ">";
    body.resize(kBodyBytes, '.');
    response.body(std::move(body));
    co_return;
  });
  for (Driver driver : test::drivers_here()) {
    SCOPED_TRACE(to_string(driver));
    listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    where = or_throw(listener.local_address());
    auto client = [&]() -> Task<void> {
      net::TcpStream stream = co_await connect();
      std::string bytes;
      for (int i = 0; i < kRequests; ++i) {
        bytes += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
      }
      bytes += "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
      std::string text;
      auto read = [&]() -> Task<void> {
        co_await sleep_for(30ms);
        text = co_await receive_all(stream);
      };
      co_await all_of(send(stream, bytes), read());
      auto answers = parse_answers(text);
      EXPECT_EQ(answers.size(), kRequests + 1u);
      for (std::size_t i = 0; i + 1 < answers.size(); ++i) {
        EXPECT_EQ(answers[i].body.size(), kBodyBytes);
        EXPECT_TRUE(answers[i].body.starts_with("<" + std::to_string(i) + ">"));
      }
    };
    with_server({.limits = {.output_bytes = 64'000'000}}, client, driver);
  }
}

// RFC 9112, 9.6: closed in two steps, with what still comes read in between.
TEST_F(HttpServing, AnEarlyRefusalReachesAPeerThatStillSends) {
  routes.post("/", [](const Request& request, Response&) -> Task<void> {
    Result<std::string> body = co_await request.body().read_all();
    or_throw(std::move(body));
  });
  auto client = [&]() -> Task<void> {
    net::TcpStream stream = co_await connect();
    co_await send(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    std::string body(200'000, 'x');
    Result<void> sent = co_await net::write_all(stream, body);
    EXPECT_TRUE(sent);
    std::string answer = co_await receive(stream, "Content Too Large\n");
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 413");
    // It goes on, and that is still taken: a reset would tell of itself with the second write.
    for (int i = 0; i < 3; ++i) {
      co_await sleep_for(2ms);
      sent = co_await net::write_all(stream, "more of it");
      EXPECT_TRUE(sent) << "it was reset";
    }
    // And then the end, not a reset: that could have overtaken the answer.
    std::array<std::byte, 64> buffer;
    Result<std::size_t> end = co_await stream.read_some(buffer);
    EXPECT_EQ(end.value_or(99), 0u);
  };
  // io_uring reads ahead: there the kernel has nothing left that it would have to drop.
  for (Driver driver : test::drivers_here()) {
    listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    where = or_throw(listener.local_address());
    with_server({.limits = {.body_bytes_max = 10}}, client, driver);
  }
}

TEST_F(HttpServing, UpgradeHandsOverTheTransportAndWhatWasReadAhead) {
  routes.get(
      "/up", [](const Request& request, Response& response, Connection& connection) -> Task<void> {
        std::string_view target = request.target(), host = *request.headers().find("host");
        response.header("x-more", "1");
        Result<Connection::Upgraded> upgraded = co_await connection.upgrade(response, "echo");
        if (!upgraded) {
          response.status(426);
          co_return;
        }
        std::string text(reinterpret_cast<const char*>(upgraded->read_ahead.data()),
                         upgraded->read_ahead.size());
        while (text.find('!') == text.npos) {
          Result<PooledBytes> more = co_await upgraded->transport->read();
          if (!more || more->empty()) co_return;
          text.append(reinterpret_cast<const char*>(more->data()), more->size());
        }
        std::array<net::Part, 1> parts{net::Part(text)};
        std::span<const net::Part> list(parts);
        Result<std::size_t> count = co_await upgraded->transport->write_some(list);
        EXPECT_EQ(or_throw(count), text.size());
        // H1: the buffer that the request came in is not the protocol's any more.
        EXPECT_EQ(target, "/up");
        EXPECT_EQ(host, "a");
        EXPECT_EQ(request.target().data(), target.data());
      });
  with_server({}, [&]() -> Task<void> {
    net::TcpStream stream = co_await connect();
    co_await send(
        stream,
        "GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nread ahead");
    co_await send(stream, " and later!");
    std::string answer = co_await receive_all(stream);
    EXPECT_EQ(answer,
              "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\nx-more: "
              "1\r\n\r\n"
              "read ahead and later!");
    net::TcpStream plain = co_await connect();
    co_await send(plain, "GET /up HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    answer = co_await receive_all(plain);
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 426");
  });
}

TEST_F(HttpServing, CurlIsContent) {
  routes.post("/echo", [](const Request& request, Response& response) -> Task<void> {
    Result<std::string> body = co_await request.body().read_all();
    response.body("text/plain", or_throw(std::move(body)));
  });
  IOContext context{{.workers = 2}};
  listener.close();
  std::string url = "http://" + where.to_string();
  auto ask = [&](const char* options) -> Task<std::string> {
    // Words are parted by spaces; ~ is where the server is.
    std::vector<std::string> arguments{"-sS", "--max-time", "20"};
    std::istringstream words(options);
    for (std::string word; words >> word;) {
      if (word[0] == '~') word.replace(0, 1, url);
      arguments.push_back(word);
    }
    ProcessOptions curl("curl", arguments);
    Result<Finished> done = co_await run_process(std::move(curl));
    co_return or_throw(std::move(done)).out;
  };
  auto body = [&]() -> Task<void> {
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto serve = [&]() -> Task<void> {
        Result<void> served = co_await serve_on(context, where, routes);
        or_throw(served);
      };
      nursery.start(serve);
      std::string answer = co_await ask("--retry 20 --retry-connrefused --retry-delay 1 ~/");
      EXPECT_EQ(answer, "Hello.\n");
      std::string sent =
          "-H Expect:100-continue --data-binary " + std::string(100'000, 'x') + " ~/echo";
      answer = co_await ask(sent.c_str());
      EXPECT_EQ(answer, std::string(100'000, 'x'));
      answer = co_await ask("-H Transfer-Encoding:chunked -d abc ~/echo --next -sS ~/");
      EXPECT_EQ(answer, "abcHello.\n");
      answer = co_await ask("-I -o /dev/null -w %{http_code},%{size_download} ~/");
      EXPECT_EQ(answer, "200,0");
      co_return cancel;
    };
    co_await with_nursery(both);
  };
  context.run(body());
}

}  // namespace
