// SPDX-License-Identifier: MIT
// HTTP on weft: `weft_server --epoll` or `--io_uring`, then `--tls` for HTTPS or
// `--ws` for WebSocket echo. One worker.
#include <weft/http/server.h>
#include <weft/net/tcp.h>
#include <weft/run/io_context.h>
#include <weft/tls/context.h>
#include <weft/tls/identity.h>
#include <weft/ws/endpoint.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "harness/loopback.h"
#include "http/plaintext.h"

namespace weft::bench {
namespace {

class Plaintext final : public http::Handler {
 public:
  Task<void> handle_request(const http::Request&, http::Response& response,
                            http::Connection&) override {
    response.header("server", "weft");
    response.body("text/plain", std::string(kPlaintext));
    co_return;
  }
};

class Echo final : public ws::Handler {
 public:
  Task<void> on_message(ws::Connection& connection, ws::Message message) override {
    (void)co_await connection.send(message);  // a peer that has gone is the connection's end
  }
};

http::ServerOptions secure() {
  return {.tls =
              or_throw(tls::ServerContext::create({.identity = tls::self_signed({"127.0.0.1"})}))};
}

Task<void> serve(http::Handler& handler, http::ServerOptions options) {
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  announce(or_throw(listener.local_address()).port());
  http::Server server(handler, std::move(options));
  co_await server.serve(listener);
}

int serve_forever(Driver driver, std::string_view what) {
  Plaintext plaintext;
  Echo echo;
  ws::Endpoint endpoint(echo);
  http::Handler& handler = what == "--ws" ? static_cast<http::Handler&>(endpoint) : plaintext;
  http::ServerOptions options;
  if (what == "--tls") options = secure();
  IOContext context({.workers = 1, .driver = driver});
  context.run(serve(handler, std::move(options)));
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  const auto has = [&](int index, std::string_view word) {
    return index < argc && argv[index] == word;
  };
  const bool epoll = has(1, "--epoll");
  if (!epoll && !has(1, "--io_uring")) {
    std::fputs("usage: weft_server --epoll | --io_uring [--tls | --ws] [--info]\n", stderr);
    return 64;
  }
  const char* info = epoll ? "weft::http::Server, epoll; clang " __clang_version__
                           : "weft::http::Server, io_uring; clang " __clang_version__;
  if (answered_info(argc, argv, info)) return 0;
  try {
    return serve_forever(epoll ? weft::Driver::epoll : weft::Driver::io_uring,
                         argc > 2 ? argv[2] : "");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "weft_server: %s\n", e.what());
    return 1;
  }
}
