// SPDX-License-Identifier: MIT
// One server, every kind of handler: TCP, UDP, HTTP and WebSocket, on two workers, with one stop for all.
//
// Run: build/release/examples/36_http_one_server
// See: each handler's answer; then the stop: an answer that is under way arrives, a WebSocket is told, and nothing is left.
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/http/client.h"
#include "weft/http/router.h"
#include "weft/http/service.h"
#include "weft/net/server.h"
#include "weft/weft.h"
#include "weft/ws/client.h"
#include "weft/ws/endpoint.h"
#include "weft/ws/handler.h"

using namespace weft;
using namespace std::chrono_literals;

// [handlers]
// A handler is a class with a virtual that returns a Task. It is called on the loops of all workers: what it keeps for
// itself must stand that.
class Lines final : public net::TcpHandler {
  Task<void> handle_connection(net::TcpStream peer) override {
    std::array<std::byte, 256> buffer;
    while (true) {
      Result<std::size_t> count = co_await peer.read_some(buffer);
      if (!count || *count == 0) co_return;
      Result<void> sent = co_await net::write_all(peer, std::span(buffer).first(*count));
      if (!sent) co_return;
    }
  }
};

class Pings final : public net::UdpHandler {
  Task<void> handle_datagram(const net::Datagram& datagram, net::DatagramSender& sender) override {
    Result<void> sent = co_await sender.send_to(datagram.bytes, datagram.peer);
    or_throw(sent);  // what a handler throws is logged, and ends this datagram only
  }
};

class Pages final : public http::Handler {
 public:
  explicit Pages(Event& begun) : begun_(begun) {}
  Task<void> handle_request(const http::Request& request, http::Response& response,
                            http::Connection&) override {
    if (request.path() == "/slow") {
      begun_.set();
      co_await sleep_for(50ms);
    }
    response.body("text/plain", "a page");
  }

 private:
  Event& begun_;
};

class Echo final : public ws::Handler {
  Task<void> on_message(ws::Connection& socket, ws::Message message) override {
    Result<void> sent = co_await socket.send(message);
    or_throw(sent);
  }
};
// [/handlers]

struct Places {
  net::Address tcp, udp, web;
};

Task<void> ask_each(Places at) {
  net::TcpStream stream = or_throw(co_await net::TcpStream::connect(at.tcp));
  std::array<std::byte, 256> buffer;
  or_throw(co_await net::write_all(stream, "a line"));
  std::size_t count = or_throw(co_await stream.read_some(buffer));
  std::printf("TCP: %.*s\n", static_cast<int>(count), reinterpret_cast<char*>(buffer.data()));

  net::UdpSocket socket = or_throw(net::UdpSocket::connect(at.udp));
  or_throw(co_await socket.send(std::as_bytes(std::span(std::string_view("a datagram")))));
  count = or_throw(co_await socket.receive_from(buffer)).bytes.size();
  std::printf("UDP: %.*s\n", static_cast<int>(count), reinterpret_cast<char*>(buffer.data()));

  http::Client client(http::ClientOptions{.proxies = {}});
  http::ClientResponse page = or_throw(co_await client.get("http://" + at.web.to_string() + "/"));
  std::string text = or_throw(co_await page.body().read_all());
  std::printf("HTTP: %d %s\n", page.status(), text.c_str());
}

// A page and a WebSocket that are under way when the server is told to stop.
Task<void> be_there_at_the_stop(Places at, net::Server& server, Event& begun) {
  std::string slow_answer, last_word;
  auto slow = [&]() -> Task<void> {
    http::Client client(http::ClientOptions{.proxies = {}});
    http::ClientResponse page =
        or_throw(co_await client.get("http://" + at.web.to_string() + "/slow"));
    slow_answer = or_throw(co_await page.body().read_all());
  };
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    or_throw(co_await socket.send("a message"));
    ws::Message message = or_throw(co_await socket.receive());
    std::printf("WebSocket: %s\n", message.data.c_str());
    co_await begun.wait();
    server.stop();
    Result<ws::Message> none = co_await socket.receive();
    last_word = none ? "another message" : socket.closed()->reason;
  };
  auto chat = [&]() -> Task<void> {
    Task<Result<ws::Close>> talking = ws::connect("ws://" + at.web.to_string() + "/socket", talk);
    or_throw(co_await std::move(talking));
  };
  co_await all_of(slow(), chat());
  std::printf("at the stop, HTTP: %s; WebSocket: %s\n", slow_answer.c_str(), last_word.c_str());
}

int main() {
  Event begun;
  Lines lines;
  Pings pings;
  Pages pages(begun);
  Echo echo;
  ws::Endpoint endpoint(echo);
  // [register]
  http::Router routes;
  routes.get("/", pages);
  routes.get("/slow", pages);
  routes.get("/socket", endpoint);  // a WebSocket begins as a request: its handler is a route

  net::Server server({.workers = 2, .drain = 5s});
  const net::Address any = net::Address::loopback_v4(0);
  Places at;
  at.tcp = or_throw(server.listen_tcp(any, lines));
  at.udp = or_throw(server.listen_udp(any, pings));
  at.web = or_throw(http::listen(server, any, routes));  // with TLS: {.tls = context}

  IOContext ctx({.workers = 2});
  auto visit = [&]() -> Task<void> {
    co_await ask_each(at);
    co_await be_there_at_the_stop(at, server, begun);
  };
  auto both = [&]() -> Task<void> { co_await all_of(server.run(), visit()); };
  ctx.run(both());
  // [/register]
  std::puts("all have gone");
}
