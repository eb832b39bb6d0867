// SPDX-License-Identifier: MIT
#include "weft/net/serve_datagrams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::net;
using namespace std::chrono_literals;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A socket that serves, and one that asks it.
struct Ends {
  Ends() : server(or_throw(UdpSocket::bind(Address::loopback_v4(0)))) {
    client = or_throw(UdpSocket::connect(or_throw(server.local_address())));
  }
  Task<void> send(std::string_view text) {
    Result<void> sent = co_await client.send(as_bytes(text));
    or_throw(sent);
  }
  UdpSocket server, client;
};
template <class Body>
void on_loop(Body body) {
  EventLoop loop;
  auto root = [&]() -> Task<void> {
    Ends ends;
    auto ended = co_await timeout(30s, body(ends));
    EXPECT_TRUE(ended.has_value()) << "it hangs";
  };
  run(loop, root());
  EXPECT_EQ(loop.strand_count(), 0u);
}

// I1.
TEST(NetServeDatagrams, NeverHasMoreHandlersThanTheLimitAndTheRestWaits) {
  on_loop([](Ends& ends) -> Task<void> {
    int running = 0, most = 0;
    std::string handled;
    Event go;
    auto handler = [&](const Datagram& datagram, DatagramSender&) -> Task<void> {
      most = std::max(most, ++running);
      co_await go.wait();
      handled += as_text(datagram.bytes);
      if (handled.size() == 5) ends.server.close();
      --running;
    };
    auto ask = [&]() -> Task<void> {
      for (const char* each : {"a", "b", "c", "d", "e"}) co_await ends.send(each);
      while (running < 2) co_await yield();
      for (int i = 0; i < 50; ++i) co_await yield();  // a third would have begun by now
      EXPECT_EQ(running, 2);
      go.set();
    };
    DatagramLimits limits{.handlers_max = 2};
    co_await all_of(serve_datagrams(ends.server, limits, handler), ask());
    EXPECT_EQ(most, 2);
    std::ranges::sort(handled);
    EXPECT_EQ(handled, "abcde") << "none was lost: there was room in the kernel";
  });
}

TEST(NetServeDatagrams, ClosedAtItsLimitItLetsItsHandlersEndAndTheyAreToldThatItIs) {
  on_loop([](Ends& ends) -> Task<void> {
    bool begun = false;
    std::error_code told;
    Event go;
    auto handler = [&](const Datagram& datagram, DatagramSender& sender) -> Task<void> {
      begun = true;
      co_await go.wait();
      Result<void> sent = co_await sender.send_to(datagram.bytes, datagram.peer);
      told = sent ? std::error_code() : sent.error();
    };
    auto ask = [&]() -> Task<void> {
      co_await ends.send("x");
      while (!begun) co_await yield();
      co_await yield();
      ends.server.close();
      co_await yield();
      go.set();
    };
    DatagramLimits limits{.handlers_max = 1};
    co_await all_of(serve_datagrams(ends.server, limits, handler), ask());
    EXPECT_EQ(told, std::errc::bad_file_descriptor);
  });
}

TEST(NetServeDatagrams, CancelledItCancelsItsHandlers) {
  on_loop([](Ends& ends) -> Task<void> {
    bool begun = false, ended = false;
    struct AtEnd {
      bool& flag;
      explicit AtEnd(bool& of) : flag(of) {}
      ~AtEnd() { flag = true; }
    };
    auto handler = [&](const Datagram&, DatagramSender&) -> Task<void> {
      AtEnd end(ended);
      begun = true;
      co_await suspend_forever();
    };
    auto ask = [&]() -> Task<void> {
      co_await ends.send("x");
      while (!begun) co_await yield();
    };
    DatagramLimits limits{};
    co_await any_of(serve_datagrams(ends.server, limits, handler), ask());
    EXPECT_TRUE(ended);
  });
}

TEST(NetServeDatagrams, WhatIsLargerThanItMayBeIsCutOffAndSaysSo) {
  on_loop([](Ends& ends) -> Task<void> {
    std::size_t bytes = 0, sent_bytes = 0;
    auto handler = [&](const Datagram& datagram, DatagramSender&) -> Task<void> {
      EXPECT_TRUE(datagram.truncated());
      bytes = datagram.bytes.size();
      sent_bytes = datagram.sent_bytes;
      ends.server.close();
      co_return;
    };
    DatagramLimits limits{.bytes_max = 4};
    co_await all_of(serve_datagrams(ends.server, limits, handler), ends.send("larger"));
    EXPECT_EQ(bytes, 4u);
    EXPECT_EQ(sent_bytes, 6u);
  });
}

// An answer to whom nobody listens for any more comes back as an error of the next receive.
TEST(NetServeDatagrams, ThatAPeerIsGoneDoesNotEndIt) {
  on_loop([](Ends& ends) -> Task<void> {
    UdpSocket gone = or_throw(UdpSocket::bind(Address::loopback_v4(0)));
    const Address nobody = or_throw(gone.local_address());
    gone.close();
    or_throw(ends.server.connect_to(nobody));
    std::string handled;
    auto handler = [&](const Datagram& datagram, DatagramSender&) -> Task<void> {
      handled += as_text(datagram.bytes);
      ends.server.close();
      co_return;
    };
    auto ask = [&]() -> Task<void> {
      for (int i = 0; i < 3; ++i) {
        Result<void> sent = co_await ends.server.send(as_bytes("is anybody there?"));
        static_cast<void>(sent);  // or it is told instead of the receiver
        co_await yield();
      }
      gone = or_throw(UdpSocket::bind(nobody));  // there is, now
      Result<void> sent =
          co_await gone.send_to(as_bytes("yes"), or_throw(ends.server.local_address()));
      or_throw(sent);
    };
    DatagramLimits limits{};
    co_await all_of(serve_datagrams(ends.server, limits, handler), ask());
    EXPECT_EQ(handled, "yes");
  });
}

}  // namespace
