// SPDX-License-Identifier: MIT
#include "weft/http/client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/http_client_fixture.h"
#include "weft/net/error.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::testing_support;
using namespace std::chrono_literals;

const std::string kHello = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello.";

Task<std::string> fetch(Client& client, std::string where) {
  Result<ClientResponse> response = co_await client.get(where);
  if (!response) co_return response.error().message();
  Result<std::string> body = co_await response->body().read_all();
  co_return body ? std::to_string(response->status()) + " " + *body : body.error().message();
}

bool has_line(std::string_view head, std::string_view line) {
  return head.find("\r\n" + std::string(line) + "\r\n") != head.npos;
}

// --- The request ------------------------------------------------------------------------------------

TEST(HttpClient, SendsWhatARequestNeeds) {
  std::string seen;
  auto script = [&](Peer& peer) -> Task<void> {
    seen = co_await peer.read_request();
    co_await peer.write(kHello);
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    HeaderLines fields{{"x-a", "b"}};
    ClientRequest request(Method::get, url("http://server:81/a/b?c=d"), fields);
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    EXPECT_EQ(response.status(), 200);
    EXPECT_EQ(response.version(), Version::http_1_1);
    EXPECT_EQ(response.headers().find("content-length"), "6");
    EXPECT_EQ(response.body().length(), 6u);
    EXPECT_EQ(response.url().to_string(), "http://server:81/a/b?c=d");
    std::string body = or_throw(co_await response.body().read_all());
    EXPECT_EQ(body, "Hello.");
    EXPECT_EQ(connector.asked, std::vector<std::string>{"http://server:81"});
  });
  EXPECT_EQ(seen, "GET /a/b?c=d HTTP/1.1\r\nhost: server:81\r\nuser-agent: weft\r\nx-a: b\r\n\r\n");
}

TEST(HttpClient, TheHeadOutlivesTheConnection) {
  ClientTalk()(always(kHello), [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientResponse first = or_throw(co_await client.get("http://server/"));
    std::string body = or_throw(co_await first.body().read_all());
    co_await fetch(client, "http://server/");  // on the same connection
    EXPECT_EQ(first.headers().find("content-length"), "6");
    ClientResponse moved = std::move(first);
    EXPECT_EQ(moved.headers().find("content-length"), "6");
  });
}

TEST(HttpClient, RefusesWhatIsItsOwn) {
  ClientTalk()(always(kHello), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    for (const char* own :
         {"Host", "connection", "Content-Length", "transfer-encoding", "expect"}) {
      ClientRequest request(Method::get, url("http://server/"));
      request.headers.add(own, "1");
      bool refused = false;
      try {
        Result<ClientResponse> response = co_await client.request(std::move(request));
      } catch (const UsageError&) {
        refused = true;
      }
      EXPECT_TRUE(refused) << own;
    }
    EXPECT_TRUE(connector.asked.empty());
  });
}

TEST(HttpClient, SaysWhatIsMissing) {
  auto root = [&]() -> Task<void> {
    ClientOptions options{.proxies = {}};
    Client client(options);
    Result<ClientResponse> response = co_await client.get("https://127.0.0.1/");
    EXPECT_EQ(response.error(), Error::no_tls);
    EXPECT_NE(response.error().message().find("ClientOptions::connector"), std::string::npos);
    response = co_await client.get("http://example.org/");
    EXPECT_EQ(response.error(), Error::unknown_host);
    response = co_await client.get("example.org");
    EXPECT_EQ(response.error(), Error::bad_url);
  };
  EventLoop loop;
  run(loop, root());
}

// --- Bodies of requests -----------------------------------------------------------------------------

TEST(HttpClient, SendsWholeBodies) {
  std::string seen;
  auto script = [&](Peer& peer) -> Task<void> {
    while (true) {
      seen = co_await peer.read_request();
      if (seen.empty()) co_return;
      co_await peer.write(kHello);
    }
  };
  for (std::size_t size : {std::size_t(0), std::size_t(1), std::size_t(16 * 1024),
                           std::size_t(16 * 1024 + 1), std::size_t(300'000)}) {
    ClientTalk talk;
    talk.wire = {.bytes_max = 10'000, .write_bytes_max = 4000};
    talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
      for (int i = 0; i < 2; ++i) {
        std::string bytes(size, 'x');
        ClientRequest request(Method::post, url("http://server/"), {}, bytes);
        ClientResponse response = or_throw(co_await client.request(std::move(request)));
        EXPECT_EQ(response.status(), 200);
        EXPECT_TRUE(has_line(seen, "content-length: " + std::to_string(size))) << seen;
        EXPECT_TRUE(seen.ends_with("\r\n\r\n" + bytes));
        std::string body = or_throw(co_await response.body().read_all());
        EXPECT_EQ(body, "Hello.");
      }
      EXPECT_EQ(connector.asked.size(), 1u) << "of " << size << " bytes";
    });
  }
}

Task<Result<void>> three_pieces(BodyWriter& out) {
  for (std::string piece : {"one", "", "two", "three"}) {
    Result<void> written = co_await out.write(piece);
    if (!written) co_return written;
    co_await yield();
  }
  co_return {};
}

TEST(HttpClient, StreamsBodiesInChunksOrWithALength) {
  std::vector<std::string> seen;
  auto script = [&](Peer& peer) -> Task<void> {
    seen.push_back(co_await peer.read_until("0\r\n\r\n"));
    co_await peer.write(kHello);
    seen.push_back(co_await peer.read_until("onetwothree"));
    co_await peer.write(kHello);
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    for (std::optional<std::uint64_t> length : {std::optional<std::uint64_t>(), {11}}) {
      RequestBody body = RequestBody::stream(three_pieces, length);
      ClientRequest request(Method::put, url("http://server/"), {}, std::move(body));
      ClientResponse response = or_throw(co_await client.request(std::move(request)));
      std::string text = or_throw(co_await response.body().read_all());
      EXPECT_EQ(text, "Hello.");
    }
    EXPECT_EQ(connector.asked.size(), 1u) << "it was sent to its end: the connection is kept";
  });
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(
      seen[0].ends_with("transfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree"
                        "\r\n0\r\n\r\n"))
      << seen[0];
  EXPECT_TRUE(seen[1].ends_with("content-length: 11\r\n\r\nonetwothree")) << seen[1];
}

TEST(HttpClient, AStreamedBodyKeepsItsLengthOrFails) {
  for (std::uint64_t length : {10, 12}) {
    auto script = [&](Peer& peer) -> Task<void> {
      std::string seen = co_await peer.read_until();
      EXPECT_LE(seen.size() - seen.find("one"), length) << "never more than was promised";
    };
    ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
      RequestBody body = RequestBody::stream(three_pieces, length);
      ClientRequest request(Method::put, url("http://server/"), {}, std::move(body));
      Result<ClientResponse> response = co_await client.request(std::move(request));
      EXPECT_EQ(response.error(), Error::wrong_length);
      EXPECT_EQ(client.connections(), 0u);
    });
  }
}

TEST(HttpClient, ASendersErrorIsTheRequests) {
  auto script = [&](Peer& peer) -> Task<void> { co_await peer.read_until(); };
  ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    auto fails = [](BodyWriter& out) -> Task<Result<void>> {
      Result<void> written = co_await out.write("some");
      EXPECT_TRUE(written);
      co_return std::unexpected(std::make_error_code(std::errc::no_such_device));
    };
    ClientRequest request(Method::put, url("http://server/"), {}, RequestBody::stream(fails));
    Result<ClientResponse> response = co_await client.request(std::move(request));
    EXPECT_EQ(response.error(), std::errc::no_such_device);

    auto throws = [](BodyWriter& out) -> Task<Result<void>> {
      Result<void> written = co_await out.write("some");
      EXPECT_TRUE(written);
      throw std::runtime_error("on purpose");
    };
    ClientRequest second(Method::put, url("http://server/"), {}, RequestBody::stream(throws));
    bool thrown = false;
    try {
      response = co_await client.request(std::move(second));
    } catch (const std::runtime_error& error) {
      thrown = error.what() == std::string("on purpose");
    }
    EXPECT_TRUE(thrown);
    EXPECT_EQ(client.connections(), 0u);
  });
}

// A server that has seen enough answers, and reads no more: who only writes would wait for ever.
TEST(HttpClient, HearsAnAnswerWhileItSends) {
  for (bool closes : {false, true}) {
    auto script = [&](Peer& peer) -> Task<void> {
      std::array<std::byte, 100> some;
      Result<std::size_t> count = co_await peer.stream().read_some(some);
      EXPECT_TRUE(count);
      co_await peer.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nstop");
      if (closes) co_return;
      co_await suspend_forever();
    };
    ClientTalk talk;
    talk.wire.bytes_max = 1000;
    talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
      ClientRequest request(Method::post, url("http://server/"), {}, std::string(100'000, 'x'));
      ClientResponse response = or_throw(co_await client.request(std::move(request)));
      EXPECT_EQ(response.status(), 413);
      std::string text = or_throw(co_await response.body().read_all());
      EXPECT_EQ(text, "stop");
      EXPECT_EQ(client.connections(), 0u) << "the request was not sent to its end";
    });
  }
}

TEST(HttpClient, WaitsForContinue) {
  std::string head, body;
  auto script = [&](Peer& peer) -> Task<void> {
    head = co_await peer.read_until("\r\n\r\n");
    co_await peer.write("HTTP/1.1 100 Continue\r\n\r\n");
    body = co_await peer.read_until("body");
    co_await peer.write(kHello);
  };
  ClientTalk talk;
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(Method::post, url("http://server/"), {}, "the body");
    request.expects_continue = true;
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    EXPECT_EQ(response.status(), 200);
    std::string text = or_throw(co_await response.body().read_all());
    EXPECT_EQ(client.idle_connections(), 1u);
  });
  EXPECT_TRUE(has_line(head, "expect: 100-continue")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << "nothing of the body";
  EXPECT_EQ(body, "the body");
  EXPECT_LT(talk.loop.elapsed(), 1s);
}

TEST(HttpClient, DoesNotWaitForContinueForEver) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await peer.write(kHello);
  };
  ClientTalk talk;
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(Method::post, url("http://server/"), {}, "the body");
    request.expects_continue = true;
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    EXPECT_EQ(response.status(), 200);
  });
  EXPECT_EQ(talk.loop.elapsed(), ClientLimits().continue_timeout);
}

TEST(HttpClient, DoesNotSendABodyThatIsNotWanted) {
  std::string seen;
  auto script = [&](Peer& peer) -> Task<void> {
    seen = co_await peer.read_until("\r\n\r\n");
    co_await peer.write("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
    seen += co_await peer.read_until();
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(Method::post, url("http://server/"), {}, "the body");
    request.expects_continue = true;
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    EXPECT_EQ(response.status(), 417);
    EXPECT_EQ(client.connections(), 0u) << "the server may wait for the body";
  });
  EXPECT_EQ(seen.find("the body"), seen.npos);
}

// --- Bodies of responses ----------------------------------------------------------------------------

TEST(HttpClient, ReadsABodyAsItComes) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    co_await sleep_for(1s);
    co_await peer.write("3\r\ndef\r\n0\r\n\r\n");
  };
  ClientTalk talk;
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientResponse response = or_throw(co_await client.get("http://server/"));
    EXPECT_EQ(talk.loop.elapsed(), 0s) << "the head does not wait for the body";
    EXPECT_EQ(response.body().length(), std::nullopt);
    std::array<std::byte, 2> buffer;
    std::string all;
    while (std::size_t count = or_throw(co_await response.body().read_some(buffer))) {
      all.append(reinterpret_cast<char*>(buffer.data()), count);
      if (all.size() <= 3) EXPECT_EQ(talk.loop.elapsed(), 0s);
    }
    EXPECT_EQ(all, "abcdef");
    EXPECT_EQ(client.idle_connections(), 1u);
  });
}

TEST(HttpClient, ReadAllHasABound) {
  for (std::string head : {"Content-Length: 100\r\n\r\n", "\r\n"}) {
    auto script = [&](Peer& peer) -> Task<void> {
      co_await peer.read_request();
      co_await peer.write("HTTP/1.1 200 OK\r\n" + head + std::string(100, 'x'));
    };
    for (std::uint64_t bytes_max : {99, 100}) {
      ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
        ClientResponse response = or_throw(co_await client.get("http://server/"));
        Result<std::string> body = co_await response.body().read_all(bytes_max);
        EXPECT_EQ(body.has_value(), bytes_max == 100);
        if (!body) EXPECT_EQ(body.error(), Error::body_too_large);
      });
    }
    ClientTalk talk;
    talk.options.limits.body_bytes_max = 99;
    talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
      ClientResponse response = or_throw(co_await client.get("http://server/"));
      Result<std::string> body = co_await response.body().read_all();
      EXPECT_EQ(body.error(), Error::body_too_large);
    });
  }
}

TEST(HttpClient, TheHeadHasABound) {
  ClientTalk talk;
  talk.options.limits.head_bytes_max = 1000;
  talk.options.limits.header_fields_max = 5;
  for (std::string fields : {"A: " + std::string(1000, 'x') + "\r\n",
                             std::string("A:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n")}) {
    talk(always("HTTP/1.1 200 OK\r\n" + fields + "\r\n"),
         [&](Client& client, ScriptedConnector&) -> Task<void> {
           Result<ClientResponse> response = co_await client.get("http://server/");
           EXPECT_EQ(response.error(), Error::head_too_large);
           EXPECT_EQ(client.connections(), 0u);
         });
  }
}

// --- The pool ---------------------------------------------------------------------------------------

TEST(HttpClient, UsesAConnectionAgain) {
  ClientTalk()(always(kHello), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    for (int i = 0; i < 10; ++i) {
      std::string got = co_await fetch(client, "http://server/" + std::to_string(i));
      EXPECT_EQ(got, "200 Hello.");
      EXPECT_EQ(client.idle_connections(), 1u);
    }
    EXPECT_EQ(connector.asked.size(), 1u);
    co_await fetch(client, "http://server:81/");
    co_await fetch(client, "http://other/");
    EXPECT_EQ(connector.asked.size(), 3u) << "one per origin";
    EXPECT_EQ(client.idle_connections(), 3u);
    client.close_idle();
    EXPECT_EQ(connector.open, 0);
  });
}

TEST(HttpClient, AResponseThatIsDroppedEarlyClosesItsConnection) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
    co_await suspend_forever();
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    {
      ClientResponse response = or_throw(co_await client.get("http://server/"));
      EXPECT_EQ(connector.open, 1);
      EXPECT_EQ(client.connections(), 1u);
    }
    EXPECT_EQ(connector.open, 0);
    EXPECT_EQ(client.connections(), 0u);
  });
}

TEST(HttpClient, AResponseThatIsThereIsReadToItsEndWhenItIsDropped) {
  ClientTalk()(always(kHello), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    for (int i = 0; i < 3; ++i) {
      ClientResponse response = or_throw(co_await client.get("http://server/"));
    }
    EXPECT_EQ(connector.asked.size(), 1u);
  });
}

TEST(HttpClient, OpensNoMoreConnectionsThanTheLimit) {
  int open = 0, most = 0;
  auto script = [&](Peer& peer) -> Task<void> {
    most = std::max(most, ++open);
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) break;
      co_await sleep_for(1ms);
      co_await peer.write(kHello);
    }
    --open;
  };
  ClientTalk talk;
  talk.options.limits.connections_per_origin_max = 3;
  talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    std::vector<Task<std::string>> all;
    for (int i = 0; i < 20; ++i) all.push_back(fetch(client, "http://server/"));
    std::vector<std::string> got = co_await all_of(std::move(all));
    for (const std::string& each : got) EXPECT_EQ(each, "200 Hello.");
    EXPECT_EQ(connector.asked.size(), 3u);
    EXPECT_EQ(client.idle_connections(), 3u);
  });
  EXPECT_EQ(most, 3);
  EXPECT_EQ(talk.loop.elapsed(), 7ms) << "three at a time";
}

TEST(HttpClient, WhoIsCancelledInTheQueueTakesNoPlace) {
  ClientTalk talk;
  talk.options.limits.connections_per_origin_max = 1;
  talk(always(kHello), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    ClientResponse first = or_throw(co_await client.get("http://server/"));
    {
      // It holds the only place until its body is read.
      auto waits = co_await timeout(1ms, fetch(client, "http://server/"));
      EXPECT_FALSE(waits.has_value());
    }
    std::string body = or_throw(co_await first.body().read_all());
    std::string got = co_await fetch(client, "http://server/");
    EXPECT_EQ(got, "200 Hello.");
    EXPECT_EQ(connector.asked.size(), 1u);
  });
}

TEST(HttpClient, KeepsNoMoreThanTheLimitAndNotForLong) {
  ClientTalk talk;
  talk.options.limits.idle_connections_max = 2;
  talk.options.limits.idle_timeout = 10s;
  talk(always(kHello), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    for (std::string host : {"a", "b", "c"}) co_await fetch(client, "http://" + host + "/");
    EXPECT_EQ(client.idle_connections(), 2u);
    co_await fetch(client, "http://b/");
    EXPECT_EQ(connector.asked.size(), 3u) << "the oldest was closed";
    co_await fetch(client, "http://a/");
    EXPECT_EQ(connector.asked.size(), 4u);
    co_await sleep_for(9s);
    EXPECT_EQ(client.idle_connections(), 2u);
    co_await fetch(client, "http://a/");  // counted from the last use
    co_await sleep_for(2s);
    EXPECT_EQ(client.idle_connections(), 1u);
    EXPECT_EQ(connector.open, 1) << "closed without anybody's asking";
    co_await sleep_for(10s);
    EXPECT_EQ(connector.open, 0);
    co_await fetch(client, "http://a/");
    EXPECT_EQ(connector.asked.size(), 5u);
  });
}

TEST(HttpClient, AResponseMayOutliveItsClient) {
  auto script = always(kHello);
  ClientTalk()(script, [&](Client&, ScriptedConnector& connector) -> Task<void> {
    ClientOptions options{.proxies = {}};
    // Not the talk's own client, which would be the last to go.
    options.connector = std::shared_ptr<Connector>(&connector, [](Connector*) {});
    std::optional<ClientResponse> kept;
    {
      Client client(options);
      kept = or_throw(co_await client.get("http://server/"));
    }
    std::string body = or_throw(co_await kept->body().read_all());
    EXPECT_EQ(body, "Hello.");
    EXPECT_EQ(connector.open, 0) << "there is no pool to keep it";
  });
}

// --- Connections that the server has closed -----------------------------------------------------------

// Answers `good` requests on each connection, then reads one more and closes.
Script closes_after(int good) {
  return [good](Peer& peer) -> Task<void> {
    for (int i = 0; i < good; ++i) {
      co_await peer.read_request();
      co_await peer.write(kHello);
    }
    co_await peer.read_request();
  };
}

TEST(HttpClient, RepeatsARequestOnANewConnectionIfItMay) {
  for (Method method : {Method::get, Method::head, Method::put, Method::delete_, Method::options}) {
    ClientTalk()(closes_after(1), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
      co_await fetch(client, "http://server/");
      ClientRequest request(method, url("http://server/"));
      if (method == Method::put) request.body = "text";
      Result<ClientResponse> response = co_await client.request(std::move(request));
      EXPECT_TRUE(response.has_value()) << to_string(method);
      EXPECT_EQ(connector.asked.size(), 2u);
    });
  }
}

TEST(HttpClient, DoesNotRepeatWhatItMustNot) {
  for (Method method : {Method::post, Method::patch}) {
    ClientTalk()(closes_after(1), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
      co_await fetch(client, "http://server/");
      ClientRequest request(method, url("http://server/"), {}, "an order");
      Result<ClientResponse> response = co_await client.request(std::move(request));
      EXPECT_EQ(response.error(), net::Error::unexpected_end) << to_string(method);
      EXPECT_EQ(connector.asked.size(), 1u);
    });
  }
  // A body that can be made once only.
  ClientTalk()(closes_after(1), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    co_await fetch(client, "http://server/");
    ClientRequest request(Method::put, url("http://server/"), {},
                          RequestBody::stream(three_pieces));
    Result<ClientResponse> response = co_await client.request(std::move(request));
    EXPECT_FALSE(response.has_value());
    EXPECT_EQ(connector.asked.size(), 1u);
  });
  // The connection is new: that the server closes it is its answer.
  ClientTalk()(closes_after(0), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    Result<ClientResponse> response = co_await client.get("http://server/");
    EXPECT_EQ(response.error(), net::Error::unexpected_end);
    EXPECT_EQ(connector.asked.size(), 1u);
  });
  // It has begun to answer.
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await peer.write(kHello);
    co_await peer.read_request();
    co_await peer.write("HTTP/1.1 2");
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    co_await fetch(client, "http://server/");
    Result<ClientResponse> response = co_await client.get("http://server/");
    EXPECT_EQ(response.error(), net::Error::unexpected_end);
    EXPECT_EQ(connector.asked.size(), 1u);
  });
}

TEST(HttpClient, RepeatsOnceOnly) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    if (peer.number() > 0) co_return;
    co_await peer.write(kHello);
    co_await peer.read_request();
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    co_await fetch(client, "http://server/");
    Result<ClientResponse> response = co_await client.get("http://server/");
    EXPECT_EQ(response.error(), net::Error::unexpected_end);
    EXPECT_EQ(connector.asked.size(), 2u);
  });
}

// Of which nothing was sent, everything may be.
TEST(HttpClient, RepeatsAnythingOfWhichNothingWasSent) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await peer.write(kHello);
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    co_await fetch(client, "http://server/");
    co_await sleep_for(1s);  // it has closed
    ClientRequest request(Method::post, url("http://server/"), {}, "an order");
    Result<ClientResponse> response = co_await client.request(std::move(request));
    EXPECT_TRUE(response.has_value());
    EXPECT_EQ(connector.asked.size(), 2u);
  });
}

// --- Redirects --------------------------------------------------------------------------------------

// Answers /NNN/rest with a redirect of that status to /rest, or to what stands behind an "at=", and all else with
// "method target" and what is asked for of the head.
Script redirects(std::vector<std::string>& seen) {
  return [&seen](Peer& peer) -> Task<void> {
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) co_return;
      seen.push_back(request);
      std::size_t at = request.find(' ') + 1;
      std::string target = request.substr(at, request.find(' ', at) - at);
      if (target.starts_with("/3")) {
        std::size_t other = target.find("at=");
        std::string location = other == target.npos ? target.substr(4) : target.substr(other + 3);
        co_await peer.write("HTTP/1.1 " + target.substr(1, 3) + " Moved\r\nLocation: " + location +
                            "\r\nContent-Length: 5\r\n\r\nthere");
      } else {
        co_await peer.write(kHello);
      }
    }
  };
}

TEST(HttpClient, FollowsRedirects) {
  std::vector<std::string> seen;
  ClientTalk()(redirects(seen), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    ClientResponse response = or_throw(co_await client.get("http://server/301/302/307/a?b#c"));
    EXPECT_EQ(response.status(), 200);
    EXPECT_EQ(response.url().to_string(), "http://server/a?b");
    EXPECT_EQ(connector.asked.size(), 1u) << "their bodies are read";
    response = or_throw(co_await client.get("http://server/302?at=http://other:81/b"));
    EXPECT_EQ(response.url().to_string(), "http://other:81/b");
    EXPECT_EQ(connector.asked.back(), "http://other:81");
    response = or_throw(co_await client.get("http://server/302/x?at=../y"));
    EXPECT_EQ(response.url().to_string(), "http://server/y");
    Result<ClientResponse> bad = co_await client.get("http://server/302?at=mailto:me");
    EXPECT_EQ(bad.error(), Error::bad_redirect);
    ClientResponse not_one = or_throw(co_await client.get("http://server/304/"));
    EXPECT_EQ(not_one.status(), 304);
    ClientResponse choices = or_throw(co_await client.get("http://server/300/"));
    EXPECT_EQ(choices.status(), 300);
  });
}

TEST(HttpClient, ChangesTheMethodAsTheStatusSays) {
  struct Change {
    int status;
    Method method;
    std::string becomes;
    bool has_body;
  };
  for (const Change& c : std::vector<Change>{{301, Method::post, "GET", false},
                                             {302, Method::post, "GET", false},
                                             {303, Method::post, "GET", false},
                                             {303, Method::put, "GET", false},
                                             {303, Method::head, "HEAD", false},
                                             {301, Method::put, "PUT", true},
                                             {302, Method::delete_, "DELETE", true},
                                             {307, Method::post, "POST", true},
                                             {308, Method::post, "POST", true},
                                             {307, Method::head, "HEAD", false}}) {
    std::vector<std::string> seen;
    ClientTalk()(redirects(seen), [&](Client& client, ScriptedConnector&) -> Task<void> {
      std::string where = "http://server/" + std::to_string(c.status) + "/a";
      ClientRequest request(c.method, url(where));
      if (c.method != Method::head) {
        request.body = "the body";
        request.headers.add("content-type", "text/plain");
      }
      Result<ClientResponse> response = co_await client.request(std::move(request));
      EXPECT_TRUE(response.has_value());
    });
    ASSERT_EQ(seen.size(), 2u) << c.status;
    EXPECT_TRUE(seen[1].starts_with(c.becomes + " /a HTTP/1.1\r\n")) << c.status << seen[1];
    EXPECT_EQ(seen[1].ends_with("\r\n\r\nthe body"), c.has_body) << c.status;
    EXPECT_EQ(has_line(seen[1], "content-type: text/plain"), c.has_body) << c.status;
    EXPECT_EQ(has_line(seen[1], "content-length: 8"), c.has_body) << c.status;
  }
}

TEST(HttpClient, AStreamedBodyIsNotSentTwice) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_until("0\r\n\r\n");
    co_await peer.write("HTTP/1.1 307 Moved\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n");
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(Method::put, url("http://server/"), {},
                          RequestBody::stream(three_pieces));
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    EXPECT_EQ(response.status(), 307);
  });
}

TEST(HttpClient, GivesSecretsToTheirOriginOnly) {
  for (std::string where : {"/a", "http://server:80/a", "http://other/a", "http://server:81/a"}) {
    bool is_same = where.starts_with("/") || where.starts_with("http://server:80/");
    std::vector<std::string> seen;
    ClientTalk()(redirects(seen), [&](Client& client, ScriptedConnector&) -> Task<void> {
      ClientRequest request(Method::get, url("http://server/302?at=" + where));
      request.headers.add("Authorization", "secret");
      request.headers.add("cookie", "secret");
      request.headers.add("x-plain", "b");
      Result<ClientResponse> response = co_await client.request(std::move(request));
      EXPECT_TRUE(response.has_value());
    });
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[1].find("secret") != std::string::npos, is_same) << where;
    EXPECT_TRUE(has_line(seen[1], "x-plain: b"));
  }
}

TEST(HttpClient, FollowsNoMoreRedirectsThanTheLimit) {
  std::vector<std::string> seen;
  for (std::size_t redirects_max : {0, 2, 3}) {
    ClientTalk talk;
    talk.options.limits.redirects_max = redirects_max;
    talk(redirects(seen), [&](Client& client, ScriptedConnector&) -> Task<void> {
      Result<ClientResponse> response = co_await client.get("http://server/302/302/302/a");
      if (redirects_max == 0) EXPECT_EQ(or_throw(std::move(response)).status(), 302);
      if (redirects_max == 2) EXPECT_EQ(response.error(), Error::too_many_redirects);
      if (redirects_max == 3) EXPECT_EQ(or_throw(std::move(response)).status(), 200);
    });
  }
  auto circle = always("HTTP/1.1 302 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
  ClientTalk()(circle, [&](Client& client, ScriptedConnector&) -> Task<void> {
    Result<ClientResponse> response = co_await client.get("http://server/");
    EXPECT_EQ(response.error(), Error::too_many_redirects);
  });
}

TEST(HttpClient, DoesNotReadALargeRedirectToItsEnd) {
  auto script = [&](Peer& peer) -> Task<void> {
    std::string request = co_await peer.read_request();
    if (request.starts_with("GET /a ")) {
      co_await peer.write(kHello);
      co_return;
    }
    co_await peer.write("HTTP/1.1 302 Moved\r\nLocation: /a\r\n\r\n");
    std::string piece(10'000, 'x');
    while (true) {
      Result<void> written = co_await net::write_all(peer.stream(), piece);
      if (!written) co_return;
    }
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    std::string got = co_await fetch(client, "http://server/");
    EXPECT_EQ(got, "200 Hello.");
    EXPECT_EQ(connector.asked.size(), 2u);
    EXPECT_EQ(connector.open, 1);
  });
}

// --- Time -------------------------------------------------------------------------------------------

class NeverConnects final : public Connector {
  Task<Result<std::unique_ptr<Transport>>> connect(const Endpoint&) override {
    co_await suspend_forever();
    co_return nullptr;
  }
};

TEST(HttpClient, ConnectingHasATimeout) {
  weft::testing::VirtualLoop loop;
  auto root = [&]() -> Task<void> {
    ClientOptions options{.proxies = {}};
    options.connector = std::make_shared<NeverConnects>();
    Client client(options);
    Result<ClientResponse> response = co_await client.get("http://server/");
    EXPECT_EQ(response.error(), Error::connect_timeout);
    EXPECT_EQ(client.connections(), 0u);
  };
  run(loop, root());
  EXPECT_EQ(loop.elapsed(), ClientLimits().connect_timeout);
}

TEST(HttpClient, WaitsForTheHeadNotForEver) {
  for (std::string begins : {"", "HTTP/1.1 200", "HTTP/1.1 103 Early Hints\r\n\r\n"}) {
    auto script = [&](Peer& peer) -> Task<void> {
      co_await peer.read_request();
      // A byte now and then does not help: the whole head has one time.
      for (char c : begins) {
        co_await peer.write(std::string(1, c));
        co_await sleep_for(1s);
      }
      co_await suspend_forever();
    };
    ClientTalk talk;
    talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
      Result<ClientResponse> response = co_await client.get("http://server/");
      EXPECT_EQ(response.error(), Error::head_timeout);
      EXPECT_EQ(client.connections(), 0u);
    });
    EXPECT_EQ(talk.loop.elapsed(), ClientLimits().head_timeout);
  }
}

TEST(HttpClient, ARequestThatTakesLongToSendMayTakeIt) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_until("0\r\n\r\n");
    co_await sleep_for(59s);
    co_await peer.write(kHello);
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    auto slow = [](BodyWriter& out) -> Task<Result<void>> {
      for (int i = 0; i < 100; ++i) {
        Result<void> written = co_await out.write("x");
        if (!written) co_return written;
        co_await sleep_for(10s);
      }
      co_return {};
    };
    ClientRequest request(Method::put, url("http://server/"), {}, RequestBody::stream(slow));
    Result<ClientResponse> response = co_await client.request(std::move(request));
    EXPECT_TRUE(response.has_value()) << response.error().message();
  });
}

TEST(HttpClient, ABodyHasATimeout) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    for (int i = 0; i < 3; ++i) {
      co_await sleep_for(20s);
      co_await peer.write("x");
    }
    co_await suspend_forever();
  };
  ClientTalk talk;
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientResponse response = or_throw(co_await client.get("http://server/"));
    Result<std::string> body = co_await response.body().read_all();
    EXPECT_EQ(body.error(), Error::body_timeout);
    EXPECT_EQ(client.connections(), 0u);
  });
  EXPECT_EQ(talk.loop.elapsed(), 60s + ClientLimits().body_timeout);
}

TEST(HttpClient, AServerThatTakesNothingRunsOutOfTime) {
  auto script = [&](Peer&) -> Task<void> { co_await suspend_forever(); };
  ClientTalk talk;
  talk.wire.bytes_max = 1000;
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(Method::post, url("http://server/"), {}, std::string(100'000, 'x'));
    Result<ClientResponse> response = co_await client.request(std::move(request));
    EXPECT_EQ(response.error(), Error::write_timeout);
    EXPECT_EQ(client.connections(), 0u);
  });
  EXPECT_EQ(talk.loop.elapsed(), ClientLimits().write_timeout);
}

TEST(HttpClient, WithinBoundsTheWhole) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await suspend_forever();
  };
  ClientTalk talk;
  talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    Result<ClientResponse> response = co_await within(2s, client.get("http://server/"));
    EXPECT_EQ(response.error(), std::errc::timed_out);
    EXPECT_EQ(connector.open, 0);
    EXPECT_EQ(client.connections(), 0u);
  });
  EXPECT_EQ(talk.loop.elapsed(), 2s);
}

// --- Cancellation -----------------------------------------------------------------------------------

// One whole errand, with everything that waits: a redirect, a streamed body, 100-continue, a chunked response.
Task<void> errand(Client& client, bool& done) {
  RequestBody body = RequestBody::stream(three_pieces);
  ClientRequest request(Method::post, url("http://server/303"), {}, std::move(body));
  request.expects_continue = true;
  Result<ClientResponse> response = co_await client.request(std::move(request));
  EXPECT_EQ(response->status(), 200);
  Result<std::string> text = co_await response->body().read_all();
  EXPECT_EQ(text, "abcdef");
  done = true;
}

Script errands_server() {
  return [](Peer& peer) -> Task<void> {
    while (true) {
      std::string request = co_await peer.read_until("\r\n\r\n");
      if (request.empty()) co_return;
      if (request.starts_with("POST")) {
        co_await peer.write("HTTP/1.1 100 Continue\r\n\r\n");
        co_await peer.read_until("0\r\n\r\n");
        co_await peer.write("HTTP/1.1 303 See\r\nLocation: /a\r\nContent-Length: 5\r\n\r\nthere");
      } else {
        co_await peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        co_await yield();
        co_await peer.write("3\r\nabc\r\n");
        co_await yield();
        co_await peer.write("3\r\ndef\r\n0\r\n\r\n");
      }
    }
  };
}

TEST(HttpClient, CancelledAnywhereItLeavesNothingOpen) {
  int cancelled = 0;
  for (std::size_t piece : {1, 1000}) {
    bool done = false;
    for (int turns = 0; !done; ++turns) {
      ASSERT_LT(turns, 100'000);
      ClientTalk talk;
      talk.wire.read_bytes_max = piece;
      talk(errands_server(), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
        auto pauses = [&]() -> Task<void> {
          for (int i = 0; i < turns; ++i) co_await yield();
        };
        co_await any_of(pauses(), errand(client, done));
        if (!done) ++cancelled;
        EXPECT_EQ(connector.open, static_cast<int>(client.idle_connections()))
            << "cancelled after " << turns << " turns";
        EXPECT_EQ(client.connections(), client.idle_connections());
        // Whatever was kept is good for the next one.
        bool again = false;
        co_await errand(client, again);
        EXPECT_TRUE(again) << "after a cancel after " << turns << " turns";
      });
    }
  }
  EXPECT_GT(cancelled, 100) << "the test did not test";
}

TEST(HttpClient, ACancelledReadOfABodyTookNothing) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
    co_await sleep_for(1s);
    co_await peer.write("def");
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientResponse response = or_throw(co_await client.get("http://server/"));
    std::array<std::byte, 3> buffer;
    std::size_t count = or_throw(co_await response.body().read_some(buffer));
    EXPECT_EQ(count, 3u);
    auto late = co_await timeout(100ms, response.body().read_some(buffer));
    EXPECT_FALSE(late.has_value());
    std::string rest = or_throw(co_await response.body().read_all());
    EXPECT_EQ(rest, "def");
    EXPECT_EQ(client.idle_connections(), 1u);
  });
}

// --- Proxies ----------------------------------------------------------------------------------------

TEST(HttpProxies, AreFoundByTheName) {
  Proxies proxies{.http = "proxy:3128", .https = "http://secure-proxy:8080/", .no_proxy = {}};
  auto ask = [&](std::string_view where) -> std::string {
    Result<std::optional<Endpoint>> found = proxies.find(url(where).origin());
    if (!found) return found.error().message();
    return *found ? (*found)->authority() : "directly";
  };
  EXPECT_EQ(ask("http://a/"), "proxy:3128");
  EXPECT_EQ(ask("https://a/"), "secure-proxy:8080");
  proxies.no_proxy = "localhost, .example.org,b.net:81,10.0.0.1,::1,[::2]:80";
  EXPECT_EQ(ask("http://localhost/"), "directly");
  EXPECT_EQ(ask("http://LOCALHOST:81/"), "directly");
  EXPECT_EQ(ask("http://notlocalhost/"), "proxy:3128");
  EXPECT_EQ(ask("http://example.org/"), "directly");
  EXPECT_EQ(ask("https://www.example.org/"), "directly");
  EXPECT_EQ(ask("http://badexample.org/"), "proxy:3128");
  EXPECT_EQ(ask("http://example.org.evil/"), "proxy:3128");
  EXPECT_EQ(ask("http://b.net:81/"), "directly");
  EXPECT_EQ(ask("http://b.net/"), "proxy:3128");
  EXPECT_EQ(ask("http://10.0.0.1/"), "directly");
  EXPECT_EQ(ask("http://10.0.0.11/"), "proxy:3128");
  EXPECT_EQ(ask("http://[::1]/"), "directly");
  EXPECT_EQ(ask("http://[::2]/"), "directly");
  EXPECT_EQ(ask("http://[::3]/"), "proxy:3128");
  proxies.no_proxy = "*";
  EXPECT_EQ(ask("http://a/"), "directly");
  proxies = {};
  EXPECT_EQ(ask("http://a/"), "directly");
  proxies.http = "http://me:secret@proxy/";
  EXPECT_EQ(ask("http://a/"), make_error_code(Error::bad_proxy).message());
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(HttpProxies, ComeFromTheEnvironment) {
  Variable a("http_proxy", "one:1"), b("HTTP_PROXY", "two:2"), c("https_proxy", nullptr),
      d("HTTPS_PROXY", "three:3"), e("no_proxy", ""), f("NO_PROXY", "x");
  Proxies found = Proxies::from_environment();
  EXPECT_EQ(found.http, "one:1");
  EXPECT_EQ(found.https, "three:3");
  EXPECT_EQ(found.no_proxy, "x");
  EXPECT_EQ(ClientOptions().proxies.http, "one:1") << "a Client asks by itself";
  Variable g("http_proxy", nullptr);
  EXPECT_EQ(Proxies::from_environment().http, "")
      << "HTTP_PROXY may be a header field of a CGI program's client";
}

TEST(HttpClient, AsksAProxyWithTheWholeUrl) {
  std::vector<std::string> seen;
  auto script = [&](Peer& peer) -> Task<void> {
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) co_return;
      seen.push_back(request);
      co_await peer.write(kHello);
    }
  };
  ClientTalk talk;
  talk.options.proxies = {.http = "http://proxy:3128", .https = {}, .no_proxy = "direct"};
  talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    co_await fetch(client, "http://a/x?y");
    co_await fetch(client, "http://b:81/");
    co_await fetch(client, "http://direct/");
    std::vector<std::string> asked{"http://proxy:3128", "http://direct"};
    EXPECT_EQ(connector.asked, asked) << "one connection to the proxy, for all";
  });
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen[0].starts_with("GET http://a/x?y HTTP/1.1\r\nhost: a\r\n")) << seen[0];
  EXPECT_TRUE(seen[1].starts_with("GET http://b:81/ HTTP/1.1\r\nhost: b:81\r\n")) << seen[1];
  EXPECT_TRUE(seen[2].starts_with("GET / HTTP/1.1\r\nhost: direct\r\n")) << seen[2];
}

TEST(HttpClient, GoesThroughATunnelToHttps) {
  std::vector<std::string> seen;
  auto script = [&](Peer& peer) -> Task<void> {
    seen.push_back(co_await peer.read_request());
    co_await peer.write("HTTP/1.1 200 Connection established\r\nContent-Length: 9\r\n\r\n");
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) co_return;
      seen.push_back(request);
      co_await peer.write(kHello);
    }
  };
  ClientTalk talk;
  talk.options.proxies = {.http = {}, .https = "proxy:3128", .no_proxy = {}};
  talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    std::string got = co_await fetch(client, "https://[::1]/x");
    EXPECT_EQ(got, "200 Hello.");
    got = co_await fetch(client, "https://[::1]/y");
    EXPECT_EQ(got, "200 Hello.");
    EXPECT_EQ(connector.asked, std::vector<std::string>{"http://proxy:3128"});
    EXPECT_EQ(connector.secured, std::vector<std::string>{"[::1]"});
    co_await fetch(client, "https://other:444/");
    EXPECT_EQ(connector.asked.size(), 2u) << "a tunnel leads to one origin";
  });
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0], "CONNECT [::1]:443 HTTP/1.1\r\nhost: [::1]:443\r\n\r\n");
  EXPECT_TRUE(seen[1].starts_with("GET /x HTTP/1.1\r\nhost: [::1]\r\n")) << seen[1];
  EXPECT_TRUE(seen[3].starts_with("CONNECT other:444 HTTP/1.1\r\n")) << seen[3];
}

TEST(HttpClient, ATunnelMayBeRefused) {
  ClientTalk talk;
  talk.options.proxies = {.http = {}, .https = "proxy:3128", .no_proxy = {}};
  auto refuses = always("HTTP/1.1 407 Who are you\r\nContent-Length: 4\r\n\r\nno.\n");
  talk(refuses, [&](Client& client, ScriptedConnector&) -> Task<void> {
    Result<ClientResponse> response = co_await client.get("https://a/");
    EXPECT_EQ(response.error(), Error::proxy_refused);
    EXPECT_EQ(client.connections(), 0u);
  });
  auto speaks_first = always("HTTP/1.1 200 Fine\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
  talk(speaks_first, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    Result<ClientResponse> response = co_await client.get("https://a/");
    EXPECT_EQ(response.error(), Error::bad_response);
    EXPECT_TRUE(connector.secured.empty());
  });
}

// --- Other protocols --------------------------------------------------------------------------------

TEST(HttpClient, HandsTheConnectionToAnotherProtocol) {
  std::string seen;
  auto script = [&](Peer& peer) -> Task<void> {
    seen = co_await peer.read_request();
    co_await peer.write(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nfirst");
    std::string said = co_await peer.read_until("hello");
    co_await peer.write(said);
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    ClientRequest request(Method::get, url("http://server/chat"));
    request.upgrade = "echo";
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    EXPECT_EQ(response.status(), 101);
    ClientResponse::Upgraded upgraded = response.upgrade();
    EXPECT_EQ(upgraded.read_ahead.size(), 5u);
    EXPECT_EQ(client.connections(), 0u);
    EXPECT_EQ(connector.open, 1) << "it is the caller's now";
    net::Part part(std::string_view("hello"));
    Result<std::size_t> count = co_await upgraded.transport->write_some(std::span(&part, 1));
    EXPECT_EQ(count, 5u);
    PooledBytes back = or_throw(co_await upgraded.transport->read());
    EXPECT_EQ(back.size(), 5u);
    EXPECT_THROW(static_cast<void>(response.upgrade()), UsageError);
  });
  EXPECT_TRUE(has_line(seen, "connection: upgrade")) << seen;
  EXPECT_TRUE(has_line(seen, "upgrade: echo")) << seen;
}

TEST(HttpClient, AnUpgradeMayBeDeclined) {
  ClientTalk()(always(kHello), [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(Method::get, url("http://server/chat"));
    request.upgrade = "echo";
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    EXPECT_EQ(response.status(), 200);
    EXPECT_THROW(static_cast<void>(response.upgrade()), UsageError);
    std::string text = or_throw(co_await response.body().read_all());
    EXPECT_EQ(client.idle_connections(), 1u);
  });
}

}  // namespace
