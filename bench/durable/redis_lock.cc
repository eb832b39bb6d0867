// SPDX-License-Identifier: MIT
// Redis in suite durable: SET key NX PX, then DEL. Nothing of it is on a disk.
#include <weft/net/stream.h>
#include <weft/net/tcp.h>
#include <weft/weft.h>

#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

constexpr std::size_t kProcesses = 4;
constexpr std::string_view kLock = "SET bench 1 NX PX 15000\r\n", kTaken = "+OK\r\n",
                           kUnlock = "DEL bench\r\n", kFree = ":1\r\n";

std::uint16_t port() {
  static RedisServer server;
  return server.port();
}

// Runs body(stream) with a connection.
template <class Body>
void with_connection(std::uint16_t at, Body body) {
  auto root = [&]() -> Task<void> {
    net::TcpStream stream =
        or_throw(co_await net::TcpStream::connect(net::Address::loopback_v4(at)));
    co_await body(stream);
  };
  EventLoop loop;
  run(loop, root());
}

std::string pair(std::size_t n) {
  std::string result;
  auto body = [&](net::TcpStream& stream) -> Task<void> {
    Stopwatch watch;
    for (std::size_t i = 0; i < n; ++i) {
      co_await ask(stream, kLock, kTaken);
      co_await ask(stream, kUnlock, kFree);
    }
    result = watch.per_operation(n);
  };
  with_connection(port(), body);
  return result;
}

std::string pair_p99(std::size_t n) {
  std::vector<double> samples;
  auto body = [&](net::TcpStream& stream) -> Task<void> {
    for (std::size_t i = 0; i < n; ++i) {
      auto start = std::chrono::steady_clock::now();
      co_await ask(stream, kLock, kTaken);
      co_await ask(stream, kUnlock, kFree);
      samples.push_back(
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
              .count());
    }
  };
  with_connection(port(), body);
  return percentile(samples, 0.99);
}

// There is no queue: who does not get it asks again after a millisecond, as its clients do.
Task<void> lock(net::TcpStream& stream) {
  constexpr std::string_view kNot = "$-1\r\n";  // as long as kTaken
  static_assert(kNot.size() == kTaken.size());
  while (true) {
    std::string answer(kTaken.size(), '\0');
    std::span<const std::byte> request = std::as_bytes(std::span(kLock));
    or_throw(co_await net::write_all(stream, request));
    std::span<std::byte> rest = std::as_writable_bytes(std::span(answer));
    or_throw(co_await net::read_exactly(stream, rest));
    if (answer == kTaken) co_return;
    co_await sleep_for(std::chrono::milliseconds(1));
  }
}

std::string handover(std::size_t n) {
  std::size_t each = n / kProcesses;
  double taken = 0;
  auto body = [&](net::TcpStream& stream) -> Task<void> {
    co_await lock(stream);
    Event begin;
    auto release = [&]() -> Task<void> {
      co_await begin.wait();
      co_await ask(stream, kUnlock, kFree);
    };
    auto work = [&] {
      std::vector<std::string> command{"/proc/self/exe", "--worker", std::to_string(port()),
                                       std::to_string(each)};
      auto set = [](void* event) { static_cast<Event*>(event)->set(); };
      taken = time_workers(command, kProcesses, set, &begin);
    };
    co_await all_of(release(), blocking(work));
  };
  with_connection(port(), body);
  return wall_only(taken / static_cast<double>(each * kProcesses));
}

int work(std::uint16_t at, std::size_t count) {
  auto body = [&](net::TcpStream& stream) -> Task<void> {
    say_ready();
    for (std::size_t i = 0; i < count; ++i) {
      co_await lock(stream);
      co_await ask(stream, kUnlock, kFree);
    }
  };
  with_connection(at, body);
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (argc == 4 && std::string_view(argv[1]) == "--worker") {
    return work(static_cast<std::uint16_t>(std::atoi(argv[2])), std::strtoul(argv[3], nullptr, 10));
  }
  constexpr Measure kMeasures[] = {{"pair", pair}, {"pair_p99", pair_p99}, {"handover", handover}};
  return serve("Redis, SET NX PX and DEL, nothing on a disk", kMeasures);
}
