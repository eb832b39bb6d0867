// SPDX-License-Identifier: MIT
// The Client's connections: which are kept, which are used again, which are closed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "support/http_client_fixture.h"
#include "weft/net/error.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using namespace std::chrono_literals;

// --- The pool ---------------------------------------------------------------------------------------

// RFC 9112, 9.3.
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

// RFC 9112, 9.3: what is not read to its end is not used again.
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

// RFC 9112, 9.4.
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

TEST(HttpClient, WaitsForAPlaceNoLongerThanTheLimit) {
  ClientTalk talk;
  talk.options.limits.connections_per_origin_max = 1;
  talk.options.limits.pool_timeout = 5s;
  talk(always(kHello), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    ClientResponse first = or_throw(co_await client.get("http://server/"));
    TimePoint before = now();
    Result<ClientResponse> second = co_await client.get("http://server/");
    EXPECT_EQ(second.error(), Error::pool_timeout);
    EXPECT_EQ(now() - before, 5s);
    std::string got = co_await fetch(client, "http://other/");
    EXPECT_EQ(got, "200 Hello.") << "another origin has places of its own";
    // Who gave up left no trace: the place goes to who comes next.
    std::string body = or_throw(co_await first.body().read_all());
    got = co_await fetch(client, "http://server/");
    EXPECT_EQ(got, "200 Hello.");
    EXPECT_EQ(connector.asked.size(), 2u);
  });
}

TEST(HttpClient, NoMoreWaitForAPlaceThanTheLimit) {
  ClientTalk talk;
  talk.options.limits.connections_per_origin_max = 1;
  talk.options.limits.waiters_per_origin_max = 2;
  talk(always(kHello), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    ClientResponse first = or_throw(co_await client.get("http://server/"));
    std::vector<std::string> got;
    auto wait = [&]() -> Task<void> { got.push_back(co_await fetch(client, "http://server/")); };
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      {
        auto given_up = co_await timeout(1ms, fetch(client, "http://server/"));
        EXPECT_FALSE(given_up.has_value());
      }
      nursery.start(wait);  // the place of the one that was cancelled is free again
      nursery.start(wait);
      for (int i = 0; i < 5; ++i) co_await yield();
      TimePoint before = now();
      Result<ClientResponse> one_more = co_await client.get("http://server/");
      EXPECT_EQ(one_more.error(), Error::pool_full);
      EXPECT_EQ(now(), before) << "at once";
      std::string rest = or_throw(co_await first.body().read_all());
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_EQ(got, (std::vector<std::string>{"200 Hello.", "200 Hello."}));
    EXPECT_EQ(connector.asked.size(), 1u);
  });
  // None may wait: that is a limit, too.
  talk.options.limits.waiters_per_origin_max = 0;
  talk(always(kHello), [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientResponse first = or_throw(co_await client.get("http://server/"));
    Result<ClientResponse> second = co_await client.get("http://server/");
    EXPECT_EQ(second.error(), Error::pool_full);
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

// Nothing, if there is none.
std::error_code error_of(const Result<ClientResponse>& response) {
  return response ? std::error_code() : response.error();
}

// RFC 9112, 9.3.1, and so are the next three.
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
      EXPECT_EQ(error_of(response), net::Error::unexpected_end) << to_string(method);
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
    EXPECT_EQ(error_of(response), net::Error::unexpected_end);
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
    EXPECT_EQ(error_of(response), net::Error::unexpected_end);
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
    EXPECT_EQ(error_of(response), net::Error::unexpected_end);
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

}  // namespace
