// SPDX-License-Identifier: MIT
// Redis in suite durable: SET key NX PX, then DEL. Nothing of it is on a disk.
#include <weft/net/stream.h>
#include <weft/net/tcp.h>
#include <weft/weft.h>

#include <span>
#include <string>
#include <string_view>

#include "durable/lock_bench.h"
#include "harness/contestant.h"

namespace weft::bench {
namespace {

class RedisServer {
 public:
  RedisServer()
      : port_(free_port()),
        server_({"redis-server", "--port", std::to_string(port_), "--bind", "127.0.0.1", "--dir",
                 scratch_.path(), "--save", "", "--appendonly", "no", "--loglevel", "warning"}) {
    await_port(port_);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  Scratch scratch_;
  std::uint16_t port_;
  Spawned server_;
};

Task<void> ask(net::TcpStream& stream, std::string_view command, std::string_view wanted) {
  std::string answer(wanted.size(), '\0');
  std::span<const std::byte> request = std::as_bytes(std::span(command));
  or_throw(co_await net::write_all(stream, request));
  std::span<std::byte> rest = std::as_writable_bytes(std::span(answer));
  or_throw(co_await net::read_exactly(stream, rest));
  if (answer != wanted) throw std::runtime_error("redis answers " + answer);
}

std::string pair(std::size_t n) {
  static RedisServer server;
  std::string result;
  auto root = [&]() -> Task<void> {
    net::TcpStream stream =
        or_throw(co_await net::TcpStream::connect(net::Address::loopback_v4(server.port())));
    Stopwatch watch;
    for (std::size_t i = 0; i < n; ++i) {
      co_await ask(stream, "SET bench 1 NX PX 15000\r\n", "+OK\r\n");
      co_await ask(stream, "DEL bench\r\n", ":1\r\n");
    }
    result = watch.per_operation(n);
  };
  EventLoop loop;
  run(loop, root());
  return result;
}

}  // namespace
}  // namespace weft::bench

int main() {
  using namespace weft::bench;
  constexpr Measure kMeasures[] = {{"pair", pair}};
  return serve("Redis, SET NX PX and DEL, in memory only", kMeasures);
}
