// SPDX-License-Identifier: MIT
// One net::Server on which each kind of handler is registered: TcpHandler, UdpHandler, http::Handler, ws::Handler.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/http_peers.h"
#include "support/loop_fixture.h"
#include "weft/http/service.h"
#include "weft/net/server.h"
#include "weft/weft.h"
#include "weft/ws/client.h"
#include "weft/ws/endpoint.h"
#include "weft/ws/error.h"
#include "weft/ws/handler.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using test::direct;
using test::fetch;
using test::LogCapture;
using Clock = std::chrono::steady_clock;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class TcpEcho final : public net::TcpHandler {
 public:
  Task<void> handle_connection(net::TcpStream peer) override {
    std::array<std::byte, 64> buffer;
    while (true) {
      Result<std::size_t> count = co_await peer.read_some(buffer);
      if (!count || *count == 0) co_return;
      Result<void> sent = co_await net::write_all(peer, std::span(buffer).first(*count));
      if (!sent) co_return;
    }
  }
};

class UdpEcho final : public net::UdpHandler {
 public:
  Task<void> handle_datagram(const net::Datagram& datagram, net::DatagramSender& sender) override {
    Result<void> sent = co_await sender.send_to(datagram.bytes, datagram.peer);
    or_throw(sent);
  }
};

// Answers with where it was called; "/slow" when it is told to.
class Web final : public http::Handler {
 public:
  Task<void> handle_request(const http::Request& request, http::Response& response,
                            http::Connection& connection) override {
    if (request.path() == "/slow") {
      struct Mark {
        std::atomic<bool>& left;
        ~Mark() { left = true; }
      } mark{has_left};
      begun.set();
      co_await go_on.wait();
    }
    threads_seen(std::this_thread::get_id());
    response.body("text/plain", connection.is_encrypted() ? "secret" : "plain");
  }
  std::size_t threads() {
    std::lock_guard lock(mutex_);
    return threads_.size();
  }

  Event begun, go_on;
  std::atomic<bool> has_left = false;

 private:
  void threads_seen(std::thread::id id) {
    std::lock_guard lock(mutex_);
    threads_.insert(id);
  }
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
};

class WsEcho final : public ws::Handler {
 public:
  Task<void> on_message(ws::Connection& socket, ws::Message message) override {
    [[maybe_unused]] Result<void> sent = co_await socket.send(message);
  }
  Task<void> on_close(ws::Connection&, ws::CloseCode code, std::string_view) override {
    ++closed_with[code == ws::close_codes::normal ? 0 : 1];
    co_return;
  }
  std::array<std::atomic<int>, 2> closed_with{};  // 1000, others
};

Task<std::string> ask_tcp(net::Address where, std::string question) {
  net::TcpStream peer = or_throw(co_await net::TcpStream::connect(where));
  Result<void> sent = co_await net::write_all(peer, question);
  or_throw(sent);
  std::string answer(question.size(), '\0');
  Result<void> got = co_await net::read_exactly(peer, std::as_writable_bytes(std::span(answer)));
  or_throw(got);
  co_return answer;
}
Task<std::string> ask_udp(net::Address where, std::string question) {
  net::UdpSocket socket = or_throw(net::UdpSocket::connect(where));
  Result<void> sent = co_await socket.send(as_bytes(question));
  or_throw(sent);
  std::array<std::byte, 64> buffer;
  Result<net::Datagram> got = co_await socket.receive_from(buffer);
  co_return as_text(or_throw(got).bytes);
}
ws::ClientOptions trusting() {
  ws::ClientOptions options;
  options.connector = direct().connector;
  return options;
}
Task<std::string> ask_ws(std::string url, std::string question) {
  std::string answer;
  ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
    Result<void> sent = co_await socket.send(question);
    or_throw(sent);
    Result<ws::Message> message = co_await socket.receive();
    answer = or_throw(std::move(message)).data;
  };
  ws::ClientOptions options = trusting();
  Task<Result<ws::Close>> talking = ws::connect(std::move(url), talk, std::move(options));
  Result<ws::Close> end = co_await std::move(talking);
  EXPECT_EQ(end, ws::Close(1000, ""));
  co_return answer;
}

// Registers one of each, HTTP and WebSocket in the clear and over TLS.
class All {
 public:
  explicit All(net::ServerOptions options) : server(options), endpoint_(socket) {
    routes.get("/", web);
    routes.get("/slow", web);
    routes.get("/socket", endpoint_);
    const net::Address any = net::Address::loopback_v4(0);
    tcp = or_throw(server.listen_tcp(any, tcp_echo_));
    udp = or_throw(server.listen_udp(any, udp_echo_));
    http = or_throw(http::listen(server, any, routes));
    https = or_throw(http::listen(server, any, routes, {.tls = test::server_context()}));
  }
  [[nodiscard]] std::string at(std::string_view scheme) const {
    const net::Address& where = scheme.ends_with("s") && scheme != "ws" ? https : http;
    return std::string(scheme) + "://" + where.to_string();
  }

  net::Server server;
  http::Router routes;
  Web web;
  WsEcho socket;
  net::Address tcp, udp, http, https;

 private:
  TcpEcho tcp_echo_;
  UdpEcho udp_echo_;
  ws::Endpoint endpoint_;
};

Task<void> ask_all(All& all) {
  EXPECT_EQ(co_await ask_tcp(all.tcp, "tcp"), "tcp");
  EXPECT_EQ(co_await ask_udp(all.udp, "udp"), "udp");
  http::Client client(direct());
  EXPECT_EQ(co_await fetch(client, all.at("http") + "/"), "200 plain");
  EXPECT_EQ(co_await fetch(client, all.at("https") + "/"), "200 secret");
  EXPECT_EQ(co_await ask_ws(all.at("ws") + "/socket", "ws"), "ws");
  EXPECT_EQ(co_await ask_ws(all.at("wss") + "/socket", "wss"), "wss");
}

// One stop for all: what is being handled is answered, a WebSocket is told, and nothing listens any more.
TEST(OneServer, ServesEveryKindOfHandlerAndDrainsThemTogether) {
  for (unsigned workers : {1u, 2u}) {
    IOContext ctx{{.workers = workers}};
    All all({.workers = workers});
    for (net::Address where : {all.tcp, all.udp, all.http, all.https}) EXPECT_NE(where.port(), 0);
    Event is_open;
    ws::ClientTalk stay = [&](ws::Connection& socket) -> Task<void> {
      is_open.set();
      Result<ws::Message> none = co_await socket.receive();
      EXPECT_EQ(none.error(), ws::Error::closed);
    };
    auto guest = [&]() -> Task<void> {
      Task<Result<ws::Close>> talking = ws::connect(all.at("ws") + "/socket", stay);
      Result<ws::Close> end = co_await std::move(talking);
      EXPECT_EQ(end, ws::Close(1001, "the server stops"));
    };
    auto slow = [&]() -> Task<void> {
      http::Client client(direct());
      EXPECT_EQ(co_await fetch(client, all.at("https") + "/slow"), "200 secret");
    };
    auto visit = [&]() -> Task<void> {
      co_await ask_all(all);
      co_await is_open.wait();
      co_await all.web.begun.wait();
      all.server.stop();
      Result<net::TcpStream> late = co_await net::TcpStream::connect(all.http);
      // Until each worker has heard. Whom its listener had in its queue is reset.
      while (late || late.error() == std::errc::connection_reset) {
        late = co_await net::TcpStream::connect(all.http);
      }
      EXPECT_EQ(late.error(), std::errc::connection_refused);
      all.web.go_on.set();
    };
    auto both = [&]() -> Task<void> {
      co_await all_of(all.server.run(), visit(), guest(), slow());
    };
    ctx.run(both());
    EXPECT_EQ(all.socket.closed_with[0], 2);
    EXPECT_EQ(all.socket.closed_with[1], 1);
  }
}

TEST(OneServer, EveryWorkerAnswers) {
  IOContext ctx{{.workers = 2}};
  All all({.workers = 2});
  auto visit = [&]() -> Task<void> {
    // The kernel chooses by a hash of the peer's port: that 64 connections all meet one worker is one in 10^19.
    for (int i = 0; i < 64; ++i) {
      http::Client client(direct());
      EXPECT_EQ(co_await fetch(client, all.at("http") + "/"), "200 plain");
    }
    all.server.stop();
  };
  auto both = [&]() -> Task<void> { co_await all_of(all.server.run(), visit()); };
  ctx.run(both());
  EXPECT_EQ(all.web.threads(), 2u);
}

// The server's drain counts, and not http::Limits::drain_timeout, which is 10 s; a cancel of run() waits for neither.
TEST(OneServer, WhatDoesNotEndInTimeIsCancelled) {
  for (bool stops : {true, false}) {
    LogCapture log;
    IOContext ctx{{.workers = 2}};
    All all({.workers = 2, .drain = stops ? 20ms : 1h});
    Clock::time_point ended;
    auto slow = [&]() -> Task<void> {
      http::Client client(direct());
      std::string got = co_await fetch(client, all.at("http") + "/slow");
      EXPECT_NE(got, "200 plain");
      co_await suspend_forever();
    };
    auto visit = [&]() -> Task<void> {
      co_await all.web.begun.wait();
      ended = Clock::now();
      if (!stops) co_return;
      all.server.stop();
      co_await suspend_forever();
    };
    auto both = [&]() -> Task<void> { co_await any_of(all.server.run(), visit(), slow()); };
    ctx.run(both());
    EXPECT_LT(Clock::now() - ended, 5s);
    EXPECT_TRUE(all.web.has_left);
  }
}

TEST(OneServer, AnAddressThatIsTakenIsAnError) {
  net::Server server;
  http::Router routes;
  net::Address where = or_throw(http::listen(server, net::Address::loopback_v4(0), routes));
  EXPECT_EQ(http::listen(server, where, routes).error(), std::errc::address_in_use);
}

}  // namespace
