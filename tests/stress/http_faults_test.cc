// SPDX-License-Identifier: MIT
// A server under load, and everything that goes wrong around it: peers that reset, stall, send a byte now and then, vanish; an upstream
// that is killed; no descriptors left. Meanwhile the others are answered, and in the end nothing is left.
//
// Its own limits are short, so that a run of a few seconds meets each of them many times.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/drivers.h"
#include "support/http_peers.h"
#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kFor = kSanitized ? 8s : 5s;
constexpr auto kPeerTime = kSanitized ? 2'000ms : 700ms;  // what a peer has for each step
constexpr auto kAnswerTime = 20s;                         // that nobody good waits for

Limits short_limits() {
  return {.idle_timeout = 4 * kPeerTime,
          .head_timeout = kPeerTime,
          .body_timeout = kPeerTime,
          .write_timeout = kPeerTime,
          .linger_timeout = 100ms,
          .drain_timeout = kPeerTime};
}

// --- The server ---------------------------------------------------------------------------------------

// Hands on what the upstream says; 502 if that says nothing.
Task<void> forward(Client& client, std::string where, Response& response) {
  Result<ClientResponse> upstream = co_await client.get(std::move(where));
  if (!upstream) {
    response.status(502);
    co_return;
  }
  response.status(upstream->status());
  std::array<std::byte, 8192> buffer;
  while (true) {
    Result<std::size_t> count = co_await upstream->body().read_some(buffer);
    if (!count) throw std::system_error(count.error());  // begun: the peer sees that it is cut
    if (*count == 0) co_return;
    Result<void> written = co_await response.write(std::span(buffer).first(*count));
    if (!written) co_return;
  }
}

Task<void> send_much(const Request&, Response& response) {
  std::string piece = pattern(26'000);
  for (int i = 0; i < 200; ++i) {
    Result<void> written = co_await response.write(piece);
    if (!written) co_return;
  }
}

// --- Peers that misbehave -----------------------------------------------------------------------------

class Villain {
 public:
  Villain(net::Address server, unsigned seed) : server_(server), random_(seed) {}

  Task<void> misbehave() {
    while (true) {
      Result<net::TcpStream> stream = co_await net::TcpStream::connect(server_);
      if (!stream) {
        co_await sleep_for(1ms);
        continue;
      }
      std::size_t deed = random_() % kDeeds;
      switch (deed) {
        case 0:
          co_await reset_midway(*stream);
          break;
        case 1:
          co_await stall_in_the_head(*stream);
          break;
        case 2:
          co_await drip(*stream);
          break;
        case 3:
          co_await read_nothing(*stream);
          break;
        case 4:
          co_await stall_in_the_body(*stream);
          break;
        default:
          co_await talk_nonsense(*stream);
          break;
      }
      ++deeds[deed];
    }
  }

  static constexpr std::size_t kDeeds = 6;
  std::array<int, kDeeds> deeds{};  // that came to an end, by kind

 private:
  Task<void> say(net::TcpStream& stream, std::string_view text) {
    Result<void> sent = co_await net::write_all(stream, text);
    static_cast<void>(sent);
  }
  // Until the server has had enough.
  Task<void> await_the_end(net::TcpStream& stream) {
    std::array<std::byte, 4096> buffer;
    while (true) {
      Result<std::size_t> count = co_await stream.read_some(buffer);
      if (!count || *count == 0) co_return;
    }
  }
  Task<void> reset_midway(net::TcpStream& stream) {
    static_cast<void>(stream.set_reset_on_close(true).has_value());
    bool asks_much = random_() % 2 == 0;
    co_await say(stream,
                 asks_much ? "GET /much HTTP/1.1\r\nHost: x\r\n\r\n" : "GET / HTTP/1.1\r\nHo");
    if (asks_much) {
      std::array<std::byte, 100> some;
      Result<std::size_t> count = co_await stream.read_some(some);
      static_cast<void>(count);
    }
    stream.close();
  }
  Task<void> stall_in_the_head(net::TcpStream& stream) {
    co_await say(stream, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ");
    co_await await_the_end(stream);
  }
  // Each byte comes in good time, the head does not.
  Task<void> drip(net::TcpStream& stream) {
    auto bytes = [&]() -> Task<void> {
      co_await say(stream, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ");
      while (true) {
        Result<void> sent = co_await net::write_all(stream, "x");
        if (!sent) co_return;
        co_await sleep_for(kPeerTime / 10);
      }
    };
    co_await any_of(bytes(), await_the_end(stream));
  }
  Task<void> read_nothing(net::TcpStream& stream) {
    co_await say(stream, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n");
    co_await sleep_for(2 * kPeerTime);
  }
  Task<void> stall_in_the_body(net::TcpStream& stream) {
    co_await say(stream, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nten bytes.");
    co_await await_the_end(stream);
  }
  Task<void> talk_nonsense(net::TcpStream& stream) {
    std::string noise(1 + random_() % 500, '\0');
    for (char& c : noise) c = static_cast<char>(random_());
    co_await say(stream, noise);
    co_await any_of(await_the_end(stream), sleep_for(kPeerTime));
  }

  net::Address server_;
  std::mt19937 random_;
};

// --- Peers that do not --------------------------------------------------------------------------------

struct Counts {
  int answered = 0;
  int from_upstream = 0;
  int upstream_failed = 0;
  Clock::duration longest{};
};

Task<void> ask_on_and_on(std::string server, Counts& counts) {
  Client client(direct());
  while (true) {
    Clock::time_point began = Clock::now();
    std::string got = co_await fetch(client, server + "/");
    EXPECT_EQ(got, "200 Hello.\n");
    got = co_await fetch(client, server + "/upstream");
    if (got == "200 from nginx\n") {
      ++counts.from_upstream;
    } else {
      EXPECT_TRUE(got == "502 ") << got;
      ++counts.upstream_failed;
    }
    ++counts.answered;
    counts.longest = std::max(counts.longest, Clock::now() - began);
  }
}

Task<Process> start(const Nginx& nginx) {
  Process process = or_throw(Process::spawn(nginx.program()));
  while (true) {
    Result<net::TcpStream> there =
        co_await net::TcpStream::connect(net::Address::loopback_v4(nginx.port));
    if (there) co_return process;
    EXPECT_FALSE(process.try_wait()) << "nginx has ended by itself";
    co_await sleep_for(5ms);
  }
}

// Opens what can be opened, until nothing can, while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 500);
    ::setrlimit(RLIMIT_NOFILE, &few);
    while (true) {
      UniqueFd one(::eventfd(0, EFD_CLOEXEC));
      if (!one) break;
      taken_.push_back(std::move(one));
    }
    EXPECT_EQ(errno, EMFILE);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() {
    taken_.clear();
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_{};
  std::vector<UniqueFd> taken_;
};

// While nothing can be opened, peers come: each waits, and is answered afterwards.
Task<void> run_out_of_descriptors(net::Address server) {
  std::vector<UniqueFd> peers;
  for (int i = 0; i < 20; ++i) {
    peers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  }
  std::optional<NoDescriptors> none(std::in_place);
  for (UniqueFd& peer : peers) {
    int connected = ::connect(peer.get(), &server.native(), server.native_size());
    EXPECT_TRUE(connected == 0 || errno == EINPROGRESS);
  }
  co_await sleep_for(300ms);
  none.reset();
  for (UniqueFd& peer : peers) {
    net::TcpStream stream(Descriptor(std::move(peer)));
    Result<void> sent = co_await net::write_all(stream, "GET / HTTP/1.0\r\n\r\n");
    std::string answer;
    std::array<std::byte, 1000> buffer;
    while (sent) {
      Result<std::size_t> count = co_await stream.read_some(buffer);
      if (!count || *count == 0) break;
      answer.append(reinterpret_cast<const char*>(buffer.data()), *count);
    }
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  }
}

class HttpFaults : public ::testing::TestWithParam<Driver> {};
INSTANTIATE_TEST_SUITE_P(Drivers, HttpFaults, ::testing::ValuesIn(drivers_here()), driver_name);

TEST_P(HttpFaults, TheServerStaysUpAndAnswersTheOthers) {
  Nginx nginx;
  Counts counts;
  std::vector<Villain> villains;
  Clock::duration drained{};
  EventLoop loop({.driver = GetParam()});

  auto root = [&]() -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    net::Address where = or_throw(listener.local_address());
    Client to_upstream(direct());
    Router routes;
    routes.get("/", [](const Request&, Response& response) -> Task<void> {
      response.body("text/plain", "Hello.\n");
      co_return;
    });
    routes.get("/upstream", [&](const Request&, Response& response) -> Task<void> {
      co_await forward(to_upstream, nginx.at("/"), response);
    });
    routes.get("/much", send_much);
    routes.post("/echo", [](const Request& request, Response& response) -> Task<void> {
      Result<std::string> body = co_await request.body().read_all();
      response.body("text/plain", or_throw(std::move(body)));
    });
    Server server(routes, {.limits = short_limits()});

    auto trouble = [&]() -> Task<void> {
      Process upstream = co_await start(nginx);
      co_await sleep_for(kFor / 4);
      or_throw(upstream.kill(SIGKILL));
      Result<ExitStatus> killed = co_await upstream.wait();
      EXPECT_EQ(or_throw(killed).signal(), SIGKILL);
      int failed_before = counts.upstream_failed;
      while (counts.upstream_failed < failed_before + 5) co_await sleep_for(10ms);
      upstream = co_await start(nginx);
      int good_before = counts.from_upstream;
      while (counts.from_upstream < good_before + 5) co_await sleep_for(10ms);
      co_await run_out_of_descriptors(where);
      co_await sleep_for(kFor / 4);
      Result<ExitStatus> ended = co_await upstream.terminate();
      EXPECT_TRUE(ended.has_value());
    };
    auto good_peers = [&](Nursery& nursery) -> Task<NurseryEnd> {
      std::string url = "http://" + where.to_string();
      for (int i = 0; i < 3; ++i) nursery.start(ask_on_and_on(url, counts));
      co_await trouble();
      co_return cancel;
    };
    Clock::time_point stopped;
    auto serving = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
      nursery.start(serve);
      co_await with_nursery(good_peers);
      stopped = Clock::now();
      co_return cancel;
    };
    // The bad ones are there until the server has ended.
    auto everybody = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (unsigned i = 0; i < 24; ++i) villains.emplace_back(where, i);
      for (Villain& villain : villains) nursery.start(villain.misbehave());
      co_await with_nursery(serving);
      drained = Clock::now() - stopped;
      co_return cancel;
    };
    co_await with_nursery(everybody);
    EXPECT_EQ(server.connections(), 0u);
  };
  // Not counted: what the driver opens once.
  auto settle = [&]() -> Task<void> { co_await yield(); };
  run(loop, settle());
  std::size_t before = descriptors();
  auto in_time = [&]() -> Task<bool> {
    auto ended = co_await timeout(kFor * 10, root());
    co_return ended.has_value();
  };
  EXPECT_TRUE(run(loop, in_time())) << "it hangs";

  EXPECT_EQ(loop.strand_count(), 0u);
  EXPECT_EQ(loop.statistics().operations, 0u);
  EXPECT_EQ(descriptors(), before) << "a descriptor was left";
  EXPECT_GT(counts.answered, 20);
  EXPECT_LT(counts.longest, kAnswerTime);
  EXPECT_LT(drained, kPeerTime + 3s) << "the drain has its deadline";
  int deeds = 0;
  for (std::size_t i = 0; i < Villain::kDeeds; ++i) {
    int of_a_kind = 0;
    for (const Villain& villain : villains) of_a_kind += villain.deeds[i];
    EXPECT_GT(of_a_kind, 0) << "the server let number " << i << " go on for ever";
    deeds += of_a_kind;
  }
  std::printf("%d answered, %d by the upstream, %d without it; %d ill deeds; drained in %lld ms\n",
              counts.answered, counts.from_upstream, counts.upstream_failed, deeds,
              static_cast<long long>(
                  std::chrono::duration_cast<std::chrono::milliseconds>(drained).count()));
}

}  // namespace
