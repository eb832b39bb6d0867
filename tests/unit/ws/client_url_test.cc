// SPDX-License-Identifier: MIT
// ws::connect() by a URL: where it goes, what it says there, what it refuses.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/http_client_fixture.h"
#include "support/http_peers.h"
#include "weft/testing/virtual_loop.h"
#include "weft/tls/error.h"
#include "weft/ws/client.h"
#include "weft/ws/endpoint.h"
#include "weft/ws/error.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

struct Asked {
  Result<ws::Close> end = std::unexpected(std::error_code());
  std::vector<std::string> where;  // that was connected to
  std::string request;
};

// Against a server that refuses.
Asked ask(std::string url, ws::ClientOptions options = {}) {
  Asked asked;
  VirtualLoop loop;
  auto whole = [&](Nursery& nursery) -> Task<NurseryEnd> {
    test::Script script = [&](test::Peer& peer) -> Task<void> {
      asked.request = co_await peer.read_request();
      co_await peer.write("HTTP/1.1 403 No\r\n\r\n");
    };
    auto connector =
        std::make_shared<test::ScriptedConnector>(nursery, script, net::MemoryStreamOptions());
    options.connector = connector;
    ws::ClientTalk talk = [&](ws::Connection&) -> Task<void> {
      ADD_FAILURE() << "nobody has agreed";
      co_return;
    };
    Task<Result<ws::Close>> talking = ws::connect(url, talk, options);
    asked.end = co_await std::move(talking);
    asked.where = connector->asked;
    EXPECT_EQ(connector->open, 0) << "it was not closed";
    co_return join;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(whole); };
  run(loop, root());
  return asked;
}

TEST(WebSocketUrl, SaysWhereAndWhom) {
  struct Row {
    const char* url;
    const char* where;
    const char* line;
    const char* host;
  };
  for (Row row : {
           Row{"ws://example.org/chat?x=1", "http://example.org", "GET /chat?x=1 HTTP/1.1\r\n",
               "example.org"},
           Row{"ws://example.org", "http://example.org", "GET / HTTP/1.1\r\n", "example.org"},
           Row{"ws://example.org:80/", "http://example.org", "GET / HTTP/1.1\r\n", "example.org"},
           Row{"ws://example.org:443/", "http://example.org:443", "GET / HTTP/1.1\r\n",
               "example.org:443"},
           Row{"WSS://Example.ORG/a", "https://example.org", "GET /a HTTP/1.1\r\n", "example.org"},
           Row{"wss://example.org:443/a", "https://example.org", "GET /a HTTP/1.1\r\n",
               "example.org"},
           Row{"wss://example.org:8443/a", "https://example.org:8443", "GET /a HTTP/1.1\r\n",
               "example.org:8443"},
           Row{"ws://[::1]:9000/a", "http://[::1]:9000", "GET /a HTTP/1.1\r\n", "[::1]:9000"},
       }) {
    Asked asked = ask(row.url);
    EXPECT_EQ(asked.end.error(), ws::Error::refused) << row.url;
    EXPECT_EQ(asked.where, std::vector<std::string>{row.where}) << row.url;
    EXPECT_TRUE(asked.request.starts_with(row.line)) << asked.request;
    std::string host = "\r\nhost: " + std::string(row.host) + "\r\n";
    EXPECT_NE(asked.request.find(host), std::string::npos) << asked.request;
  }
}

TEST(WebSocketUrl, KeepsTheOptions) {
  ws::ClientOptions options;
  options.subprotocols = {"chat.v2", "chat.v1"};
  options.origin = "https://example.org";
  options.headers.add("authorization", "Bearer abc");
  int refused = 0;
  options.on_refused = [&](int status, const http::Headers&) { refused = status; };
  std::string request = ask("ws://example.org/", options).request;
  for (const char* field :
       {"\r\nsec-websocket-protocol: chat.v2, chat.v1\r\n", "\r\norigin: https://example.org\r\n",
        "\r\nauthorization: Bearer abc\r\n"}) {
    EXPECT_NE(request.find(field), std::string::npos) << field;
  }
  EXPECT_EQ(refused, 403);
}

TEST(WebSocketUrl, WhatIsNoneIsRefusedBeforeAnybodyIsAsked) {
  for (const char* url : {"", "ws", "ws:", "ws://", "http://example.org/", "https://example.org/",
                          "wsx://example.org/", "//example.org/", "/chat", "ws://example.org/a b",
                          "ws://example.org/\r\nx: y", "ws://user@example.org/",
                          "ws://example.org/chat#part", "ws://example.org:99999/"}) {
    Asked asked = ask(url);
    EXPECT_EQ(asked.end.error(), ws::Error::bad_url) << url;
    EXPECT_TRUE(asked.where.empty()) << url;
  }
}

// One time for the way there and the handshake.
TEST(WebSocketUrl, TheTimeIsThatOfAll) {
  class Slow final : public http::Connector {
   public:
    explicit Slow(net::MemoryStream& kept) : kept_(kept) {}
    Task<Result<std::unique_ptr<http::Transport>>> connect(const http::Endpoint&) override {
      co_await sleep_for(7s);
      auto [near, far] = net::memory_streams();
      kept_ = std::move(far);
      co_return std::make_unique<http::StreamTransport<net::MemoryStream>>(std::move(near));
    }

   private:
    net::MemoryStream& kept_;
  };
  for (std::chrono::seconds limit : {5s, 10s}) {
    VirtualLoop loop;
    net::MemoryStream kept;
    ws::ClientOptions options;
    options.limits.handshake_timeout = limit;
    options.connector = std::make_shared<Slow>(kept);
    auto root = [&]() -> Task<void> {
      ws::ClientTalk talk = [&](ws::Connection&) -> Task<void> { co_return; };
      Task<Result<ws::Close>> talking = ws::connect("ws://example.org/", talk, options);
      Result<ws::Close> end = co_await std::move(talking);
      EXPECT_EQ(end.error(), std::errc::timed_out);
      EXPECT_EQ(loop.elapsed(), limit);
    };
    run(loop, root());
  }
}

// --- Over TCP ---------------------------------------------------------------------------------------

// By a name, so by the resolver and whichever of its addresses answers.
TEST(WebSocketUrl, ByNameAndOverTls) {
  for (http::Scheme scheme : {http::Scheme::http, http::Scheme::https}) {
    test::Served served(scheme);
    ws::EndpointOptions how;
    how.subprotocols = {"v1"};
    std::string host;
    auto echo = [&](ws::Connection& socket, const http::Request& request) -> Task<void> {
      host = request.authority();
      Result<ws::Message> message = co_await socket.receive();
      if (message) [[maybe_unused]]
        Result<void> sent = co_await socket.send(*message);
    };
    ws::Endpoint endpoint(echo, how);
    served.routes.get("/echo", endpoint);
    served([&](std::string at, http::Server&) -> Task<void> {
      std::string port = at.substr(at.rfind(':'));
      std::string url = (scheme == http::Scheme::http ? "ws" : "wss") + ("://localhost" + port);
      ws::ClientOptions options;
      options.subprotocols = {"v2", "v1"};
      options.connector = test::direct().connector;
      ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
        EXPECT_EQ(socket.subprotocol(), "v1");
        EXPECT_TRUE((co_await socket.send("over the wire")).has_value());
        Result<ws::Message> back = co_await socket.receive();
        EXPECT_TRUE(back && back->data == "over the wire");
      };
      Task<Result<ws::Close>> talking = ws::connect(url + "/echo", talk, options);
      Result<ws::Close> end = co_await std::move(talking);
      EXPECT_EQ(end, ws::Close(1000, ""));
      EXPECT_EQ(host, "localhost" + port);
    });
  }
}

TEST(WebSocketUrl, WhoIsNotTrustedIsNotAsked) {
  test::Served served(http::Scheme::https);
  served([&](std::string at, http::Server&) -> Task<void> {
    ws::ClientOptions options;
    tls::ClientOptions strangers{.system_roots = false,
                                 .roots_pem = test::Authority("Somebody else").pem()};
    http::ConnectorOptions trusts{.tls = test::client_context(std::move(strangers))};
    options.connector = std::make_shared<http::TcpConnector>(trusts);
    ws::ClientTalk talk = [&](ws::Connection&) -> Task<void> {
      ADD_FAILURE() << "it was";
      co_return;
    };
    Task<Result<ws::Close>> talking = ws::connect("wss" + at.substr(5) + "/", talk, options);
    Result<ws::Close> end = co_await std::move(talking);
    EXPECT_FALSE(end.has_value());
    EXPECT_NE(end.error(), ws::Error::refused);
  });
}

}  // namespace
