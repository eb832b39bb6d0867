// SPDX-License-Identifier: MIT
// A server under load, of HTTP, TLS and WebSocket on two workers, and everything that goes wrong around it: peers that reset, stall, send a
// byte now and then, vanish; an upstream that is killed; no descriptors left. Meanwhile the others are answered, everybody bad is let go in
// time, and in the end nothing is left.
//
// Its own limits are short, so that a run of a few seconds meets each of them many times.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/drivers.h"
#include "support/http_peers.h"
#include "support/loop_fixture.h"
#include "weft/http/service.h"
#include "weft/net/server.h"
#include "weft/weft.h"
#include "weft/ws/client.h"
#include "weft/ws/endpoint.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr unsigned kWorkers = 2;
constexpr auto kFor = kSanitized ? 6s : 4s;
constexpr auto kPeerTime = kSanitized ? 2'000ms : 700ms;  // what a peer has for each step
// What a machine that has other things to do may need on top of it.
constexpr auto kMargin = kSanitized ? 10s : 4s;
constexpr auto kDrainMargin = kSanitized ? 5'000ms : 1'500ms;
constexpr auto kAnswerTime = 20s;  // that nobody good waits for

Limits short_limits() {
  return {.idle_timeout = kPeerTime,
          .head_timeout = kPeerTime,
          .body_timeout = kPeerTime,
          .write_timeout = kPeerTime,
          .linger_timeout = 100ms};
}
ws::EndpointOptions short_socket_limits() {
  ws::EndpointOptions options;
  options.limits.ping_interval = options.limits.pong_timeout = kPeerTime / 2;
  options.limits.write_timeout = kPeerTime;
  options.limits.close_timeout = 100ms;
  return options;
}

// --- The server ---------------------------------------------------------------------------------------

// Hands on what the upstream says; 502 if that says nothing.
Task<void> forward(std::string where, Response& response) {
  Client client(ClientOptions{.proxies = {}});  // of this loop, for this request
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

// Answers without end, to who reads and to who does not. On all workers.
class Floods {
 public:
  Task<void> over_http(Response& response) {
    Flood flood(*this);
    std::string piece = pattern(26'000);
    while (true) {
      Result<void> written = co_await response.write(piece);
      if (!written) co_return;
    }
  }
  Task<void> over_socket(ws::Connection& socket) {
    Flood flood(*this);
    std::string piece = pattern(26'000);
    while (true) {
      Result<void> sent = co_await socket.send(piece);
      if (!sent) co_return;
    }
  }
  [[nodiscard]] int begun() const { return begun_; }
  [[nodiscard]] int running() const { return begun_ - ended_; }
  [[nodiscard]] Clock::duration longest() const {
    std::lock_guard lock(mutex_);
    return longest_;
  }

 private:
  class Flood {
   public:
    explicit Flood(Floods& floods) : floods_(floods) { ++floods_.begun_; }
    Flood(const Flood&) = delete;
    Flood& operator=(const Flood&) = delete;
    ~Flood() {
      std::lock_guard lock(floods_.mutex_);
      floods_.longest_ = std::max(floods_.longest_, Clock::now() - began_);
      ++floods_.ended_;
    }

   private:
    Floods& floods_;
    Clock::time_point began_ = Clock::now();
  };

  std::atomic<int> begun_ = 0, ended_ = 0;
  mutable std::mutex mutex_;
  Clock::duration longest_{};
};

// --- Peers that misbehave -----------------------------------------------------------------------------

std::string upgrade_to(std::string_view path) {
  return "GET " + std::string(path) +
         " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}

// A connection that is open, and at whose other end nobody is any more: it is neither read nor written nor closed.
struct Vanished {
  std::shared_ptr<void> stream;
  int descriptor;
  bool is_silent;  // the server has no more to say to it, and so its end can be seen here

  // Whether the server has closed it.
  [[nodiscard]] bool is_let_go() const {
    pollfd ask{.fd = descriptor, .events = POLLRDHUP, .revents = 0};
    return ::poll(&ask, 1, 0) == 1;
  }
};

class Villain {
 public:
  Villain(net::Address plain, net::Address secure, std::vector<Vanished>& vanished, unsigned seed)
      : plain_(plain), secure_(secure), vanished_(vanished), random_(seed), next_(seed) {}

  enum Deed : unsigned {
    reset_midway,
    stall_in_the_head,
    drip,
    stall_in_the_body,
    talk_nonsense,
    vanish_in_silence,
    vanish_while_read_to,
    kDeeds
  };

  // Each in turn, over TCP and over TLS.
  Task<void> misbehave() {
    while (true) {
      Deed deed = static_cast<Deed>(next_ % kDeeds);
      bool is_secure = next_++ / kDeeds % 2 != 0;
      bool began = co_await commit(deed, is_secure);
      if (!began) co_await sleep_for(1ms);
    }
  }
  // Returns: false if there is no connection to do it on.
  Task<bool> commit(Deed deed, bool is_secure) {
    net::TcpOptions options{.reset_on_close = deed == reset_midway};
    Result<net::TcpStream> stream =
        co_await net::TcpStream::connect(is_secure ? secure_ : plain_, options);
    if (!stream) co_return false;
    int number = stream->descriptor().number();
    // Some vanish before they have said anything, also where a handshake should come.
    if (is_secure && (deed != vanish_in_silence || random_() % 4 != 0)) {
      Result<tls::Stream<net::TcpStream>> over =
          co_await tls::connect(std::move(*stream), trusts(), "127.0.0.1");
      if (!over) co_return false;
      co_await do_it(deed, std::move(*over), number);
    } else {
      co_await do_it(deed, std::move(*stream), number);
    }
    co_return true;
  }

  std::array<int, kDeeds> deeds{};         // that came to an end, by kind
  std::array<int, kDeeds> left_to_wait{};  // that the server let go on

 private:
  static constexpr std::size_t kVanishedMax = 60;  // of all: there are descriptors for so many

  static const tls::ClientContext& trusts() {
    static const tls::ClientContext context = client_context();
    return context;
  }
  template <net::Stream S>
  Task<void> do_it(Deed deed, S stream, int number) {
    if (deed == vanish_in_silence || deed == vanish_while_read_to) {
      if (vanished_.size() >= kVanishedMax) co_return;
      bool is_silent = deed == vanish_in_silence;
      co_await say(stream, is_silent ? a_beginning() : a_request_for_much());
      auto kept = std::make_shared<S>(std::move(stream));
      vanished_.push_back({std::move(kept), number, is_silent});
      ++deeds[deed];
      co_return;
    }
    auto ended = co_await timeout(kPeerTime + kMargin, until_let_go(deed, stream));
    ++(ended ? deeds : left_to_wait)[deed];
  }
  template <net::Stream S>
  Task<void> until_let_go(Deed deed, S& stream) {
    switch (deed) {
      case reset_midway:
        co_await be_reset(stream);
        break;
      case stall_in_the_head:
        co_await say(stream, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ");
        co_await await_the_end(stream);
        break;
      case drip:
        co_await say_byte_by_byte(stream);
        break;
      case stall_in_the_body:
        co_await say(stream,
                     "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nten bytes.");
        co_await await_the_end(stream);
        break;
      default:
        co_await say(stream, noise());
        co_await await_the_end(stream);
        break;
    }
  }

  template <net::Stream S>
  Task<void> say(S& stream, std::string text) {
    Result<void> sent = co_await net::write_all(stream, text);
    static_cast<void>(sent);
  }
  // Until the server has had enough.
  template <net::Stream S>
  Task<void> await_the_end(S& stream) {
    std::array<std::byte, 4096> buffer;
    while (true) {
      Result<std::size_t> count = co_await stream.read_some(buffer);
      if (!count || *count == 0) co_return;
    }
  }
  template <net::Stream S>
  Task<void> be_reset(S& stream) {
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
  // Each byte comes in good time, the head does not.
  template <net::Stream S>
  Task<void> say_byte_by_byte(S& stream) {
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
  std::string noise() {
    std::string noise(1 + random_() % 500, '\0');
    for (char& c : noise) c = static_cast<char>(random_());
    return noise;
  }
  // Nothing, part of a head, a whole request, part of a body, a WebSocket: after each the server waits for more.
  std::string a_beginning() {
    switch (random_() % 5) {
      case 0:
        return "";
      case 1:
        return "GET / HT";
      case 2:
        return "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
      case 3:
        return "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nten bytes.";
      default:
        return upgrade_to("/socket");
    }
  }
  std::string a_request_for_much() {
    return random_() % 2 == 0 ? "GET /much HTTP/1.1\r\nHost: x\r\n\r\n"
                              : upgrade_to("/much_over_socket");
  }

  net::Address plain_, secure_;
  std::vector<Vanished>& vanished_;
  std::mt19937 random_;
  unsigned next_;
};

// The server lets go whoever has vanished, each after a limit of its own; the last is that of a connection without a request.
Task<void> expect_all_are_let_go(const std::vector<Vanished>& vanished, const Floods& floods) {
  auto all_gone = [&]() -> Task<void> {
    for (const Vanished& each : vanished) {
      while (each.is_silent && !each.is_let_go()) co_await sleep_for(5ms);
    }
    while (floods.running() > 0) co_await sleep_for(5ms);
  };
  auto in_time = co_await timeout(2 * kPeerTime + kMargin, all_gone());
  EXPECT_TRUE(in_time.has_value()) << "the server waits for who has vanished";
}

// --- Peers that do not --------------------------------------------------------------------------------

struct Counts {
  int answered = 0;
  int from_upstream = 0;
  int upstream_failed = 0;
  int echoed = 0;
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

Task<void> echo_on_and_on(std::string server, Counts& counts) {
  ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
    while (true) {
      Clock::time_point began = Clock::now();
      Result<void> sent = co_await socket.send("still there?");
      Result<ws::Message> back = co_await socket.receive();
      EXPECT_TRUE(sent.has_value()) << sent.error().message();
      EXPECT_TRUE(back.has_value()) << back.error().message();
      if (back) {
        EXPECT_EQ(back->data, "still there?");
      }
      ++counts.echoed;
      counts.longest = std::max(counts.longest, Clock::now() - began);
      co_await sleep_for(5ms);
    }
  };
  ws::ClientOptions options;
  options.connector = direct().connector;
  Task<Result<ws::Close>> talking = ws::connect(server + "/socket", talk, std::move(options));
  Result<ws::Close> end = co_await std::move(talking);
  ADD_FAILURE() << "it was cut off: " << (end ? std::to_string(end->code) : end.error().message());
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
  const IOContextOptions on{.workers = kWorkers, .driver = GetParam()};
  {  // Not counted: what the process opens once.
    IOContext ctx(on);
    auto settle = [&]() -> Task<void> { co_await yield(); };
    ctx.run(settle());
  }
  LogCapture log;
  Nginx nginx;
  Counts counts;
  Floods floods;
  std::vector<Vanished> vanished;
  std::vector<Villain> villains;
  Event is_stuck;
  Clock::duration drained{};

  Router routes;
  routes.get("/", [](const Request&, Response& response) -> Task<void> {
    response.body("text/plain", "Hello.\n");
    co_return;
  });
  routes.get("/upstream", [&](const Request&, Response& response) -> Task<void> {
    co_await forward(nginx.at("/"), response);
  });
  routes.get("/much", [&](const Request&, Response& response) -> Task<void> {
    co_await floods.over_http(response);
  });
  routes.get("/stuck", [&](const Request&, Response&) -> Task<void> {
    is_stuck.set();
    co_await suspend_forever();
  });
  routes.post("/echo", [](const Request& request, Response& response) -> Task<void> {
    Result<std::string> body = co_await request.body().read_all();
    response.body("text/plain", or_throw(std::move(body)));
  });
  auto echo = [](ws::Connection& socket, const Request&) -> Task<void> {
    while (true) {
      Result<ws::Message> message = co_await socket.receive();
      if (!message) co_return;
      Result<void> sent = co_await socket.send(*message);
      if (!sent) co_return;
    }
  };
  auto flood = [&](ws::Connection& socket, const Request&) -> Task<void> {
    co_await floods.over_socket(socket);
  };
  ws::Endpoint echo_socket(echo, short_socket_limits()), flood_socket(flood, short_socket_limits());
  routes.get("/socket", echo_socket);
  routes.get("/much_over_socket", flood_socket);
  tls::ServerOptions secure_options = server_options();
  secure_options.handshake_timeout = kPeerTime;

  std::size_t before = descriptors();
  {
    IOContext ctx(on);
    net::Server server({.workers = kWorkers, .drain = kPeerTime});
    const net::Address any = net::Address::loopback_v4(0);
    net::Address plain = or_throw(http::listen(server, any, routes, {.limits = short_limits()}));
    net::Address secure = or_throw(http::listen(
        server, any, routes, {.limits = short_limits(), .tls = server_context(secure_options)}));
    std::string at = plain.to_string(), at_secure = secure.to_string();

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
      co_await run_out_of_descriptors(plain);
      co_await sleep_for(kFor / 4);
      Result<ExitStatus> ended = co_await upstream.terminate();
      EXPECT_TRUE(ended.has_value());
    };
    auto good_peers = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < 2; ++i) nursery.start(ask_on_and_on("http://" + at, counts));
      nursery.start(ask_on_and_on("https://" + at_secure, counts));
      nursery.start(echo_on_and_on("ws://" + at, counts));
      nursery.start(echo_on_and_on("wss://" + at_secure, counts));
      co_await trouble();
      co_return cancel;
    };
    auto good_and_bad = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (unsigned i = 0; i < 24; ++i) villains.emplace_back(plain, secure, vanished, i);
      for (Villain& villain : villains) nursery.start(villain.misbehave());
      co_await with_nursery(good_peers);
      co_return cancel;
    };
    // What the server meets when it is told to stop: one that would go on for ever, and some who have vanished.
    auto be_there_at_the_stop = [&](Nursery& nursery) -> Task<void> {
      vanished.clear();
      for (int i = 0; i < 8; ++i) {
        co_await villains[0].commit(Villain::vanish_in_silence, i % 2 == 0);
        co_await villains[0].commit(Villain::vanish_while_read_to, i % 2 == 0);
      }
      auto wait = [&]() -> Task<void> {
        Client client(direct());
        std::string got = co_await fetch(client, "http://" + at + "/stuck");
        EXPECT_FALSE(got.starts_with("200 ")) << got;
      };
      nursery.start(wait);
      co_await is_stuck.wait();
    };
    auto serving = [&](Nursery& nursery) -> Task<NurseryEnd> {
      nursery.start(server.run());
      co_await with_nursery(good_and_bad);
      co_await expect_all_are_let_go(vanished, floods);
      co_await be_there_at_the_stop(nursery);
      drained = Clock::now().time_since_epoch();
      server.stop();
      co_return join;
    };
    auto root = [&]() -> Task<void> {
      co_await with_nursery(serving);
      drained = Clock::now().time_since_epoch() - drained;
      vanished.clear();
    };
    auto in_time = [&]() -> Task<bool> {
      auto ended = co_await timeout(kFor * 10, root());
      co_return ended.has_value();
    };
    EXPECT_TRUE(ctx.run(in_time())) << "it hangs";
    for (unsigned i = 0; i < kWorkers; ++i) EXPECT_EQ(ctx.loop(i).strand_count(), 0u);
  }
  EXPECT_EQ(descriptors(), before) << "a descriptor was left";
  // Handlers may fail here, but not by a mistake of ours.
  for (const std::string& line : log.take()) {
    EXPECT_EQ(line.find("this Descriptor is empty"), line.npos) << line;
  }
  EXPECT_GT(counts.answered, 20);
  EXPECT_GT(counts.echoed, 20);
  EXPECT_LT(counts.longest, kAnswerTime);
  EXPECT_GT(floods.begun(), 0);
  EXPECT_EQ(floods.running(), 0);
  EXPECT_LT(floods.longest(), kPeerTime + kMargin) << "write_timeout";
  // One handler would never end: the drain is as long as it may be, and no longer.
  EXPECT_GE(drained, kPeerTime);
  EXPECT_LT(drained, kPeerTime + kDrainMargin);
  int deeds = 0;
  for (std::size_t i = 0; i < Villain::kDeeds; ++i) {
    int ended = 0, left = 0;
    for (const Villain& villain : villains) {
      ended += villain.deeds[i];
      left += villain.left_to_wait[i];
    }
    EXPECT_GT(ended, 0) << "number " << i << " was not done";
    EXPECT_EQ(left, 0) << "the server let number " << i << " go on";
    deeds += ended;
  }
  std::printf(
      "%d answered, %d by the upstream, %d without it; %d echoes; %d ill deeds; drained in %lld "
      "ms\n",
      counts.answered, counts.from_upstream, counts.upstream_failed, counts.echoed, deeds,
      static_cast<long long>(
          std::chrono::duration_cast<std::chrono::milliseconds>(drained).count()));
}

}  // namespace
