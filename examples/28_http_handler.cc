// SPDX-License-Identifier: MIT
// A handler as a class: it reads what the peer sends, waits a little, and answers with it. Beside it, functions behind a
// Router.
//
// Run: build/release/examples/28_http_handler
// See: four requests on one connection, and their answers in order.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/memory_stream.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [handler]
class MyHTTPHandler final : public http::Handler {
 public:
  Task<void> handle_request(const http::Request& request, http::Response& response,
                            http::Connection&) override {
    std::array<std::byte, 1024> buffer;
    Result<std::size_t> count = co_await request.body().read_some(buffer);
    co_await sleep_for(10ms);
    response.status(200);
    response.body("text/plain",
                  std::string(reinterpret_cast<char*>(buffer.data()), or_throw(count)));
  }
};
// [/handler]

// [function]
Task<void> greet(const http::Request& request, http::Response& response) {
  response.body("text/plain", "Hello, " + request.parameter("name") + ".");
  co_return;
}

Task<void> count(const http::Request&, http::Response& response) {
  for (int i = 1; i <= 3; ++i) {
    Result<void> written = co_await response.write(std::to_string(i) + " ");
    if (!written) co_return;  // the peer has gone
  }
}
// [/function]

// A client in eighty columns.
Task<void> ask(net::MemoryStream& stream, std::string request) {
  Result<void> sent = co_await net::write_all(stream, request);
  or_throw(sent);
  std::array<std::byte, 4096> buffer;
  Result<std::size_t> got = co_await stream.read_some(buffer);
  std::string answer(reinterpret_cast<char*>(buffer.data()), or_throw(got));
  std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  for (char& c : body) {
    if (c == '\r' || c == '\n') c = '|';
  }
  std::printf("%s -> %s: %s\n", request.substr(0, request.find(" HTTP")).c_str(),
              answer.substr(9, 3).c_str(), body.c_str());
}

Task<void> serve_and_ask() {
  MyHTTPHandler echo;
  http::Router routes;
  routes.post("/echo", echo);
  routes.get("/hello/{name}", greet);
  routes.get("/count", count);
  http::Server server(routes);

  auto [client, served] = net::memory_streams();
  net::MemoryStream stream = std::move(client);
  http::StreamTransport transport(std::move(served));
  auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(server.serve_connection(transport));
    co_await ask(stream, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nweft");
    co_await ask(stream, "GET /hello/you HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await ask(stream, "GET /count HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await ask(stream, "DELETE /count HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.close();
    co_return join;
  };
  co_await with_nursery(both);
}

int main() {
  EventLoop loop;
  run(loop, serve_and_ask());
}
