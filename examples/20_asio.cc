// SPDX-License-Identifier: MIT
// weft on Asio: an echo server whose sockets are Asio's and whose tasks are weft's.
//
// Run: build/release/examples/20_asio
// See: a client that is served, one that is silent and is hung up on, and a server that ends with
//      its nursery.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "weft/adapt/asio.h"
#include "weft/weft.h"
#ifdef WEFT_ASIO_STANDALONE
#include <asio.hpp>
#else
#include <boost/asio.hpp>
namespace asio = boost::asio;
#endif

using namespace weft;
using namespace std::chrono_literals;
using asio::buffer;
using asio::io_context;
using asio::ip::tcp;

// [serve]
// Ends at the end of the stream, or when the peer is silent for too long.
Task<> serve(tcp::socket socket) {
  std::array<char, 1024> bytes;
  while (true) {
    auto got = co_await timeout(250ms, socket.async_read_some(buffer(bytes), use_weft));
    if (!got) {
      std::printf("server: a client was silent for too long\n");
      co_return;
    }
    if (!*got) co_return;  // the socket's error; the end of the stream is one
    auto sent = co_await async_write(socket, buffer(bytes, **got), use_weft);
    if (!sent) co_return;
  }
}

Task<> accept_all(tcp::acceptor& acceptor, Nursery& clients) {
  while (true) {
    Result<tcp::socket> socket = co_await acceptor.async_accept(use_weft);
    if (socket) clients.start(serve(std::move(*socket)));
  }
}
// [/serve]

Task<> say(io_context& context, tcp::endpoint server, std::string text) {
  tcp::socket socket(context);
  or_throw(co_await socket.async_connect(server, use_weft));
  or_throw(co_await async_write(socket, buffer(text), use_weft));
  std::string reply(text.size(), ' ');
  or_throw(co_await async_read(socket, buffer(reply), use_weft));
  std::printf("client: %s\n", reply.c_str());
}

Task<> be_silent(io_context& context, tcp::endpoint server) {
  tcp::socket socket(context);
  or_throw(co_await socket.async_connect(server, use_weft));
  char byte;
  auto got = co_await socket.async_read_some(buffer(&byte, 1), use_weft);
  std::printf("client: %s\n", got ? "?" : "hung up on");
}

Task<> async_main(io_context& context) {
  tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  tcp::endpoint server = acceptor.local_endpoint();
  auto body = [&](Nursery& clients) -> Task<NurseryEnd> {
    clients.start(accept_all(acceptor, clients));
    co_await say(context, server, "hello");
    co_await say(context, server, "world");
    co_await be_silent(context, server);
    co_return cancel;  // the wait in async_accept() ends, and with it the server
  };
  co_await with_nursery(body);
  std::printf("server: closed\n");
}

int main() {
  io_context context;
  run(context, async_main(context));
}
