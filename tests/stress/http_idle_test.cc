// SPDX-License-Identifier: MIT
// Ten thousand connections that have asked once and wait: what each holds of memory, and that the server still answers.
//
// The clients are another process, this program again: how many descriptors one may have is often not ours to raise. They
// go when their standard input ends.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/drivers.h"
#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/tcp.h"
#include "weft/weft.h"

namespace {

using namespace weft;

constexpr std::size_t kConnections = 10'000;
constexpr std::size_t kBytesMax = 4096;  // of resident memory each
constexpr const char* kClientOf = "WEFT_TEST_CLIENT_OF";
constexpr std::string_view kQuestion =
    "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: idle\r\n\r\n";

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void raise_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ASSERT_GE(limit.rlim_cur, kConnections + 100) << "RLIMIT_NOFILE does not allow them";
}

Task<Result<void>> ask(net::TcpStream& stream) {
  co_await ok(net::write_all(stream, kQuestion));
  std::array<std::byte, 1024> buffer;
  std::string answer;
  while (!answer.ends_with("Hello.\n")) {
    std::size_t count = co_await ok(stream.read_some(buffer));
    if (count == 0) co_return std::unexpected(std::make_error_code(std::errc::connection_reset));
    answer.append(reinterpret_cast<const char*>(buffer.data()), count);
  }
  co_return {};
}

Task<void> be_clients(net::Address where) {
  std::vector<net::TcpStream> streams;
  for (std::size_t i = 0; i < kConnections; ++i) {
    Result<net::TcpStream> stream = co_await net::TcpStream::connect(where);
    streams.push_back(or_throw(std::move(stream)));
    Result<void> asked = co_await ask(streams.back());
    or_throw(asked);
  }
  std::array<char, 16> end;
  static_cast<void>(!::write(STDOUT_FILENO, "ready\n", 6));
  while (::read(STDIN_FILENO, end.data(), end.size()) > 0) {
  }
}

ProcessOptions clients_of(const net::Address& where) {
  // One test of this program, whichever: it sees what it is to be.
  ProcessOptions options("/proc/self/exe",
                         {"--gtest_brief=1", "--gtest_filter=Drivers/HttpIdle.*/epoll"});
  options.environment.emplace();
  for (char** each = environ; *each; ++each) options.environment->emplace_back(*each);
  options.environment->push_back(std::string(kClientOf) + "=" + std::to_string(where.port()));
  options.in = Redirect::pipe();
  options.out = Redirect::pipe();
  return options;
}

Task<void> wait_until_ready(Process& clients) {
  std::string said;
  std::array<std::byte, 256> buffer;
  while (said.find("ready\n") == said.npos) {
    Result<std::size_t> count = co_await clients.out.read(buffer);
    if (or_throw(count) == 0) throw std::runtime_error("the clients have ended: " + said);
    said.append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
}

struct HttpIdle : ::testing::TestWithParam<Driver> {};

TEST_P(HttpIdle, TenThousandConnectionsHoldFourKilobytesEachAtMost) {
  raise_limit();
  EventLoop loop({.driver = GetParam()});
  if (const char* port = std::getenv(kClientOf)) {
    run(loop, be_clients(net::Address::loopback_v4(static_cast<std::uint16_t>(std::atoi(port)))));
    return;
  }
  http::Router routes;
  routes.get("/", [](const http::Request&, http::Response& response) -> Task<void> {
    response.body("text/plain", std::string(2000, ' ') + "Hello.\n");  // not to be kept
    co_return;
  });
  http::Server server(routes, {.limits = {.connections_max = kConnections + 10}});
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  net::Address where = or_throw(listener.local_address());
  auto test = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(server.serve(listener));
    Result<net::TcpStream> connected = co_await net::TcpStream::connect(where);
    net::TcpStream other = or_throw(std::move(connected));
    Result<void> asked = co_await ask(other);
    EXPECT_TRUE(asked);
    std::size_t before = resident_bytes();
    Process clients = or_throw(Process::spawn(clients_of(where)));
    co_await wait_until_ready(clients);
    EXPECT_EQ(server.connections(), kConnections + 1);
    std::size_t each = (resident_bytes() - before) / kConnections;
    std::printf("%zu bytes of resident memory per idle connection by %s\n", each,
                std::string(to_string(GetParam())).c_str());
    EXPECT_LE(each, kBytesMax);
    asked = co_await ask(other);
    EXPECT_TRUE(asked);
    clients.in.close();
    Result<ExitStatus> ended = co_await clients.wait();
    EXPECT_TRUE(or_throw(ended).success());
    co_return cancel;
  };
  auto body = [&]() -> Task<void> { co_await with_nursery(test); };
  run(loop, body());
  EXPECT_EQ(server.connections(), 0u);
}
// Not by poll, which looks at all of them each time: ten thousand that come one after the other take it minutes.
std::vector<Driver> drivers_for_many() {
  std::vector<Driver> all = test::drivers_here();
  std::erase(all, Driver::poll);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Drivers, HttpIdle, ::testing::ValuesIn(drivers_for_many()),
                         test::driver_name);

}  // namespace
