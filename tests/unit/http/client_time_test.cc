// SPDX-License-Identifier: MIT
// The Client's timeouts, on a virtual clock.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "support/http_client_fixture.h"
#include "weft/net/error.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using namespace std::chrono_literals;

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

}  // namespace
