// SPDX-License-Identifier: MIT
// Echo on Boost.Asio: awaitables on one io_context, run by one thread; its epoll reactor.
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/version.hpp>
#include <utility>

#include "harness/loopback.h"

namespace weft::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

asio::awaitable<void> echo(tcp::socket socket) {
  std::array<char, kReadBufferBytes> buffer;
  for (;;) {
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    const std::size_t got = co_await socket.async_read_some(asio::buffer(buffer), token);
    if (error) co_return;
    co_await asio::async_write(socket, asio::buffer(buffer, got), token);
    if (error) co_return;
  }
}

asio::awaitable<void> accept_all(tcp::acceptor acceptor) {
  for (;;) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    socket.set_option(tcp::no_delay(true));
    asio::co_spawn(acceptor.get_executor(), echo(std::move(socket)), asio::detached);
  }
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (answered_info(argc, argv,
                    "Boost.Asio awaitable, Boost " BOOST_LIB_VERSION
                    ", io_context(1), epoll; clang " __clang_version__))
    return 0;
  asio::io_context context(1);
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  const auto port = acceptor.local_endpoint().port();
  asio::co_spawn(context, accept_all(std::move(acceptor)), asio::detached);
  announce(port);
  context.run();
}
