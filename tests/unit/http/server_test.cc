// SPDX-License-Identifier: MIT
#include "weft/http/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/http_fixture.h"
#include "support/loop_fixture.h"
#include "weft/http/error.h"
#include "weft/testing/virtual_loop.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;
using test::Answer;
using test::parse_answers;
using test::Talk;

Task<void> hello(const Request&, Response& response) {
  response.body("text/plain", "Hello.\n");
  co_return;
}

Task<void> echo(const Request& request, Response& response) {
  Result<std::string> body = co_await request.body().read_all();
  response.body("text/plain", or_throw(std::move(body)));
}

struct HttpServer : ::testing::Test {
  HttpServer() {
    routes.get("/", hello);
    routes.post("/echo", echo);
  }
  std::vector<Answer> ask(std::string_view bytes, Talk talk = {}) {
    return parse_answers(talk(routes, bytes));
  }
  int status_of(std::string_view bytes, Talk talk = {}) {
    std::vector<Answer> answers = ask(bytes, talk);
    return answers.empty() ? 0 : answers.back().status;
  }
  Router routes;
};

TEST_F(HttpServer, AnswersAGet) {
  auto answers = ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].head.substr(0, 17), "HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(answers[0].field("content-type"), "text/plain");
  EXPECT_EQ(answers[0].field("content-length"), "7");
  EXPECT_EQ(answers[0].field("date").size(), 29u);
  EXPECT_EQ(answers[0].field("connection"), "");
  EXPECT_EQ(answers[0].body, "Hello.\n");
}

// RFC 9110, 5.6.7: IMF-fixdate, and 6.6.1: the time at which the answer was made.
TEST_F(HttpServer, TheDateIsThatOfTheAnswer) {
  std::int64_t before = ::time(nullptr) - 1;  // the server's clock is a coarse one
  std::string date = ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").at(0).field("date");
  std::int64_t after = ::time(nullptr);
  std::vector<std::string> possible;
  for (std::int64_t second = before; second <= after; ++second) {
    char text[64];
    time_t when = second;
    tm parts;
    ::gmtime_r(&when, &parts);
    std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);  // in the C locale
    possible.emplace_back(text);
  }
  EXPECT_TRUE(std::ranges::find(possible, date) != possible.end()) << date;
}

TEST_F(HttpServer, TheDateChangesWithTheSecond) {
  http::detail::DateLine line;
  std::string_view first = line.at(784111777);
  EXPECT_EQ(first, "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  EXPECT_EQ(line.at(784111777).data(), first.data()) << "not made anew in the same second";
  EXPECT_EQ(line.at(784111778), "date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
  EXPECT_EQ(line.at(784111777), "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n") << "a clock set back";
  EXPECT_EQ(line.at(0), "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
  EXPECT_EQ(line.at(951827696), "date: Tue, 29 Feb 2000 12:34:56 GMT\r\n");
  EXPECT_EQ(line.at(4102444799), "date: Thu, 31 Dec 2099 23:59:59 GMT\r\n");
}

// RFC 9112, 9.3.2.
TEST_F(HttpServer, AnswersPipelinedRequestsInOrder) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    std::string body = "number " + std::to_string(i);
    bytes += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
             "\r\n\r\n" + body;
  }
  for (std::size_t piece : {1, 7, 4096}) {
    auto answers = ask(bytes, {.wire = {.read_bytes_max = piece}});
    ASSERT_EQ(answers.size(), 40u) << "in pieces of " << piece;
    for (int i = 0; i < 40; ++i) EXPECT_EQ(answers[i].body, "number " + std::to_string(i));
  }
}

// The rest of one piece is the beginning of the next request, and is torn again.
TEST_F(HttpServer, AnswersPipelinedRequestsWithoutBodiesHoweverTheyAreTorn) {
  routes.get("/{name}", [](const Request& request, Response& response) -> Task<void> {
    response.body("text/plain", request.parameter("name"));
    co_return;
  });
  std::string bytes;
  for (int i = 100; i < 120; ++i) {
    bytes += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
  for (std::size_t piece = 1; piece < 100; ++piece) {
    auto answers = ask(bytes, {.wire = {.read_bytes_max = piece}});
    ASSERT_EQ(answers.size(), 20u) << "in pieces of " << piece;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(answers[i].body, std::to_string(100 + i));
  }
}

TEST_F(HttpServer, ReadsChunkedBodies) {
  auto answers =
      ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
          "4\r\nWiki\r\n5;ext=1\r\npedia\r\n0\r\nTrailer: x\r\n\r\n"
          "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].body, "Wikipedia");
  EXPECT_EQ(answers[1].body, "Hello.\n");
}

TEST_F(HttpServer, StreamsAnAnswerInChunks) {
  routes.get("/stream", [](const Request&, Response& response) -> Task<void> {
    for (int i = 0; i < 3; ++i)
      or_throw(co_await response.write("piece " + std::to_string(i) + "\n"));
  });
  auto answers = ask("GET /stream HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(answers[0].is_chunked);
  EXPECT_EQ(answers[0].body, "piece 0\npiece 1\npiece 2\n");
}

TEST_F(HttpServer, StreamsToHttp10UntilTheEnd) {
  routes.get("/stream", [](const Request&, Response& response) -> Task<void> {
    or_throw(co_await response.write("all of it"));
  });
  // RFC 9112, 9.3: a connection that goes on needs a body that ends before it does.
  for (const char* fields : {"", "Connection: keep-alive\r\n"}) {
    std::string get = std::string("GET /stream HTTP/1.0\r\n") + fields + "\r\n";
    std::string text = Talk{}(routes, get + get);
    EXPECT_EQ(text.find("transfer-encoding"), text.npos);
    EXPECT_NE(text.find("connection: close\r\n"), text.npos);
    EXPECT_EQ(text.find("keep-alive"), text.npos);
    EXPECT_TRUE(text.ends_with("\r\n\r\nall of it")) << text;
    EXPECT_EQ(text.find("HTTP/1.1", 1), text.npos) << "something follows";
  }
}

// That they are not copied: output_test.cc.
TEST_F(HttpServer, LargeBodiesAreWhole) {
  std::string large(300'000, 'x');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 26);
  routes.get("/large", [&](const Request&, Response& response) -> Task<void> {
    response.body("text/plain", large);
    co_return;
  });
  routes.get("/pieces", [&](const Request&, Response& response) -> Task<void> {
    or_throw(co_await response.write(large));
    or_throw(co_await response.write("and "));
    or_throw(co_await response.write(large));
  });
  Talk talk{.wire = {.bytes_max = 4096, .write_bytes_max = 1000}};
  auto answers =
      ask("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /large HTTP/1.1\r\nHost: a\r\n\r\n"
          "GET /pieces HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
          talk);
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[1].body, large);
  EXPECT_EQ(answers[2].body, large + "and " + large);
  EXPECT_EQ(answers[3].body, "Hello.\n");
}

TEST_F(HttpServer, HeadHasTheLengthAndNoBody) {
  auto answers = parse_answers(
      Talk{}(routes, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n"), true);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].field("content-length"), "7");
}

// RFC 9110, 9.3.2: what would be read as the next answer.
TEST_F(HttpServer, ARefusedHeadHasNoBodyEither) {
  Talk talk{.options = {.limits = {.target_bytes_max = 100, .header_fields_max = 5}}};
  std::string many = "Host: a\r\n";
  for (int i = 0; i < 5; ++i) many += "A: b\r\n";
  const std::pair<std::string, int> cases[] = {
      {"HEAD / HTTP/1.1\r\nHost: a\r\nExpect: the-moon\r\n\r\n", 417},
      {"HEAD / HTTP/1.1\r\n\r\n", 400},
      {"HEAD / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400},
      {"HEAD / HTTP/1.1\r\n" + many + "\r\n", 431},
      {"HEAD /" + std::string(100, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
  };
  for (const auto& [bytes, status] : cases) {
    std::string text = talk(routes, bytes);
    EXPECT_TRUE(text.ends_with("\r\n\r\n")) << text;
    auto answers = parse_answers(text, true);
    ASSERT_EQ(answers.size(), 1u) << bytes;
    EXPECT_EQ(answers[0].status, status);
    EXPECT_NE(answers[0].field("content-length"), "");
  }
  // Of the same, as GET, it is there.
  std::string text = talk(routes, "GET / HTTP/1.1\r\nHost: a\r\nExpect: the-moon\r\n\r\n");
  EXPECT_FALSE(text.ends_with("\r\n\r\n")) << text;
}

TEST_F(HttpServer, NoContentHasNeitherLengthNorBody) {
  routes.get("/none", [](const Request&, Response& response) -> Task<void> {
    response.status(204);
    response.body("dropped");
    co_return;
  });
  auto answers = ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].field("content-length"), "");
  EXPECT_EQ(answers[1].body, "Hello.\n");
}

TEST_F(HttpServer, KeepsAliveAsTheVersionSays) {
  EXPECT_EQ(ask("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n").size(), 1u);
  EXPECT_EQ(ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n").size(),
            2u);
  EXPECT_EQ(
      ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
          .size(),
      1u);
  auto answers = ask("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].field("connection"), "keep-alive");
}

// RFC 9112, 9.6: who says close processes nothing behind it.
TEST_F(HttpServer, RequestsMaxClosesWithTheLastAnswer) {
  std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  Talk talk{.options = {.limits = {.requests_max = 2}}};
  auto answers = ask(get + get + get, talk);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].field("connection"), "");
  EXPECT_EQ(answers[1].field("connection"), "close");
}

TEST_F(HttpServer, WhatAHandlerThrowsIs500AndLoggedAndTheConnectionGoesOn) {
  routes.get("/throws", [](const Request&, Response&) -> Task<void> {
    throw std::runtime_error("on purpose");
    co_return;
  });
  test::LogCapture log;
  auto answers = ask("GET /throws HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].status, 500);
  EXPECT_EQ(answers[0].body.find("on purpose"), std::string::npos) << "that is not for the peer";
  EXPECT_EQ(answers[1].status, 200);
  EXPECT_EQ(log.take(),
            std::vector<std::string>{"http: the handler of GET /throws threw: on purpose"});
}

// The errors of a body have a status only where they are this request's: an upstream's are the handler's failure.
TEST_F(HttpServer, AnErrorOfAnotherBodyIs500) {
  Error thrown{};
  routes.get("/proxy", [&](const Request&, Response&) -> Task<void> {
    throw std::system_error(make_error_code(thrown));
    co_return;
  });
  test::LogCapture log;
  for (Error error : {Error::body_too_large, Error::body_timeout, Error::bad_body}) {
    thrown = error;
    EXPECT_EQ(status_of("GET /proxy HTTP/1.1\r\nHost: a\r\n\r\n"), 500);
  }
  EXPECT_EQ(log.take().size(), 3u);
}

// RFC 9112, 8: so that the peer can tell.
TEST_F(HttpServer, AnAnswerThatBreaksOffHasNoLastChunk) {
  routes.get("/throws", [](const Request&, Response& response) -> Task<void> {
    or_throw(co_await response.write("begun"));
    or_throw(co_await response.flush());
    throw std::runtime_error("on purpose");
  });
  std::string text =
      Talk{}(routes, "GET /throws HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(text.ends_with("5\r\nbegun\r\n")) << text;
}

TEST_F(HttpServer, ALengthThatIsNotKeptEndsTheConnection) {
  routes.get("/short", [](const Request&, Response& response) -> Task<void> {
    response.content_length(10);
    or_throw(co_await response.write("five."));
    or_throw(co_await response.flush());
  });
  std::string text =
      Talk{}(routes, "GET /short HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(text.ends_with("\r\n\r\nfive.")) << text;
  Result<void> said;
  routes.get("/long", [&](const Request&, Response& response) -> Task<void> {
    response.content_length(3);
    said = co_await response.write("five.");
  });
  text = Talk{}(routes, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(!said && said.error() == Error::wrong_length);
  EXPECT_EQ(text.find("five"), text.npos);
}

// A peer whose window is full: what a handler gives up in the middle cannot be made good by what it writes next.
TEST_F(HttpServer, AWriteThatWasGivenUpBreaksTheAnswer) {
  std::error_code second;
  bool is_begun = false;
  Router only;
  only.get("/x", [&](const Request&, Response& response) -> Task<void> {
    std::string large(20'000, 'x');
    response.content_length(40'000);
    auto given_up = co_await timeout(5ms, response.write(large));
    is_begun = !given_up;
    Result<void> written = co_await response.write(large);
    if (!written) second = written.error();
  });
  EventLoop loop;
  Server server(only, {.limits = {.linger_timeout = 20ms}});
  std::string answer;
  auto talk = [&]() -> Task<void> {
    auto [client, served] = net::memory_streams({.bytes_max = 1000});
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    auto question = [&]() -> Task<void> {
      Result<void> sent = co_await net::write_all(
          mine, "GET /x HTTP/1.1\r\nHost: a\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n");
      or_throw(sent);
      co_await sleep_for(50ms);  // and reads nothing meanwhile
      answer = co_await test::read_to_end(mine);
    };
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    co_await all_of(serve(), question());
  };
  run(loop, talk());
  EXPECT_TRUE(is_begun);
  EXPECT_EQ(second, Error::broken_off);
  EXPECT_EQ(answer.find("HTTP/1.1", 1), answer.npos) << "an answer behind one that was broken off";
  EXPECT_LT(answer.size(), 40'000u);
}

// A flush() that was given up has left a part of the output with the connection. What is written then comes behind it, in
// order, and the next flush() waits for all of it.
TEST_F(HttpServer, WhatFollowsAFlushThatWasGivenUpKeepsItsOrder) {
  weft::testing::VirtualLoop loop;
  std::string answer, at_flush;
  Router only;
  only.get("/", [&](const Request&, Response& response) -> Task<void> {
    Result<void> written = co_await response.write(std::string(5000, 'a'));
    or_throw(written);
    auto given_up = co_await timeout(5ms, response.flush());
    EXPECT_FALSE(given_up.has_value());
    written = co_await response.write("b");
    or_throw(written);
    given_up = co_await timeout(1ms, response.flush());
    EXPECT_FALSE(given_up.has_value());
    written = co_await response.write("c");
    if (written) written = co_await response.write(std::string(20'000, 'd'));  // not copied
    if (written) written = co_await response.write("e");
    if (written) written = co_await response.flush();
    or_throw(written);
    co_await sleep_for(1s);
    at_flush = answer;
  });
  Server server(only);
  auto talk = [&]() -> Task<void> {
    auto [client, served] = net::memory_streams({.bytes_max = 1000});
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    auto question = [&]() -> Task<void> {
      Result<void> sent =
          co_await net::write_all(mine, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      or_throw(sent);
      co_await sleep_for(50ms);  // and reads nothing meanwhile
      std::array<std::byte, 1000> buffer;
      while (true) {
        Result<std::size_t> count = co_await mine.read_some(buffer);
        if (!count || *count == 0) break;
        answer.append(reinterpret_cast<const char*>(buffer.data()), *count);
      }
    };
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    co_await all_of(serve(), question());
  };
  run(loop, talk());
  EXPECT_TRUE(at_flush.ends_with("1\r\ne\r\n")) << "flush() returned too early";
  std::vector<Answer> answers = parse_answers(answer);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].body, std::string(5000, 'a') + "bc" + std::string(20'000, 'd') + "e");
}

// One task reads the body, another writes, and the peer does both at once.
TEST_F(HttpServer, ABodyIsReadWhileTheAnswerIsWritten) {
  routes.post("/both", [](const Request& request, Response& response) -> Task<void> {
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto write = [&]() -> Task<void> {
        for (int i = 0; i < 300; ++i) or_throw(co_await response.write(std::string(1000, 'w')));
      };
      nursery.start(write);
      std::array<std::byte, 700> buffer;
      while (true) {
        Result<std::size_t> count = co_await request.body().read_some(buffer);
        if (or_throw(count) == 0) break;
      }
      co_return join;
    };
    co_await with_nursery(both);
  });
  std::string body(300'000, 'r');
  Talk talk{.options = {.limits = {.output_bytes = 4000}},
            .wire = {.bytes_max = 3000, .write_bytes_max = 900}};
  auto answers = ask("POST /both HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + body +
                         "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                     talk);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(answers[0].body == std::string(300'000, 'w'));
  EXPECT_EQ(answers[1].body, "Hello.\n");
}

TEST_F(HttpServer, WhatWasAnsweredBeforeABrokenAnswerIsNotLost) {
  routes.get("/throws", [](const Request&, Response& response) -> Task<void> {
    or_throw(co_await response.write("begun"));
    throw std::runtime_error("on purpose");
  });
  auto answers = ask("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /throws HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].body, "Hello.\n");
}

TEST_F(HttpServer, ALengthWithoutABodyIs500AndForHeadTheLength) {
  routes.get("/promised", [](const Request&, Response& response) -> Task<void> {
    response.content_length(10);
    co_return;
  });
  EXPECT_EQ(status_of("GET /promised HTTP/1.1\r\nHost: a\r\n\r\n"), 500);
  auto answers = parse_answers(Talk{}(routes, "HEAD /promised HTTP/1.1\r\nHost: a\r\n\r\n"), true);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].field("content-length"), "10");
}

TEST_F(HttpServer, AFieldMayBeCopiedFromAnother) {
  routes.get("/copy", [](const Request&, Response& response) -> Task<void> {
    response.header("a", std::string(100, 'v'));
    for (int i = 0; i < 20; ++i)
      response.header("b" + std::to_string(i), *response.find_header("a"));
    response.set_header("a", *response.find_header("b0"));
    co_return;
  });
  auto answers = ask("GET /copy HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].field("b19"), std::string(100, 'v'));
  EXPECT_EQ(answers[0].field("a"), std::string(100, 'v'));
}

TEST_F(HttpServer, AnAccessLogThatThrowsIsLoggedItself) {
  Talk talk{
      .options = {.access_log = [](const AccessRecord&) { throw std::runtime_error("full"); }}};
  test::LogCapture log;
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", talk).size(),
            2u);
  EXPECT_EQ(log.take(), std::vector<std::string>(2, "http: the access log threw: full"));
}

// RFC 9112, 9.3: it is read, or the connection ends; otherwise it would be the next request.
TEST_F(HttpServer, AnUnreadBodyIsSkippedUpToALimit) {
  std::string body(1000, 'b');
  std::string post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + body;
  routes.post("/", hello);
  std::string next = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(ask(post + next).size(), 2u);
  Talk talk{.options = {.limits = {.unread_body_bytes = 999}}};
  EXPECT_EQ(ask(post + next, talk).size(), 1u);
  std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" +
                        body + "\r\n0\r\n\r\n";
  EXPECT_EQ(ask(chunked + next).size(), 2u);
  EXPECT_EQ(ask(chunked + next, talk).size(), 1u);
}

TEST_F(HttpServer, ContinueIsSentWhenTheBodyIsAskedFor) {
  std::string post =
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  EventLoop loop;
  Server server(routes);
  std::string first, second;
  auto talk = [&]() -> Task<void> {
    auto [client, served] = net::memory_streams();
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    auto ask_twice = [&]() -> Task<void> {
      std::array<std::byte, 4096> buffer;
      auto read = [&]() -> Task<std::string> {
        Result<std::size_t> count = co_await mine.read_some(buffer);
        co_return std::string(reinterpret_cast<char*>(buffer.data()), or_throw(count));
      };
      or_throw(co_await net::write_all(mine, post));
      first = co_await read();
      or_throw(co_await net::write_all(mine, "ok"));
      second = co_await read();
      mine.close();
    };
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    co_await all_of(serve(), ask_twice());
  };
  run(loop, talk());
  EXPECT_EQ(first, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(second.ends_with("ok")) << second;

  // One who does not read it does not ask for it, and cannot know where the next request begins.
  routes.post("/", hello);
  auto answers =
      ask("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].status, 200);
  EXPECT_EQ(answers[0].field("connection"), "close");
}

// RFC 9110, 10.1.1: not to HTTP/1.0, which does not know it; not where it would be a part of the answer; and not for what is there.
TEST_F(HttpServer, ContinueIsNotSentWhereItIsNotUnderstood) {
  routes.post("/begun", [](const Request& request, Response& response) -> Task<void> {
    Result<void> written = co_await response.write("begun, ");
    or_throw(written);
    Result<std::string> body = co_await request.body().read_all();
    written = co_await response.write(or_throw(std::move(body)));
    or_throw(written);
  });
  Talk slow{.wire = {.read_bytes_max = 1}};  // so that the body is waited for
  std::string fields = "Expect: 100-continue\r\nContent-Length: 2\r\n";
  std::string text = slow(routes, "POST /echo HTTP/1.0\r\n" + fields + "\r\nok");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
  EXPECT_TRUE(text.ends_with("ok")) << text;
  auto answers =
      parse_answers(slow(routes, "POST /begun HTTP/1.1\r\nHost: a\r\n" + fields + "\r\nok"));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].body, "begun, ok");
  text = Talk{}(routes, "POST /echo HTTP/1.1\r\nHost: a\r\n" + fields + "\r\nok");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
}

// H3; RFC 9112, 9.3: what was not asked for may never come. So the connection ends, and does not wait for it.
TEST_F(HttpServer, ABodyThatWasNotAskedForIsNotWaitedFor) {
  routes.post("/", hello);
  weft::testing::VirtualLoop loop;
  Server server(routes);
  std::string answer;
  auto talk = [&]() -> Task<void> {
    auto [client, served] = net::memory_streams();
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    auto question = [&]() -> Task<void> {
      Result<void> sent = co_await net::write_all(
          mine, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
      or_throw(sent);
      answer = co_await test::read_to_end(mine);
      mine.close();
    };
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    co_await all_of(serve(), question());
  };
  run(loop, talk());
  EXPECT_EQ(parse_answers(answer).size(), 1u);
  EXPECT_EQ(loop.elapsed(), 0s);
}

TEST_F(HttpServer, AnUpgradeThatNobodyWantsIsAPlainRequest) {
  std::string get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n";
  auto answers = ask(get + get);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1].status, 200);
}

// What is left of a body would be taken for the first bytes of the other protocol.
TEST_F(HttpServer, AnUpgradeIsForAWholeRequestThatAskedForIt) {
  int asked = 0;
  std::error_code said;
  routes.get("/up", [&](const Request&, Response& response, Connection& connection) -> Task<void> {
    ++asked;
    said.clear();
    Result<Connection::Upgraded> upgraded = co_await connection.upgrade(response, "echo");
    if (!upgraded) said = upgraded.error();
  });
  std::string get = "GET /up HTTP/1.1\r\nHost: a\r\n",
              wants = "Connection: upgrade\r\nUpgrade: echo\r\n";
  for (const std::string& bytes :
       {get + wants + "Content-Length: 3\r\n\r\nabc",
        get + wants + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", get + "\r\n",
        get + "Upgrade: echo\r\n\r\n", get + "Connection: upgrade\r\n\r\n",
        get + "Connection: upgrade\r\nUpgrade: other, echo/2, echoes\r\n\r\n",
        get + "Connection: upgrade\r\nUpgrade: other\r\nX-Upgrade: echo\r\n\r\n",
        "GET /up HTTP/1.0\r\n" + wants + "\r\n"}) {
    EXPECT_EQ(status_of(bytes), 200) << bytes;
    EXPECT_EQ(said, std::errc::not_supported) << bytes;
  }
  EXPECT_EQ(asked, 8);
  // RFC 9110, 7.8: a list, on any of its lines, and whatever the case.
  for (const char* offer :
       {"Upgrade: echo\r\n", "Upgrade: other/1, Echo\r\n", "Upgrade: other\r\nUpgrade: ECHO\r\n"}) {
    EXPECT_EQ(status_of(get + "Connection: upgrade\r\n" + offer + "\r\n"), 101) << offer;
    EXPECT_EQ(said, std::error_code()) << offer;
  }
}

TEST_F(HttpServer, NotesEveryAnswer) {
  std::vector<std::string> lines;
  Talk talk{.options = {.access_log = [&](const AccessRecord& record) {
              lines.push_back(to_string(record));
            }}};
  ask("GET /?a=1 HTTP/1.1\r\nHost: a\r\n\r\nGET /none\\x HTTP/1.1\r\nHost: "
      "a\r\n\r\nnonsense\r\n\r\n",
      talk);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].ends_with("\"GET /?a=1 HTTP/1.1\" 200 7")) << lines[0];
  EXPECT_NE(lines[1].find("/none\\x5cx HTTP/1.1\" 404"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("\"- - HTTP/1.1\" 501"), std::string::npos) << lines[2];
}

// --- Limits: docs/design/limits.md -------------------------------------------------------------------

TEST_F(HttpServer, LimitsHaveTheirStatus) {
  std::string host = "Host: a\r\n";
  Talk talk{.options = {.limits = {.target_bytes_max = 100,
                                   .head_bytes_max = 1000,
                                   .header_fields_max = 5,
                                   .body_bytes_max = 10}}};
  EXPECT_EQ(status_of("GET /" + std::string(99, 'x') + " HTTP/1.1\r\n" + host + "\r\n", talk), 404);
  EXPECT_EQ(status_of("GET /" + std::string(100, 'x') + " HTTP/1.1\r\n" + host + "\r\n", talk),
            414);
  EXPECT_EQ(
      status_of("GET / HTTP/1.1\r\n" + host + "A: " + std::string(900, 'x') + "\r\n\r\n", talk),
      200);
  EXPECT_EQ(
      status_of("GET / HTTP/1.1\r\n" + host + "A: " + std::string(1000, 'x') + "\r\n\r\n", talk),
      431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + host + "A: " + std::string(100'000, 'x'), talk), 431);
  auto head_of = [&](std::size_t bytes) {
    std::string head = "GET / HTTP/1.1\r\n" + host + "A: ";
    return head + std::string(bytes - head.size() - 4, 'x') + "\r\n\r\n";
  };
  EXPECT_EQ(status_of(head_of(1000), talk), 200);
  EXPECT_EQ(status_of(head_of(1001), talk), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + host + "A:\r\nB:\r\nC:\r\nD:\r\n\r\n", talk), 200);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + host + "A:\r\nB:\r\nC:\r\nD:\r\nE:\r\n\r\n", talk),
            431);
  EXPECT_EQ(
      status_of("POST /echo HTTP/1.1\r\n" + host + "Content-Length: 10\r\n\r\n0123456789", talk),
      200);
  EXPECT_EQ(
      status_of("POST /echo HTTP/1.1\r\n" + host + "Content-Length: 11\r\n\r\n0123456789a", talk),
      413);
  EXPECT_EQ(status_of("POST /echo HTTP/1.1\r\n" + host +
                          "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n",
                      talk),
            413);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + host + "Expect: the-moon\r\n\r\n", talk), 417);
}

// By what it says of itself: nothing of it is read, nor asked for.
TEST_F(HttpServer, ABodyThatSaysItIsTooLargeIsNotWaitedFor) {
  Talk talk{.options = {.limits = {.body_bytes_max = 10}}};
  std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n";
  for (const char* field : {"", "Expect: 100-continue\r\n"}) {
    std::vector<Answer> answers = ask(head + field + "\r\n", talk);
    ASSERT_EQ(answers.size(), 1u) << field;
    EXPECT_EQ(answers[0].status, 413) << field;
    EXPECT_EQ(answers[0].field("connection"), "close");
  }
}

// What is around the bytes of a body has a bound, too, and that does not depend on how they come.
TEST_F(HttpServer, ChunksHaveTheirLimitsHoweverTheyAreTorn) {
  std::string zeros(900, '0'), name(900, 'x'), spaces(900, ' ');
  std::string many_extensions, many_chunks;
  for (int i = 0; i < 10; ++i) {
    many_extensions += "1;" + std::string(110, 'e') + "\r\na\r\n";
    many_chunks += zeros + "1\r\na\r\n";
  }
  struct Case {
    std::string chunks;
    int status;
  } cases[] = {
      {zeros + "1\r\na\r\n0\r\n\r\n", 200},
      {zeros + zeros + "1\r\na\r\n0\r\n\r\n", 400},
      {zeros + zeros, 400},
      {"1\r\na\r\n" + zeros + zeros + "\r\n\r\n", 400},
      {many_chunks + "0\r\n\r\n", 200},
      {"1;" + name + "\r\na\r\n0\r\n\r\n", 200},
      {"1;" + name + name + "\r\na\r\n0\r\n\r\n", 400},
      {many_extensions + "0\r\n\r\n", 400},
      {"0\r\n" + name + ": a\r\n\r\n", 200},
      {"0\r\n" + name + ": a\r\n" + name + ": a\r\n\r\n", 400},
      {"0\r\na:" + spaces + spaces + "a\r\n\r\n", 400},
      {"b\r\n0123456789a\r\nnonsense", 413},  // in the order of the bytes
      {"1\r\na\r\nnonsense", 400},
  };
  for (const Case& each : cases) {
    for (std::size_t piece :
         {std::size_t{1}, std::size_t{7}, std::size_t{997}, std::size_t{65536}}) {
      Talk talk{.options = {.limits = {.head_bytes_max = 1000, .body_bytes_max = 10}},
                .wire = {.read_bytes_max = piece}};
      EXPECT_EQ(status_of("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
                              each.chunks,
                          talk),
                each.status)
          << each.chunks.substr(0, 40) << " in pieces of " << piece;
    }
  }
}

TEST_F(HttpServer, AHeadMayHaveNoLimit) {
  Talk talk{.options = {.limits = {.head_bytes_max = std::numeric_limits<std::size_t>::max(),
                                   .head_timeout = std::chrono::milliseconds(500)}}};
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n\r\n", talk), 200);
}

TEST_F(HttpServer, AHandlerMayAllowALargerBody) {
  routes.post("/large", [](const Request& request, Response& response) -> Task<void> {
    request.body().allow(100);
    response.body(or_throw(co_await request.body().read_all()));
  });
  Talk talk{.options = {.limits = {.body_bytes_max = 10}}};
  EXPECT_EQ(status_of("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" +
                          std::string(100, 'x'),
                      talk),
            200);
  EXPECT_EQ(status_of("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n" +
                          std::string(101, 'x'),
                      talk),
            413);
}

// More handlers at a time than there may be: who comes then is told when to come again, and keeps its connection.
TEST_F(HttpServer, WhatIsTooMuchAtATimeIs503) {
  Event may_end;
  int begun = 0;
  routes.get("/slow", [&](const Request&, Response& response) -> Task<void> {
    ++begun;
    co_await may_end.wait();
    response.body("text/plain", "done");
  });
  std::vector<std::string> lines;
  ServerOptions options{.limits = {.requests_in_progress_max = 2, .retry_after = 7s}};
  options.access_log = [&](const AccessRecord& record) { lines.push_back(to_string(record)); };
  weft::testing::VirtualLoop loop;
  Server server(routes, options);
  std::string get = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";
  auto with_connection = [&](std::function<Task<void>(net::MemoryStream&)> client) -> Task<void> {
    auto [near, far] = net::memory_streams();
    net::MemoryStream mine = std::move(near);
    StreamTransport transport(std::move(far));
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    auto ask = [&]() -> Task<void> {
      co_await client(mine);
      mine.close();
    };
    co_await all_of(serve(), ask());
  };
  auto read = [](net::MemoryStream& stream) -> Task<std::string> {
    std::array<std::byte, 4096> buffer;
    Result<std::size_t> count = co_await stream.read_some(buffer);
    co_return std::string(reinterpret_cast<char*>(buffer.data()), or_throw(count));
  };
  auto busy = [&](net::MemoryStream& mine) -> Task<void> {
    Result<void> sent = co_await net::write_all(mine, get);
    or_throw(sent);
    std::string answer = co_await read(mine);
    EXPECT_EQ(parse_answers(answer).at(0).body, "done");
  };
  auto shed = [&](net::MemoryStream& mine) -> Task<void> {
    co_await sleep_for(1s);
    EXPECT_EQ(server.requests_in_progress(), 2u);
    for (int i = 0; i < 2; ++i) {
      Result<void> sent = co_await net::write_all(
          mine, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
      or_throw(sent);
      std::string answer = co_await read(mine);
      if (i == 1) {
        EXPECT_EQ(parse_answers(answer).at(0).body, "abc") << "there is room again";
        break;
      }
      Answer refused = parse_answers(answer).at(0);
      EXPECT_EQ(refused.status, 503);
      EXPECT_EQ(refused.field("retry-after"), "7");
      EXPECT_EQ(refused.field("connection"), "");
      may_end.set();
      co_await sleep_for(1s);
    }
  };
  auto all = [&]() -> Task<void> {
    co_await all_of(with_connection(busy), with_connection(busy), with_connection(shed));
  };
  run(loop, all());
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(server.requests_in_progress(), 0u);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NE(lines[0].find("\"POST /echo HTTP/1.1\" 503"), std::string::npos) << lines[0];
}

// A client that sends `bytes`, then nothing, and waits for the end.
std::string stall(Handler& handler, std::string bytes, Limits limits) {
  EventLoop loop;
  Server server(handler, {.limits = limits});
  std::string answer;
  auto talk = [&]() -> Task<void> {
    auto [client, served] = net::memory_streams();
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    auto question = [&]() -> Task<void> {
      or_throw(co_await net::write_all(mine, bytes));
      answer = co_await test::read_to_end(mine);
      mine.close();
    };
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    co_await all_of(serve(), question());
  };
  run(loop, talk());
  return answer;
}

// RFC 9112, 9.5.
TEST_F(HttpServer, SlowPeersRunOutOfTime) {
  Limits limits{
      .idle_timeout = 20ms, .head_timeout = 20ms, .body_timeout = 20ms, .linger_timeout = 20ms};
  EXPECT_EQ(stall(routes, "", limits), "");
  EXPECT_EQ(stall(routes, "\r\n", limits), "") << "an empty line is no request yet";
  EXPECT_EQ(parse_answers(stall(routes, "GET / HT", limits)).at(0).status, 408);
  EXPECT_EQ(parse_answers(stall(routes, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT", limits))
                .at(1)
                .status,
            408);
  auto answers = parse_answers(
      stall(routes, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", limits));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].status, 408);
  EXPECT_EQ(answers[0].field("connection"), "close");
}

// The time is that of the whole head: a byte now and then would otherwise hold a connection for ever.
TEST_F(HttpServer, AHeadThatDripsIs408) {
  EventLoop loop;
  Server server(routes, {.limits = {.head_timeout = 50ms, .linger_timeout = 20ms}});
  std::string answer;
  std::size_t dripped = 0;
  auto talk = [&]() -> Task<void> {
    auto [client, served] = net::memory_streams();
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
      nursery.start(serve);
      auto drip = [&]() -> Task<void> {
        Result<void> sent = co_await net::write_all(mine, "GET / HTTP/1.1\r\nHost: a\r\nA: ");
        while (sent && dripped < 200) {
          co_await sleep_for(5ms);
          sent = co_await net::write_all(mine, "a");
          ++dripped;
        }
      };
      nursery.start(drip);
      answer = co_await test::read_to_end(mine);
      mine.close();
      co_return join;
    };
    co_await with_nursery(both);
  };
  run(loop, talk());
  EXPECT_LT(dripped, 200u) << "it was let drip";
  ASSERT_EQ(parse_answers(answer).size(), 1u);
  EXPECT_EQ(parse_answers(answer)[0].status, 408);
}

TEST_F(HttpServer, APeerThatDoesNotReadRunsOutOfTime) {
  Result<void> said;
  routes.get("/endless", [&](const Request&, Response& response) -> Task<void> {
    std::string piece(1000, 'x');
    while (said) said = co_await response.write(piece);
  });
  EventLoop loop;
  Server server(routes, {.limits = {.write_timeout = 20ms}});
  auto talk = [&]() -> Task<void> {
    auto [client, served] = net::memory_streams();
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    or_throw(co_await net::write_all(mine, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n"));
    co_await server.serve_connection(transport);
  };
  run(loop, talk());
  EXPECT_EQ(said.error(), Error::write_timeout);
}

}  // namespace
