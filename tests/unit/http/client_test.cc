// SPDX-License-Identifier: MIT
#include "weft/http/client.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/http_client_fixture.h"
#include "weft/net/error.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using namespace std::chrono_literals;

// --- The request ------------------------------------------------------------------------------------

TEST(HttpClient, SendsWhatARequestNeeds) {
  std::string seen;
  auto script = [&](Peer& peer) -> Task<void> {
    seen = co_await peer.read_request();
    co_await peer.write(kHello);
  };
  ClientTalk talk;
  talk.options.decodes = false;  // what it asks for otherwise: client_coding_test.cc
  talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
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
    ClientRequest smuggles(Method::get, url("http://server/"));
    smuggles.upgrade = "x\r\ny: z";
    bool refused = false;
    try {
      Result<ClientResponse> response = co_await client.request(std::move(smuggles));
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    EXPECT_TRUE(connector.asked.empty());
  });
  ClientOptions options{.proxies = {}, .user_agent = "x\r\ny: z"};
  EXPECT_THROW(Client client(options), UsageError);
}

// A Connector of the user's that knows TCP only.
class PlainConnector final : public Connector {
 public:
  Task<Result<std::unique_ptr<Transport>>> connect(const Endpoint&) override {
    auto [mine, theirs] = net::memory_streams();
    peer = std::move(theirs);
    co_return std::make_unique<StreamTransport<net::MemoryStream>>(std::move(mine));
  }
  std::optional<net::MemoryStream> peer;
};

TEST(HttpClient, SaysWhatIsMissing) {
  auto connector = std::make_shared<PlainConnector>();
  auto root = [&]() -> Task<void> {
    ClientOptions options{.proxies = {}, .connector = connector};
    options.proxies.https = "http://proxy:3128";
    Client client(options);
    auto ask = [&]() -> Task<void> {
      Result<ClientResponse> response = co_await client.get("https://server/");
      EXPECT_TRUE(!response && response.error() == Error::no_tls);
      response = co_await client.get("example.org");
      EXPECT_TRUE(!response && response.error() == Error::bad_url);
    };
    auto tunnel = [&]() -> Task<void> {
      Peer peer(std::move(*connector->peer), 0);
      std::string request = co_await peer.read_request();
      EXPECT_TRUE(request.starts_with("CONNECT server:443 "));
      co_await peer.write("HTTP/1.1 200 OK\r\n\r\n");
    };
    auto soon = [&]() -> Task<void> {
      while (!connector->peer) co_await yield();
      co_await tunnel();
    };
    co_await all_of(ask(), soon());
  };
  weft::testing::VirtualLoop loop;
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

// RFC 9112, 9.5. A server that has seen enough answers, and reads no more: who only writes would wait for ever.
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
      if (all.size() <= 3) {
        EXPECT_EQ(talk.loop.elapsed(), 0s);
      }
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
        if (!body) {
          EXPECT_EQ(body.error(), Error::body_too_large);
        }
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
