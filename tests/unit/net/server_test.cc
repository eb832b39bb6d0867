// SPDX-License-Identifier: MIT
#include "weft/net/server.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::net;
using namespace std::chrono_literals;
using weft::test::LogCapture;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Echo : public TcpHandler {
 public:
  Task<void> handle_connection(TcpStream peer) override {
    std::array<std::byte, 64> buffer;
    while (true) {
      Result<std::size_t> count = co_await peer.read_some(buffer);
      if (!count || *count == 0) co_return;
      Result<void> sent =
          co_await write_all(peer, std::span<const std::byte>(buffer).first(*count));
      if (!sent) co_return;
    }
  }
};

class Shout : public UdpHandler {
 public:
  Task<void> handle_datagram(const Datagram& datagram, DatagramSender& sender) override {
    std::string text = as_text(datagram.bytes);
    if (text == "throw") throw std::runtime_error("shouted at");
    for (char& each : text) each = static_cast<char>(std::toupper(each));
    Result<void> sent = co_await sender.send_to(as_bytes(text), datagram.peer);
    or_throw(sent);
  }
};

Task<std::string> ask_tcp(Address where, std::string question) {
  Result<TcpStream> connected = co_await TcpStream::connect(where);
  TcpStream peer = or_throw(std::move(connected));
  Result<void> sent = co_await write_all(peer, question);
  or_throw(sent);
  std::string answer(question.size(), '\0');
  Result<void> got = co_await read_exactly(peer, std::as_writable_bytes(std::span(answer)));
  or_throw(got);
  co_return answer;
}

Task<std::string> ask_udp(Address where, std::string question) {
  UdpSocket socket = or_throw(UdpSocket::connect(where));
  Result<void> sent = co_await socket.send(as_bytes(question));
  or_throw(sent);
  std::array<std::byte, 64> buffer;
  Result<Datagram> got = co_await socket.receive_from(buffer);
  co_return as_text(or_throw(got).bytes);
}

TEST(NetServer, ServesEveryKindOfHandlerAtOnceAndStops) {
  EventLoop loop;
  auto body = [&]() -> Task<void> {
    Server server;
    Echo echo;
    Shout shout;
    int visits = 0;
    auto count = [&](TcpStream) -> Task<void> {
      ++visits;
      co_return;
    };
    Address tcp = or_throw(server.listen_tcp(Address::loopback_v4(0), echo));
    Address udp = or_throw(server.listen_udp(Address::loopback_v4(0), shout));
    Address counted = or_throw(server.listen_tcp(Address::loopback_v4(0), count));
    EXPECT_NE(tcp.port(), 0);
    auto visit = [&]() -> Task<void> {
      std::string answer = co_await ask_tcp(tcp, "tcp");
      EXPECT_EQ(answer, "tcp");
      answer = co_await ask_udp(udp, "udp");
      EXPECT_EQ(answer, "UDP");
      Result<TcpStream> visitor = co_await TcpStream::connect(counted);
      EXPECT_TRUE(visitor.has_value());
      while (visits == 0) co_await yield();
      server.stop();
    };
    co_await all_of(server.run(), visit());
    EXPECT_EQ(visits, 1);
    EXPECT_TRUE(UdpSocket::bind(udp).has_value()) << "the port is free";
  };
  run(loop, body());
  EXPECT_EQ(loop.strand_count(), 0u);
}

TEST(NetServer, ADatagramHandlersExceptionEndsThatHandlerOnly) {
  LogCapture log;
  EventLoop loop;
  auto body = [&]() -> Task<void> {
    Server server;
    Shout shout;
    Address udp = or_throw(server.listen_udp(Address::loopback_v4(0), shout));
    auto visit = [&]() -> Task<void> {
      UdpSocket socket = or_throw(UdpSocket::connect(udp));
      Result<void> sent = co_await socket.send(as_bytes("throw"));
      or_throw(sent);
      std::string answer = co_await ask_udp(udp, "still there");
      EXPECT_EQ(answer, "STILL THERE");
      server.stop();
    };
    co_await all_of(server.run(), visit());
  };
  run(loop, body());
  std::string all;
  for (const std::string& line : log.take()) all += line;
  EXPECT_NE(all.find("shouted at"), all.npos) << all;
}

// A datagram that is being handled at stop() is still answered; one that comes after it is not
// taken.
TEST(NetServer, StopLetsWhatIsBeingHandledAnswer) {
  EventLoop loop;
  auto body = [&]() -> Task<void> {
    Server server;
    Event begun, go_on;
    int handled = 0;
    auto slow = [&](const Datagram& datagram, DatagramSender& sender) -> Task<void> {
      ++handled;
      begun.set();
      co_await go_on.wait();
      Result<void> sent = co_await sender.send_to(as_bytes("late"), datagram.peer);
      EXPECT_TRUE(sent.has_value());
    };
    Address udp = or_throw(server.listen_udp(Address::loopback_v4(0), slow));
    auto visit = [&]() -> Task<void> {
      co_await begun.wait();
      server.stop();
      for (int i = 0; i < 10; ++i) co_await yield();
      UdpSocket second = or_throw(UdpSocket::connect(udp));
      (void)co_await second.send(as_bytes("too late"));
      go_on.set();
    };
    auto [served, answer, visited] = co_await all_of(server.run(), ask_udp(udp, "x"), visit());
    EXPECT_EQ(answer, "late");
    EXPECT_EQ(handled, 1);
  };
  run(loop, body());
}

TEST(NetServer, WhatDoesNotEndInTimeIsCancelled) {
  LogCapture log;
  EventLoop loop;
  auto body = [&]() -> Task<void> {
    Server server({.drain = 5ms});
    Event begun;
    bool unwound = false;
    auto stay = [&](TcpStream) -> Task<void> {
      struct Mark {
        bool& set;
        ~Mark() { set = true; }
      } mark{unwound};
      begun.set();
      co_await suspend_forever();
    };
    Address tcp = or_throw(server.listen_tcp(Address::loopback_v4(0), stay));
    auto visit = [&]() -> Task<void> {
      Result<TcpStream> peer = co_await TcpStream::connect(tcp);
      EXPECT_TRUE(peer.has_value());
      co_await begun.wait();
      server.stop();
      co_await suspend_forever();
    };
    co_await any_of(server.run(), visit());
    EXPECT_TRUE(unwound);
  };
  run(loop, body());
  std::string all;
  for (const std::string& line : log.take()) all += line;
  EXPECT_NE(all.find("did not end in time"), all.npos) << all;
}

TEST(NetServer, CancelledItListensNoMore) {
  EventLoop loop;
  auto body = [&]() -> Task<void> {
    Server server;
    Echo echo;
    Shout shout;
    Address tcp = or_throw(server.listen_tcp(Address::loopback_v4(0), echo));
    Address udp = or_throw(server.listen_udp(Address::loopback_v4(0), shout));
    co_await any_of(server.run(), ask_tcp(tcp, "x"));
    Result<TcpStream> peer = co_await TcpStream::connect(tcp);
    EXPECT_EQ(peer.error(), std::errc::connection_refused);
    EXPECT_TRUE(UdpSocket::bind(udp).has_value()) << "the port is free";
  };
  run(loop, body());
}

TEST(NetServer, StoppedBeforeItRunsItEndsAtOnce) {
  EventLoop loop;
  Server server;
  Echo echo;
  Address where = or_throw(server.listen_tcp(Address::loopback_v4(0), echo));
  server.stop();
  run(loop, server.run());
  auto visit = [&]() -> Task<void> {
    Result<TcpStream> peer = co_await TcpStream::connect(where);
    EXPECT_EQ(peer.error(), std::errc::connection_refused);
  };
  run(loop, visit());
  EXPECT_THROW(run(loop, server.run()), UsageError) << "it runs once";
}

// Every worker accepts for itself, and its connections stay with it.
TEST(NetServer, EveryWorkerServes) {
  constexpr std::size_t kWorkers = 4;
  IOContext ctx{{.workers = kWorkers}};
  Server server({.workers = kWorkers});
  std::array<std::atomic<int>, kWorkers> served{};
  auto handle = [&](TcpStream peer) -> Task<void> {
    for (std::size_t i = 0; i < kWorkers; ++i) {
      if (EventLoop::current_or_null() == &ctx.loop(i)) ++served[i];
    }
    Echo echo;
    co_await echo.handle_connection(std::move(peer));
  };
  Address where = or_throw(server.listen_tcp(Address::loopback_v4(0), handle));
  auto visit = [&]() -> Task<void> {
    for (int round = 0; round < 10; ++round) {
      std::vector<Task<std::string>> clients;
      for (int i = 0; i < 20; ++i) clients.push_back(ask_tcp(where, "number " + std::to_string(i)));
      std::vector<std::string> answers = co_await all_of(std::move(clients));
      for (int i = 0; i < 20; ++i) EXPECT_EQ(answers[i], "number " + std::to_string(i));
    }
    server.stop();
  };
  auto both = [&]() -> Task<void> { co_await all_of(server.run(), visit()); };
  ctx.run(both());
  int all = 0;
  for (std::atomic<int>& each : served) {
    // The kernel spreads 200 connections by a hash: that one of four gets none is one in 10^25.
    EXPECT_GT(each.load(), 0);
    all += each.load();
  }
  EXPECT_EQ(all, 200);
}

TEST(NetServer, StopFromAnotherThread) {
  IOContext ctx{{.workers = 2}};
  Server server({.workers = 2});
  Echo echo;
  Shout shout;
  Address tcp = or_throw(server.listen_tcp(Address::loopback_v4(0), echo));
  (void)or_throw(server.listen_udp(Address::loopback_v4(0), shout));
  std::thread stopper;
  auto visit = [&]() -> Task<void> {
    std::string answer = co_await ask_tcp(tcp, "x");
    EXPECT_EQ(answer, "x");
    stopper = std::thread([&] { server.stop(); });
  };
  auto both = [&]() -> Task<void> { co_await all_of(server.run(), visit()); };
  ctx.run(both());
  stopper.join();
}

TEST(NetServer, TheLimitIsThatOfAllWorkers) {
  IOContext ctx{{.workers = 2}};
  Server server({.workers = 2});
  std::atomic<int> open = 0, most = 0;
  auto handle = [&](TcpStream peer) -> Task<void> {
    int now = ++open;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    Echo echo;
    co_await echo.handle_connection(std::move(peer));
    --open;
  };
  TcpServiceOptions options{.limits = {.connections_max = 4}};
  Address where = or_throw(server.listen_tcp(Address::loopback_v4(0), handle, options));
  auto visit = [&]() -> Task<void> {
    std::vector<Task<std::string>> clients;
    for (int i = 0; i < 60; ++i) clients.push_back(ask_tcp(where, "x"));
    std::vector<std::string> answers = co_await all_of(std::move(clients));
    EXPECT_EQ(answers.size(), 60u);
    server.stop();
  };
  auto both = [&]() -> Task<void> { co_await all_of(server.run(), visit()); };
  ctx.run(both());
  EXPECT_LE(most, 4);
  EXPECT_GE(most, 2) << "the test did not test";
}

// The door for what is neither over TCP nor UDP.
TEST(NetServer, AnyServiceCanBeAdded) {
  class Ticks : public Service {
   public:
    explicit Ticks(int& ticks) : ticks_(ticks) {}
    Task<void> serve(std::size_t worker, Event& stop) override {
      EXPECT_EQ(worker, 0u);
      ++ticks_;
      co_await stop.wait();
      ++ticks_;
    }

   private:
    int& ticks_;
  };
  EventLoop loop;
  int ticks = 0;
  auto body = [&]() -> Task<void> {
    Server server;
    server.add(std::make_unique<Ticks>(ticks));
    auto stop = [&]() -> Task<void> {
      while (ticks == 0) co_await yield();
      server.stop();
    };
    co_await all_of(server.run(), stop());
    EXPECT_THROW(server.add(nullptr), UsageError) << "too late";
  };
  run(loop, body());
  EXPECT_EQ(ticks, 2);
}

TEST(NetServer, AnAddressThatIsTakenIsAnError) {
  Server first, second;
  Echo echo;
  Address where = or_throw(first.listen_tcp(Address::loopback_v4(0), echo));
  EXPECT_EQ(second.listen_tcp(where, echo).error(), std::errc::address_in_use);
}

TEST(NetServer, SeveralWorkersNeedAContextThatHasThem) {
  EXPECT_THROW(Server({.workers = 0}), UsageError);
  EventLoop loop;
  Server server({.workers = 2});
  EXPECT_THROW(run(loop, server.run()), UsageError);
}

}  // namespace
