// SPDX-License-Identifier: MIT
// A reverse proxy with cancellation: bodies pass through as they come, and who leaves takes the question to the upstream along.
//
// Run: build/release/examples/31_http_proxy
// See: an answer through the proxy, an upload that is echoed; targets that name another server, which is not asked; then a
// client that loses patience, and an upstream that is told.
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
  // "http://example.org:8080"
  explicit Proxy(std::string upstream) : upstream_(std::move(upstream)) {}

  // The one that ends first cancels the other: a client that has gone ends the question to the upstream, wherever it is.
  Task<void> handle_request(const http::Request& request, http::Response& response,
                            http::Connection& connection) override {
    co_await any_of(forward(request, response), connection.until_peer_leaves());
  }

 private:
  Task<void> forward(const http::Request& request, http::Response& response) {
    // A target may name a server of its own: "http://10.0.0.1/", or "//10.0.0.1/". Only its path and its query are handed on,
    // behind an origin that stands fast: who asks does not choose who is asked.
    std::string where = upstream_ + std::string(request.path());
    if (!request.query().empty()) where.append("?").append(request.query());
    Result<http::Url, http::UrlError> url = http::Url::parse(where);
    if (!request.path().starts_with('/') || !url) {
      response.status(400);
      co_return;
    }
    Result<http::ClientResponse> answer =
        co_await client_.request(question(request, std::move(*url)));
    if (!answer) {
      response.status(502);
      response.body("text/plain", answer.error().message() + "\n");
      co_return;
    }
    response.status(answer->status());
    for (std::string_view name : {"content-type", "location"}) {
      if (auto value = answer->headers().find(name)) response.header(name, *value);
    }
    std::array<std::byte, 8192> buffer;
    while (true) {
      Result<std::size_t> count = co_await answer->body().read_some(buffer);
      if (or_throw(count) == 0)
        co_return;  // an error cuts our answer off, too: nobody takes a part for the whole
      Result<void> written = co_await response.write(std::span(buffer).first(*count));
      if (!written) co_return;
    }
  }

  http::ClientRequest question(const http::Request& request, http::Url where) {
    http::ClientRequest question(request.method(), std::move(where));
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

  std::string upstream_;
  // A redirect is the client's to follow, and not ours: it may lead to servers that only we can reach.
  http::Client client_{http::ClientOptions{.limits = {.redirects_max = 0}, .proxies = {}}};
};
// [/proxy]

void open_upstream(http::Router& routes, Event& was_left) {
  routes.get("/hello", [](const http::Request&, http::Response& response) -> Task<void> {
    response.body("text/plain", "Hello.");
    co_return;
  });
  routes.get("/moved", [](const http::Request& request, http::Response& response) -> Task<void> {
    response.status(302);
    response.header("location", "http://" + request.query_value("to").value_or("") + "/hello");
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

// By the two forms of a target that name a server: RFC 3986, 4.2 and RFC 9112, 3.2.2.
Task<void> ask_elsewhere(std::string proxy, std::string elsewhere) {
  http::Client client(http::ClientOptions{.proxies = {}});
  http::ClientResponse path = or_throw(co_await client.get(proxy + "//" + elsewhere + "/hello"));
  std::printf("GET //elsewhere/hello: %d\n", path.status());
  http::ClientOptions through{.proxies = {}};
  through.proxies.http = proxy;
  http::Client careless(std::move(through));
  http::ClientResponse whole = or_throw(co_await careless.get("http://" + elsewhere + "/hello"));
  std::string text = or_throw(co_await whole.body().read_all());
  std::printf("GET http://elsewhere/hello: %d %s\n", whole.status(), text.c_str());
  http::Client curious(http::ClientOptions{.limits = {.redirects_max = 0}, .proxies = {}});
  http::ClientResponse moved = or_throw(co_await curious.get(proxy + "/moved?to=" + elsewhere));
  std::printf("GET /moved: %d %s\n", moved.status(),
              moved.headers().find("location") ? "to elsewhere" : "to nowhere");
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
  net::TcpListener inside = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  Proxy proxy("http://" + or_throw(behind.local_address()).to_string());
  int asked_inside = 0;
  http::Router inside_routes;
  inside_routes.get("/hello", [&](const http::Request&, http::Response&) -> Task<void> {
    ++asked_inside;
    co_return;
  });
  http::Server upstream_server(upstream_routes), proxy_server(proxy), inside_server(inside_routes);
  std::string at = "http://" + or_throw(front.local_address()).to_string();
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(upstream_server.serve(behind));
    nursery.start(proxy_server.serve(front));
    nursery.start(inside_server.serve(inside));
    co_await ask_elsewhere(at, or_throw(inside.local_address()).to_string());
    std::printf("elsewhere was asked %d times\n", asked_inside);
    co_await ask(at, was_left);
    co_return cancel;
  };
  co_await with_nursery(all);
}

int main() {
  EventLoop loop;
  run(loop, run_all());
}
