// SPDX-License-Identifier: MIT
#include "weft/http/compression.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/http_client_fixture.h"
#include "support/http_fixture.h"
#include "support/temporary_directory.h"
#include "weft/http/error.h"
#include "weft/io/descriptor.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;
using test::Answer;
using test::ClientTalk;
using test::parse_answers;
using test::Peer;
using test::ScriptedConnector;
using test::Talk;

std::string text(std::size_t size) {
  std::string all;
  for (std::size_t i = 0; all.size() < size; ++i) all += "line " + std::to_string(i) + " of it\n";
  all.resize(size);
  return all;
}

std::string random_bytes(std::size_t size, std::uint32_t seed = 1) {
  std::string all(size, '\0');
  std::uint32_t state = seed;
  for (char& c : all) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return all;
}

// What our client makes of the body; it is compared with curl's below, and with other people's bytes in client_coding_test.cc.
std::string decoded(const Answer& answer) {
  std::string body;
  std::string head = "HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(answer.body.size()) +
                     "\r\ncontent-encoding: " + answer.field("content-encoding") + "\r\n\r\n";
  ClientTalk()(test::always(head + answer.body),
               [&](Client& client, ScriptedConnector&) -> Task<void> {
                 body = co_await test::fetch(client, "http://server/");
               });
  return body.substr(0, 4) == "200 " ? body.substr(4) : "error: " + body;
}

// One handler behind a Compression.
struct HttpCompression : ::testing::Test {
  template <class Fn>
  Answer ask(Fn handler, std::string_view accepted, std::string_view method = "GET",
             CompressionOptions options = {}) {
    Router routes;
    routes.use(Compression(options));
    routes.get("/", handler);
    std::string request(method);
    request += " / HTTP/1.1\r\nHost: a\r\n";
    if (!accepted.empty()) request.append("accept-encoding: ").append(accepted).append("\r\n");
    std::vector<Answer> answers = parse_answers(Talk{}(routes, request + "\r\n"), method == "HEAD");
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? Answer{} : answers[0];
  }
  static auto whole(std::string type, std::string body) {
    return [type, body](const Request&, Response& response) -> Task<void> {
      response.body(type, body);
      co_return;
    };
  }
  // Which coding: "" is none.
  std::string coding_for(std::string_view accepted) {
    return ask(whole("text/plain", text(5000)), accepted).field("content-encoding");
  }
};

// --- RFC 9110, 12.5.3 -------------------------------------------------------------------------------

TEST_F(HttpCompression, ChoosesWhatThePeerLikesBest) {
  std::string best = has_brotli() ? "br" : "gzip";
  struct Case {
    const char* accepted;
    std::string coding;
  };
  const std::vector<Case> cases{
      {"", ""},  // no field: anything goes, and the plain one surely does
      {",", ""},
      {"gzip", "gzip"},
      {"GZip", "gzip"},
      {"x-gzip", "gzip"},
      {"deflate", ""},
      {"zstd, gzip", "gzip"},
      {"gzip, br", best},
      {"br, gzip", best},
      {"gzip, deflate, br, zstd", best},
      {"gzip;q=1, br;q=0.9", "gzip"},
      {"gzip;q=0.9,br;q=1.0", best},
      {"gzip;q=0.001", "gzip"},
      {"gzip;q=0", ""},
      {"gzip;q=0.000", ""},
      {"gzip;Q=0", ""},
      {"gzip ; q=0.5", "gzip"},
      {"gzip;q=0, *", has_brotli() ? "br" : ""},
      {"br;q=0, *", "gzip"},
      {"*", best},
      {"*;q=0.1", best},
      {"*;q=0", ""},         // nothing fits: the plain one, rather than none
      {"identity;q=0", ""},  // the same
      {"identity;q=0, gzip", "gzip"},
      {"identity", ""},
      {"identity, gzip", "gzip"},
      {"identity;q=0.5, gzip;q=0.4", ""},
      {"identity;q=0.5, gzip;q=0.6", "gzip"},
      {"gzip;q=0.3, *;q=0.5", has_brotli() ? "br" : "gzip"},
      // Malformed: as if it was not there.
      {"gzip;q=2", ""},
      {"gzip;q=1.001", ""},
      {"gzip;q=0.1234", ""},
      {"gzip;q=", ""},
      {"gzip;q=-1", ""},
      {"gzip;level=9", ""},
      {";q=1, gzip", "gzip"},
      {"gzip;q=.5", ""},
      {"gzipped", ""},
  };
  for (const Case& one : cases) EXPECT_EQ(coding_for(one.accepted), one.coding) << one.accepted;
  // Several fields are one list.
  EXPECT_EQ(coding_for("gzip;q=0\r\nAccept-Encoding: gzip;q=0.5"), "gzip");
}

TEST_F(HttpCompression, WhatWasCompressedIsTheSameAgain) {
  for (const char* coding : {"gzip", "br"}) {
    if (!has_brotli() && std::string_view(coding) == "br") continue;
    for (std::size_t size : {1024u, 5000u, 16u * 1024u, 16u * 1024u + 1u, 300'000u}) {
      Answer answer = ask(whole("text/html; charset=utf-8", text(size)), coding);
      EXPECT_EQ(answer.field("content-encoding"), coding);
      EXPECT_EQ(answer.field("vary"), "accept-encoding");
      EXPECT_EQ(answer.field("content-length"), std::to_string(answer.body.size()));
      EXPECT_LT(answer.body.size(), size / 2);
      EXPECT_EQ(decoded(answer), text(size));
    }
  }
}

// --- What is compressed, and what is not ------------------------------------------------------------

TEST_F(HttpCompression, KnowsWhatIsLikeText) {
  for (const char* type :
       {"text/plain", "TEXT/HTML; charset=utf-8", "application/json", "application/ld+json",
        "application/problem+json;charset=utf-8", "application/xml", "application/atom+xml",
        "image/svg+xml", "text/event-stream", "application/javascript", "application/wasm"}) {
    Answer answer = ask(whole(type, text(5000)), "gzip");
    EXPECT_EQ(answer.field("content-encoding"), "gzip") << type;
    EXPECT_EQ(answer.field("vary"), "accept-encoding") << type;
  }
  for (const char* type : {"image/png", "video/mp4", "application/zip", "application/octet-stream",
                           "font/woff2", "application/gzip", "text", "json", "a+json"}) {
    Answer answer = ask(whole(type, text(5000)), "gzip");
    EXPECT_EQ(answer.field("content-encoding"), "") << type;
    EXPECT_EQ(answer.field("vary"), "") << type;
    EXPECT_EQ(answer.body, text(5000)) << type;
  }
}

TEST_F(HttpCompression, LeavesAloneWhatIsSmall) {
  EXPECT_EQ(ask(whole("text/plain", text(1023)), "gzip").field("content-encoding"), "");
  EXPECT_EQ(ask(whole("text/plain", text(1024)), "gzip").field("content-encoding"), "gzip");
  CompressionOptions options{.bytes_min = 10};
  EXPECT_EQ(ask(whole("text/plain", std::string(10, 'a')), "gzip", "GET", options).body,
            std::string(10, 'a'))
      << "it does not become smaller";
  EXPECT_EQ(ask(whole("text/plain", std::string(100, 'a')), "gzip", "GET", options)
                .field("content-encoding"),
            "gzip");
  Answer answer = ask(whole("text/plain", random_bytes(5000)), "gzip");
  EXPECT_EQ(answer.field("content-encoding"), "");
  EXPECT_EQ(answer.field("vary"), "accept-encoding");
  EXPECT_EQ(answer.body, random_bytes(5000));
}

TEST_F(HttpCompression, SaysThatItMightHaveBeen) {
  Answer answer = ask(whole("text/plain", text(5000)), "");
  EXPECT_EQ(answer.field("content-encoding"), "");
  EXPECT_EQ(answer.field("vary"), "accept-encoding");
  EXPECT_EQ(ask(whole("text/plain", "small"), "gzip").field("vary"), "accept-encoding");
  auto with_vary = [](const char* value) {
    return [value](const Request&, Response& response) -> Task<void> {
      response.header("vary", "cookie");
      response.header("vary", value);
      response.body("text/plain", text(5000));
      co_return;
    };
  };
  answer = ask(with_vary("origin"), "gzip");
  EXPECT_EQ(answer.field("vary"), "cookie, origin, accept-encoding");
  answer = ask(with_vary("Accept-Encoding"), "gzip");
  EXPECT_EQ(answer.head.find("vary: cookie, "), std::string::npos);
  answer = ask(with_vary("*"), "gzip");
  EXPECT_EQ(answer.head.find("accept-encoding"), std::string::npos);
}

// Who refuses the plain one gets a picture compressed, too.
TEST_F(HttpCompression, IdentityCanBeRefused) {
  for (const char* accepted : {"gzip, identity;q=0", "gzip, *;q=0"}) {
    Answer answer = ask(whole("image/png", random_bytes(100)), accepted);
    EXPECT_EQ(answer.field("content-encoding"), "gzip");
    EXPECT_EQ(decoded(answer), random_bytes(100));
    EXPECT_EQ(ask(whole("text/plain", ""), accepted).field("content-encoding"), "");
  }
}

TEST_F(HttpCompression, LeavesAloneWhatItWouldSpoil) {
  struct Case {
    int status;
    const char *name, *value;
  };
  for (Case one : {Case{200, "content-encoding", "zstd"}, Case{200, "content-encoding", "gzip"},
                   Case{200, "cache-control", "private, no-transform"},
                   Case{200, "content-digest", "sha-256=:abc:"},
                   Case{206, "content-range", "bytes 0-4999/10000"}, Case{206, "x-a", "b"},
                   Case{200, "content-range", "bytes 0-4999/10000"}}) {
    auto handler = [one](const Request&, Response& response) -> Task<void> {
      response.status(one.status);
      response.header(one.name, one.value);
      response.header("etag", "\"strong\"");
      response.header("accept-ranges", "bytes");
      response.body("text/plain", text(5000));
      co_return;
    };
    Answer answer = ask(handler, "gzip");
    EXPECT_EQ(answer.status, one.status);
    EXPECT_EQ(answer.body, text(5000)) << one.name;
    EXPECT_EQ(answer.field("etag"), "\"strong\"") << one.name;
    EXPECT_EQ(answer.field("accept-ranges"), "bytes") << one.name;
    EXPECT_EQ(answer.field(one.name), one.value);
  }
  auto nothing = [](const Request&, Response& response) -> Task<void> {
    response.status(204);
    response.header("content-type", "text/plain");
    co_return;
  };
  Answer answer = ask(nothing, "gzip, identity;q=0");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.field("content-encoding"), "");
}

TEST_F(HttpCompression, WeakensTheEtag) {
  auto tagged = [](int status, std::string etag) {
    return [status, etag](const Request&, Response& response) -> Task<void> {
      response.status(status);
      response.header("etag", etag);
      response.header("accept-ranges", "bytes");
      if (status != 304) response.body("text/plain", text(5000));
      co_return;
    };
  };
  Answer answer = ask(tagged(200, "\"a\""), "gzip");
  EXPECT_EQ(answer.field("etag"), "W/\"a\"");
  EXPECT_EQ(answer.field("accept-ranges"), "");
  EXPECT_EQ(ask(tagged(200, "W/\"a\""), "gzip").field("etag"), "W/\"a\"");
  EXPECT_EQ(ask(tagged(200, "\"a\""), "").field("etag"), "\"a\"");
  // RFC 9110, 15.4.5: as the 200 that it stands for.
  answer = ask(tagged(304, "\"a\""), "gzip\r\nIf-None-Match: W/\"a\"");
  EXPECT_EQ(answer.status, 304);
  EXPECT_EQ(answer.field("etag"), "W/\"a\"");
  answer = ask(tagged(304, "\"a\""), "gzip\r\nIf-None-Match: \"a\"");
  EXPECT_EQ(answer.field("etag"), "\"a\"") << "what the client has was not compressed";
  EXPECT_EQ(answer.field("vary"), "accept-encoding");
  EXPECT_EQ(answer.field("content-encoding"), "");
  EXPECT_EQ(ask(tagged(304, "\"a\""), "").field("etag"), "\"a\"");
}

// H4 of docs/design/http.md, with an encoder between: an answer that is not whole does not look as if it were, and nothing follows it.
struct HttpCompressionBroken : HttpCompression {
  // What two requests on one connection get.
  template <class Fn>
  std::string ask_twice(Fn handler) {
    Router routes;
    routes.use([](const Request&, Response&, Next next) -> Task<void> {
      try {
        co_await next();
      } catch (const std::runtime_error&) {
        // A middleware that lets nothing through.
      }
    });
    routes.use(Compression());
    routes.get("/", handler);
    std::string request = "GET / HTTP/1.1\r\nHost: a\r\naccept-encoding: gzip\r\n\r\n";
    return Talk{}(routes, request + request);
  }
  static void expect_broken(const std::string& answer) {
    EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
    EXPECT_FALSE(answer.contains("content-length: 0")) << answer;
    EXPECT_EQ(answer.find("HTTP/1.1 200", 1), answer.npos) << "the next one was answered";
  }
};

TEST_F(HttpCompressionBroken, LessThanWasPromised) {
  expect_broken(ask_twice([](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    response.content_length(5000);
    Result<void> written = co_await response.write(text(2500));
    EXPECT_TRUE(written.has_value());
  }));
}

TEST_F(HttpCompressionBroken, MoreThanWasPromised) {
  expect_broken(ask_twice([](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    response.content_length(5000);
    Result<void> written = co_await response.write(text(5000));
    EXPECT_TRUE(written.has_value());
    written = co_await response.write("x");
    EXPECT_TRUE(!written && written.error() == Error::wrong_length);
  }));
}

TEST_F(HttpCompressionBroken, AnExceptionThatSomebodyCatches) {
  expect_broken(ask_twice([](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    Result<void> written = co_await response.write(text(2500));
    EXPECT_TRUE(written.has_value());
    throw std::runtime_error("in the middle");
  }));
}

// Cut in place after it was opened.
TEST_F(HttpCompressionBroken, AFileThatIsShorterThanItWas) {
  test::TemporaryDirectory directory;
  std::string path = directory.write("file", "");
  expect_broken(ask_twice([path](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    Descriptor file = or_throw(co_await open_file(path, O_RDONLY));
    Result<void> written = co_await response.write_file(file, {.offset = 0, .bytes = 5000});
    EXPECT_FALSE(written.has_value());
  }));
}

TEST_F(HttpCompression, HeadHasTheFieldsOfGet) {
  Answer get = ask(whole("text/plain", text(5000)), "gzip");
  Answer head = ask(whole("text/plain", text(5000)), "gzip", "HEAD");
  EXPECT_EQ(head.field("content-encoding"), "gzip");
  EXPECT_EQ(head.field("content-length"), get.field("content-length"));
  // Only the length is known: it is not that of what GET would send.
  auto length_only = [](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    response.content_length(5000);
    co_return;
  };
  head = ask(length_only, "gzip", "HEAD");
  EXPECT_EQ(head.field("content-encoding"), "gzip");
  EXPECT_EQ(head.field("content-length"), "");
  EXPECT_EQ(ask(length_only, "", "HEAD").field("content-length"), "5000");
  auto streamed = [](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    Result<void> written = co_await response.write(text(5000));
    if (written) written = co_await response.flush();
    or_throw(written);
  };
  head = ask(streamed, "gzip", "HEAD");
  EXPECT_EQ(head.field("content-encoding"), "gzip");
  EXPECT_EQ(head.field("transfer-encoding"), "chunked");
}

// --- In pieces --------------------------------------------------------------------------------------

TEST_F(HttpCompression, WhatIsWrittenInPiecesIsCompressedAsItComes) {
  auto streamed = [](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    for (std::size_t size : {1u, 0u, 1000u, 100'000u, 5u}) {
      Result<void> written = co_await response.write(text(size));
      or_throw(written);
    }
  };
  std::string all = text(1) + text(1000) + text(100'000) + text(5);
  for (const char* coding : {"gzip", "br"}) {
    if (!has_brotli() && std::string_view(coding) == "br") continue;
    Answer answer = ask(streamed, coding);
    EXPECT_EQ(answer.field("content-encoding"), coding);
    EXPECT_TRUE(answer.is_chunked);
    EXPECT_LT(answer.body.size(), all.size() / 2);
    EXPECT_EQ(decoded(answer), all);
  }
}

TEST_F(HttpCompression, APromisedLengthIsThePlainOnes) {
  auto promised = [](std::uint64_t length) {
    return [length](const Request&, Response& response) -> Task<void> {
      response.header("content-type", "text/plain");
      response.content_length(length);
      Result<void> written = co_await response.write(text(static_cast<std::size_t>(length)));
      or_throw(written);
    };
  };
  Answer answer = ask(promised(5000), "gzip");
  EXPECT_EQ(answer.field("content-length"), "");
  EXPECT_EQ(decoded(answer), text(5000));
  answer = ask(promised(100), "gzip");  // below bytes_min
  EXPECT_EQ(answer.field("content-length"), "100");
  EXPECT_EQ(answer.body, text(100));
}

// The handler waits for the client to have decoded what it has flushed: otherwise nobody would ever go on.
TEST_F(HttpCompression, FlushBringsItToThePeer) {
  for (const char* coding : {"gzip", "br"}) {
    if (!has_brotli() && std::string_view(coding) == "br") continue;
    Event seen;
    Router routes;
    routes.use(Compression());
    routes.get("/", [&](const Request&, Response& response) -> Task<void> {
      response.header("content-type", "text/event-stream");
      for (int i = 0; i < 5; ++i) {
        Result<void> written = co_await response.write("progress " + std::to_string(i) + "\n");
        if (written) written = co_await response.flush();
        or_throw(written);
        co_await seen.wait();
        seen.reset();
      }
    });
    Server server(routes);
    // Between the client and the server, so that the client accepts one coding only.
    auto serve = [&](Peer& peer) -> Task<void> {
      std::string request = co_await peer.read_request();
      std::size_t at = request.find("accept-encoding: ");
      request.replace(at, request.find("\r\n", at) - at, "accept-encoding: " + std::string(coding));
      auto [mine, theirs] = net::memory_streams();
      net::MemoryStream client = std::move(mine);
      StreamTransport transport(std::move(theirs));
      auto pump = [&](Nursery& nursery) -> Task<NurseryEnd> {
        nursery.start(server.serve_connection(transport));
        Result<void> sent = co_await net::write_all(client, request);
        or_throw(sent);
        std::array<std::byte, 100> buffer;
        while (true) {
          Result<std::size_t> count = co_await client.read_some(buffer);
          if (!count || *count == 0) co_return cancel;
          std::string bytes(reinterpret_cast<const char*>(buffer.data()), *count);
          co_await peer.write(bytes);
        }
      };
      co_await with_nursery(pump);
    };
    ClientTalk talk;
    talk(serve, [&](Client& client, ScriptedConnector&) -> Task<void> {
      ClientResponse response = or_throw(co_await client.get("http://server/"));
      std::string all;
      std::array<std::byte, 100> buffer;
      while (true) {
        Result<std::size_t> count = co_await response.body().read_some(buffer);
        if (or_throw(count) == 0) break;
        all.append(reinterpret_cast<const char*>(buffer.data()), *count);
        if (all.ends_with("\n")) seen.set();
      }
      EXPECT_EQ(all, "progress 0\nprogress 1\nprogress 2\nprogress 3\nprogress 4\n");
    });
  }
}

// A write that waits for room and is cancelled has written nothing (K2), and the stream is good.
TEST_F(HttpCompression, ACancelledWriteLosesNothing) {
  weft::testing::VirtualLoop loop;
  Router routes;
  routes.use(Compression());
  std::string expected;
  int cancelled = 0;
  routes.get("/", [&](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    for (int i = 0; i < 60; ++i) {
      std::string piece = random_bytes(10'000, static_cast<std::uint32_t>(i));
      auto in_time = co_await timeout(1ms, response.write(piece));
      if (in_time) {
        or_throw(*in_time);
        expected += piece;
      } else {
        ++cancelled;
      }
      if (i % 7 == 0) co_await timeout(1ms, response.flush());
    }
  });
  Limits limits{.output_bytes = 20'000};
  Server server(routes, {.limits = limits});
  std::string got;
  auto talk = [&]() -> Task<void> {
    auto [mine, theirs] = net::memory_streams({.bytes_max = 4096});
    net::MemoryStream client = std::move(mine);
    StreamTransport transport(std::move(theirs));
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    auto read = [&]() -> Task<void> {
      Result<void> sent = co_await net::write_all(
          client, std::string("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: "
                              "close\r\n\r\n"));
      or_throw(sent);
      std::array<std::byte, 4096> buffer;
      while (true) {
        co_await sleep_for(700us);  // slowly
        Result<std::size_t> count = co_await client.read_some(buffer);
        if (!count || *count == 0) co_return;
        got.append(reinterpret_cast<const char*>(buffer.data()), *count);
      }
    };
    co_await all_of(serve(), read());
  };
  run(loop, talk());
  EXPECT_GT(cancelled, 0);
  EXPECT_LT(cancelled, 60);
  std::vector<Answer> answers = parse_answers(got);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(decoded(answers[0]), expected);
}

// H4: half of a piece is no piece.
TEST_F(HttpCompression, ALargeWriteThatWasCancelledBreaksTheAnswer) {
  weft::testing::VirtualLoop loop;
  Router routes;
  routes.use(Compression());
  routes.get("/", [&](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    auto in_time = co_await timeout(1ms, response.write(random_bytes(500'000)));
    EXPECT_FALSE(in_time.has_value());
    Result<void> next = co_await response.write("more");
    if (next) next = co_await response.flush();
    EXPECT_EQ(next ? std::error_code() : next.error(), Error::broken_off);
  });
  Server server(routes);
  std::string got;
  auto talk = [&]() -> Task<void> {
    auto [mine, theirs] = net::memory_streams({.bytes_max = 4096});
    net::MemoryStream client = std::move(mine);
    StreamTransport transport(std::move(theirs));
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    auto read = [&]() -> Task<void> {
      Result<void> sent = co_await net::write_all(
          client, std::string("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"));
      or_throw(sent);
      co_await sleep_for(10ms);
      got = co_await test::read_to_end(client);
    };
    co_await all_of(serve(), read());
  };
  run(loop, talk());
  EXPECT_FALSE(got.ends_with("0\r\n\r\n"));
}

TEST_F(HttpCompression, WhatAHandlerThrowsIsAPlain500) {
  Answer answer = ask(
      [](const Request&, Response& response) -> Task<void> {
        response.body("text/plain", text(5000));
        throw std::runtime_error("on purpose");
        co_return;
      },
      "gzip");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.field("content-encoding"), "");
}

TEST_F(HttpCompression, TwiceIsOnce) {
  Router routes;
  routes.use(Compression());
  routes.use(Compression());
  routes.get("/", whole("text/plain", text(5000)));
  std::string request = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
  std::vector<Answer> answers = parse_answers(Talk{}(routes, request));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(decoded(answers[0]), text(5000));
}

TEST_F(HttpCompression, LevelsHaveBounds) {
  EXPECT_THROW(Compression({.gzip_level = 0}), UsageError);
  EXPECT_THROW(Compression({.gzip_level = 10}), UsageError);
  EXPECT_THROW(Compression({.brotli_level = -1}), UsageError);
  EXPECT_THROW(Compression({.brotli_level = 12}), UsageError);
  for (int level : {0, 1, 11}) {
    CompressionOptions options{.gzip_level = std::max(1, std::min(9, level)),
                               .brotli_level = level};
    EXPECT_EQ(decoded(ask(whole("text/plain", text(5000)), "br, gzip", "GET", options)),
              text(5000));
  }
}

// A client of 1.0 knows no chunks: the end of the connection is the end.
TEST_F(HttpCompression, OldClientsMayAskForIt) {
  Router routes;
  routes.use(Compression());
  routes.get("/", [](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    Result<void> written = co_await response.write(text(5000));
    or_throw(written);
  });
  std::string got = Talk{}(routes, "GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
  std::size_t end = got.find("\r\n\r\n");
  ASSERT_NE(end, got.npos);
  Answer answer;
  answer.head = got.substr(0, end + 2);
  answer.body = got.substr(end + 4);
  EXPECT_EQ(decoded(answer), text(5000));
}

}  // namespace
