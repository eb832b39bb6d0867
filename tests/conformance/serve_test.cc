// SPDX-License-Identifier: MIT
// What a server must outlive, on every driver.
#include "weft/net/serve.h"

#include <array>

#include "driver_fixture.h"
#include "weft/net/tcp.h"

namespace {

using namespace weft;
using namespace weft::test;
using net::Address;
using net::TcpListener;
using net::TcpStream;

struct Serving : DriverTest {};
WEFT_ON_EVERY_DRIVER(Serving);

Task<void> echo(TcpStream peer) {
  std::array<std::byte, 64> buffer;
  while (true) {
    Result<std::size_t> count = co_await peer.read_some(buffer);
    if (!count || *count == 0) co_return;
    Result<void> sent =
        co_await net::write_all(peer, std::span<const std::byte>(buffer).first(*count));
    if (!sent) co_return;
  }
}

Task<std::string> exchange_text(TcpStream& peer, std::string_view text) {
  Result<void> sent = co_await net::write_all(peer, text);
  or_throw(sent);
  std::string answer(text.size(), '\0');
  Result<void> got = co_await net::read_exactly(peer, std::as_writable_bytes(std::span(answer)));
  or_throw(got);
  co_return answer;
}

Task<TcpStream> connect_to(Address where) {
  Result<TcpStream> made = co_await TcpStream::connect(where);
  co_return or_throw(std::move(made));
}

// FIELD: "EMFILE closes the listener for good".
TEST_P(Serving, GoesOnWhenThereAreDescriptorsAgain) {
  FileLimit few(64);
  LogCapture log;
  on_loop([]() -> Task<void> {
    TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    Address where = or_throw(listener.local_address());
    auto visit = [&]() -> Task<void> {
      TcpStream first = co_await connect_to(where);
      std::string answer = co_await exchange_text(first, "before");
      EXPECT_EQ(answer, "before");
      UniqueFd second = tcp_socket();
      sockaddr_in address = localhost(where.port());
      {
        Exhaustion exhaustion;
        checked(::connect(second.get(), &general(address), sizeof address), "connect");
        answer = co_await exchange_text(first, "during");
        EXPECT_EQ(answer, "during") << "those who are there are served";
        auto cpu = thread_cpu();
        co_await sleep_for(150ms);
        EXPECT_LT(thread_cpu() - cpu, 75ms) << "it spins";
      }
      TcpStream late(Descriptor(std::move(second)));
      answer = co_await exchange_text(late, "after");
      EXPECT_EQ(answer, "after");
      listener.close();
    };
    auto handler = [](TcpStream peer) { return echo(std::move(peer)); };
    co_await all_of(net::serve(listener, {}, handler), visit());
  });
  std::size_t complaints = 0;
  for (const std::string& line : log.take()) complaints += line.contains("accept() failed");
  EXPECT_EQ(complaints, 1u) << "once in a row";
}

// FIELD: "a peer reset while the handler sleeps spins one core at 100 %".
TEST_P(Serving, APeerThatResetsWhileItsHandlerSleepsCostsNothing) {
  on_loop([this]() -> Task<void> {
    TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    Address where = or_throw(listener.local_address());
    bool handled = false, begun = false;
    auto handler = [&](TcpStream peer) -> Task<void> {
      std::array<std::byte, 64> buffer;
      Result<std::size_t> count = co_await peer.read_some(buffer);  // it is the loop's now
      EXPECT_EQ(or_throw(count), 1u);
      begun = true;
      std::uint64_t turns = loop.statistics().turns;
      auto cpu = thread_cpu();
      co_await sleep_for(200ms);
      EXPECT_LT(thread_cpu() - cpu, 100ms);
      EXPECT_LT(loop.statistics().turns - turns, 200u) << "it spins";
      count = co_await peer.read_some(buffer);
      EXPECT_TRUE(is_error(count, std::errc::connection_reset));
      handled = true;
    };
    auto visit = [&]() -> Task<void> {
      net::TcpOptions rude{.reset_on_close = true};
      Result<TcpStream> made = co_await TcpStream::connect(where, rude);
      TcpStream peer = or_throw(std::move(made));
      Result<void> sent = co_await net::write_all(peer, "x");
      or_throw(sent);
      while (!begun) co_await yield();
      peer.close();
      listener.close();
    };
    co_await all_of(net::serve(listener, {}, handler), visit());
    EXPECT_TRUE(handled);
  });
}

// Closed while all permits are out, it once asked the closed listener, and took its handlers along.
TEST_P(Serving, ClosedAtItsLimitItLetsItsHandlersEnd) {
  on_loop([]() -> Task<void> {
    TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    Address where = or_throw(listener.local_address());
    auto visit = [&]() -> Task<void> {
      TcpStream peer = co_await connect_to(where);
      std::string answer = co_await exchange_text(peer, "before");
      co_await settle();
      listener.close();
      answer = co_await exchange_text(peer, "after");
      EXPECT_EQ(answer, "after");
    };
    auto handler = [](TcpStream peer) { return echo(std::move(peer)); };
    net::ServeLimits one{.connections_max = 1};
    co_await all_of(net::serve(listener, one, handler), visit());
  });
}

TEST_P(Serving, AnErrorThatWouldComeAgainAndAgainEndsIt) {
  on_loop([]() -> Task<void> {
    TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    auto handler = [](TcpStream peer) { return echo(std::move(peer)); };
    auto break_it = [&]() -> Task<void> {
      co_await settle();
      ::shutdown(listener.descriptor().number(), SHUT_RDWR);
    };
    std::error_code error;
    try {
      co_await all_of(net::serve(listener, {}, handler), break_it());
    } catch (const std::system_error& thrown) {
      error = thrown.code();
    }
    EXPECT_EQ(error, std::errc::invalid_argument);
  });
}

}  // namespace
