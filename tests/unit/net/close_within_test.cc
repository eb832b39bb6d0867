// SPDX-License-Identifier: MIT
#include "weft/net/close_within.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "support/drivers.h"
#include "weft/net/memory_stream.h"
#include "weft/net/tcp.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::net;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

template <class S>
Task<std::string> read_to_end(S& stream) {
  std::string all;
  std::array<std::byte, 1000> buffer;
  while (true) {
    Result<std::size_t> count = co_await stream.read_some(buffer);
    if (!count || *count == 0) co_return all;
    all.append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
}

// Runs `peer` at the other end. Returns: what close_within() said was wrong.
template <class Peer>
std::error_code close_against(VirtualLoop& loop, Peer peer) {
  Result<void> said;
  auto body = [&]() -> Task<void> {
    auto [near, far] = memory_streams();
    MemoryStream mine = std::move(near), theirs = std::move(far);
    or_throw(co_await write_all(mine, "last words"));
    auto leave = [&]() -> Task<void> { said = co_await close_within(mine, 2s); };
    co_await all_of(leave(), peer(theirs));
    Result<void> late = co_await write_all(mine, "x");
    EXPECT_EQ(late.error(), std::errc::bad_file_descriptor) << "it is closed";
  };
  run(loop, body());
  return said ? std::error_code() : said.error();
}

TEST(CloseWithin, EndsWhenThePeerHasReadAllAndEndsToo) {
  VirtualLoop loop;
  std::string heard;
  auto peer = [&](MemoryStream& stream) -> Task<void> {
    co_await sleep_for(1s);
    or_throw(co_await write_all(stream, "not wanted"));
    heard = co_await read_to_end(stream);
    or_throw(co_await stream.shutdown_write());
  };
  EXPECT_EQ(close_against(loop, peer), std::error_code());
  EXPECT_EQ(heard, "last words");
  EXPECT_EQ(loop.elapsed(), 1s);
}

TEST(CloseWithin, APeerThatStaysIsLeft) {
  VirtualLoop loop;
  auto peer = [&](MemoryStream& stream) -> Task<void> {
    std::string heard = co_await read_to_end(stream);
    EXPECT_EQ(heard, "last words");
    co_await sleep_for(3s);
  };
  EXPECT_EQ(close_against(loop, peer), std::errc::timed_out);
}

TEST(CloseWithin, APeerThatGoesOnIsLeft) {
  VirtualLoop loop;
  std::size_t bytes = 0;
  auto peer = [&](MemoryStream& stream) -> Task<void> {
    std::string piece(10'000, 'x');
    Result<void> sent;
    while (sent) {
      sent = co_await write_all(stream, piece);
      bytes += piece.size();
    }
  };
  EXPECT_EQ(close_against(loop, peer), std::errc::message_size);
  EXPECT_EQ(loop.elapsed(), 0s);
  EXPECT_GT(bytes, kDroppedBytesMax);
  EXPECT_LT(bytes, 2 * kDroppedBytesMax) << "beyond the bound, and what is on its way";
}

TEST(CloseWithin, OneThatIsCancelledClosesToo) {
  VirtualLoop loop;
  auto body = [&]() -> Task<void> {
    auto [near, far] = memory_streams();
    MemoryStream mine = std::move(near), theirs = std::move(far);
    auto given_up = co_await timeout(1s, close_within(mine, 1h));
    EXPECT_FALSE(given_up.has_value());
    Result<void> late = co_await write_all(mine, "x");
    EXPECT_EQ(late.error(), std::errc::bad_file_descriptor) << "it is closed";
    Result<void> refused = co_await write_all(theirs, "x");
    EXPECT_FALSE(refused.has_value()) << "nobody is there";
  };
  run(loop, body());
  EXPECT_EQ(loop.elapsed(), 1s);
}

// What was not read makes a close() a reset, which takes along what is on its way; this does not.
TEST(CloseWithin, LastWordsArriveThoughSomethingIsUnread) {
  for (Driver driver : test::drivers_here()) {
    SCOPED_TRACE(to_string(driver));
    EventLoop loop({.driver = driver});
    auto body = [&]() -> Task<void> {
      TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
      TcpStream peer = or_throw(co_await TcpStream::connect(or_throw(listener.local_address())));
      TcpStream mine = or_throw(co_await listener.accept());
      or_throw(co_await write_all(peer, "not wanted"));
      std::string words(1'000'000, 'w');  // not all of them have left when the kernel has them
      auto read = [&]() -> Task<void> {
        co_await sleep_for(5ms);
        std::string heard = co_await read_to_end(peer);
        EXPECT_EQ(heard.size(), words.size());
        Result<void> ended = co_await peer.shutdown_write();
        EXPECT_TRUE(ended.has_value()) << "it was reset";
      };
      auto leave = [&]() -> Task<void> {
        or_throw(co_await write_all(mine, words));
        Result<void> taken = co_await close_within(mine, 30s);
        EXPECT_TRUE(taken.has_value());
      };
      co_await all_of(leave(), read());
    };
    run(loop, body());
  }
}

}  // namespace
