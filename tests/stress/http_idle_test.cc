// SPDX-License-Identifier: MIT
// Ten thousand connections that have asked once and wait: what each holds of memory, and that the server still answers. The same of
// WebSocket, after one echo.
//
// The clients are another process, this program again: how many descriptors one may have is often not ours to raise. They
// go when their standard input ends.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/drivers.h"
#include "weft/core/frame_pool.h"
#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/tcp.h"
#include "weft/weft.h"
#include "weft/ws/endpoint.h"

namespace {

using namespace weft;

constexpr std::size_t kConnections = 10'000;
// The frames of a build that is not optimised, or of g++, are larger; a buffer that is kept is seen there, too.
#if defined(NDEBUG) && defined(__clang__)
constexpr std::size_t kWebSocketBytesMax = 9 * 1024;
#else
constexpr std::size_t kWebSocketBytesMax = 16 * 1024;
#endif
constexpr const char* kClientOf = "WEFT_TEST_CLIENT_OF";

// What one is asked, and what its answer ends with, before it waits.
struct Talk {
  std::string question, end;
};
struct Kind {
  const char* name;
  std::size_t bytes_max;  // of resident memory each
  std::vector<Talk> talks;
};
// Answers, and the echo, are of such sizes that whoever kept them would be seen to.
Kind kind_of(std::string_view name) {
  if (name == "requests") {
    return {
        .name = "requests",
        .bytes_max = 4096,
        .talks = {{"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: idle\r\n\r\n", "Hello.\n"}}};
  }
  std::string text(2000, '.');
  std::string frame("\x81\xfe\x07\xd0\0\0\0\0", 8);  // masked, by a mask that changes nothing
  return {.name = "WebSockets",
          .bytes_max = kWebSocketBytesMax,
          .talks = {{"GET /socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                     "\r\n\r\n"},
                    {frame + text, text}}};
}

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

Task<Result<void>> ask(net::TcpStream& stream, const Kind& kind) {
  for (const Talk& talk : kind.talks) {
    co_await ok(net::write_all(stream, talk.question));
    std::array<std::byte, 4096> buffer;
    std::string answer;
    while (!answer.ends_with(talk.end)) {
      std::size_t count = co_await ok(stream.read_some(buffer));
      if (count == 0) co_return std::unexpected(std::make_error_code(std::errc::connection_reset));
      answer.append(reinterpret_cast<const char*>(buffer.data()), count);
    }
  }
  co_return {};
}

Task<void> be_clients(net::Address where, const Kind& kind) {
  std::vector<net::TcpStream> streams;
  for (std::size_t i = 0; i < kConnections; ++i) {
    Result<net::TcpStream> stream = co_await net::TcpStream::connect(where);
    streams.push_back(or_throw(std::move(stream)));
    Result<void> asked = co_await ask(streams.back(), kind);
    or_throw(asked);
  }
  std::array<char, 16> end;
  static_cast<void>(!::write(STDOUT_FILENO, "ready\n", 6));
  while (::read(STDIN_FILENO, end.data(), end.size()) > 0) {
  }
}

ProcessOptions clients_of(const net::Address& where, const Kind& kind) {
  // The same test of this program: it sees what it is to be.
  std::string filter = std::string("--gtest_filter=*/") + kind.name + "OnEpoll";
  ProcessOptions options("/proc/self/exe", {"--gtest_brief=1", filter});
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

struct Case {
  const char* kind;
  Driver driver;
};
struct HttpIdle : ::testing::TestWithParam<Case> {};

TEST_P(HttpIdle, TenThousandConnectionsHoldFewBytesEach) {
  raise_limit();
  Driver driver = GetParam().driver;
  const Kind kind = kind_of(GetParam().kind), plain = kind_of("requests");
  EventLoop loop({.driver = driver});
  if (const char* port = std::getenv(kClientOf)) {
    net::Address where = net::Address::loopback_v4(static_cast<std::uint16_t>(std::atoi(port)));
    run(loop, be_clients(where, kind));
    return;
  }
  ws::Endpoint echo([](ws::Connection& socket, const http::Request&) -> Task<void> {
    while (true) {
      Result<ws::Message> message = co_await socket.receive();
      if (!message) co_return;
      Result<void> sent = co_await socket.send(*message);
      if (!sent) co_return;
    }
  });
  http::Router routes;
  routes.get("/", [](const http::Request&, http::Response& response) -> Task<void> {
    response.body("text/plain", std::string(2000, ' ') + "Hello.\n");  // not to be kept
    co_return;
  });
  routes.get("/socket", echo);
  http::Server server(routes, {.limits = {.connections_max = kConnections + 10}});
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  net::Address where = or_throw(listener.local_address());
  auto test = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(server.serve(listener));
    Result<net::TcpStream> connected = co_await net::TcpStream::connect(where);
    net::TcpStream other = or_throw(std::move(connected));
    Result<void> asked = co_await ask(other, plain);
    EXPECT_TRUE(asked);
    // What a test before this one has left must not be counted as free.
    trim_frames();
    ::malloc_trim(0);
    std::size_t before = resident_bytes();
    Process clients = or_throw(Process::spawn(clients_of(where, kind)));
    co_await wait_until_ready(clients);
    EXPECT_EQ(server.connections(), kConnections + 1);
    std::size_t each = (resident_bytes() - before) / kConnections;
    std::printf("%zu bytes of resident memory per connection that waits: %s by %s\n", each,
                kind.name, std::string(to_string(driver)).c_str());
    EXPECT_LE(each, kind.bytes_max);
    asked = co_await ask(other, plain);
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
std::vector<Case> cases() {
  std::vector<Case> all;
  for (Driver driver : test::drivers_here()) {
    if (driver == Driver::poll) continue;
    all.push_back({"requests", driver});
    all.push_back({"WebSockets", driver});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Drivers, HttpIdle, ::testing::ValuesIn(cases()), [](const auto& info) {
  return std::string(info.param.kind) +
         (info.param.driver == Driver::io_uring ? "OnIoUring" : "OnEpoll");
});

}  // namespace
