// SPDX-License-Identifier: MIT
// A reverse proxy with cancellation: bodies pass through as they come, and who leaves takes the question to the upstream along.
//
// Run: build/release/examples/31_http_proxy
// See: an answer through the proxy, an upload that is echoed; then a client that loses patience, and an upstream that is told.
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/http/client.h"
#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/tcp.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [proxy]
class Proxy final : public http::Handler {
 public:
  explicit Proxy(http::Url upstream) : upstream_(std::move(upstream)) {}

  // The one that ends first cancels the other: a client that has gone ends the question to the upstream, wherever it is.
  Task<void> handle_request(const http::Request& request, http::Response& response,
                            http::Connection& connection) override {
    co_await any_of(forward(request, response), connection.until_peer_leaves());
  }

 private:
  Task<void> forward(const http::Request& request, http::Response& response) {
    Result<http::ClientResponse> answer = co_await client_.request(question(request));
    if (!answer) {
      response.status(502);
      response.body("text/plain", answer.error().message() + "\n");
      co_return;
    }
    response.status(answer->status());
    if (auto type = answer->headers().find("content-type")) response.header("content-type", *type);
    std::array<std::byte, 8192> buffer;
    while (true) {
      Result<std::size_t> count = co_await answer->body().read_some(buffer);
      if (or_throw(count) == 0)
        co_return;  // an error cuts our answer off, too: nobody takes a part for the whole
      Result<void> written = co_await response.write(std::span(buffer).first(*count));
      if (!written) co_return;
    }
  }

  http::ClientRequest question(const http::Request& request) {
    http::ClientRequest question(request.method(), or_throw(upstream_.resolve(request.target())));
    // Which fields are handed on is the proxy's decision; those of a connection are not (RFC 9110, 7.6.1).
    for (std::string_view name : {"accept", "content-type"}) {
      if (auto value = request.headers().find(name)) question.headers.add(name, *value);
    }
    auto copy = [&request](http::BodyWriter& out) -> Task<Result<void>> {
      std::array<std::byte, 8192> buffer;
      while (true) {
        std::size_t count = co_await ok(request.body().read_some(buffer));
        if (count == 0) co_return {};
        co_await ok(out.write(std::span(buffer).first(count)));
      }
    };
    if (request.body().length() != 0) {
      question.body = http::RequestBody::stream(copy, request.body().length());
    }
    return question;
  }

  http::Url upstream_;
  http::Client client_{http::ClientOptions{.proxies = {}}};
};
// [/proxy]

void open_upstream(http::Router& routes, Event& was_left) {
  routes.get("/hello", [](const http::Request&, http::Response& response) -> Task<void> {
    response.body("text/plain", "Hello.");
    co_return;
  });
  routes.post("/echo", [](const http::Request& request, http::Response& response) -> Task<void> {
    Result<std::string> body = co_await request.body().read_all();
    response.body("text/plain", or_throw(std::move(body)));
  });
  routes.get(
      "/slow",
      [&](const http::Request&, http::Response&, http::Connection& connection) -> Task<void> {
        co_await connection.until_peer_leaves();
        was_left.set();
      });
}

Task<void> ask(std::string proxy, Event& was_left) {
  http::Client client(http::ClientOptions{.proxies = {}});
  http::ClientResponse hello = or_throw(co_await client.get(proxy + "/hello"));
  std::string text = or_throw(co_await hello.body().read_all());
  std::printf("GET /hello: %d %s\n", hello.status(), text.c_str());

  http::ClientRequest upload(http::Method::post, or_throw(http::Url::parse(proxy + "/echo")), {},
                             "through and back");
  http::ClientResponse echo = or_throw(co_await client.request(std::move(upload)));
  text = or_throw(co_await echo.body().read_all());
  std::printf("POST /echo: %d %s\n", echo.status(), text.c_str());

  auto slow = co_await timeout(50ms, client.get(proxy + "/slow"));
  std::printf("GET /slow: %s\n", slow ? "an answer" : "no patience");
  co_await was_left.wait();
  std::puts("the upstream knows that nobody waits");
}

Task<void> run_all() {
  Event was_left;
  http::Router upstream_routes;
  open_upstream(upstream_routes, was_left);
  net::TcpListener behind = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  net::TcpListener front = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  Proxy proxy(or_throw(http::Url::parse("http://" + or_throw(behind.local_address()).to_string())));
  http::Server upstream_server(upstream_routes), proxy_server(proxy);
  std::string at = "http://" + or_throw(front.local_address()).to_string();
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(upstream_server.serve(behind));
    nursery.start(proxy_server.serve(front));
    co_await ask(at, was_left);
    co_return cancel;
  };
  co_await with_nursery(all);
}

int main() {
  EventLoop loop;
  run(loop, run_all());
}
