// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_directory.h"
#include "weft/net/tcp.h"
#include "weft/net/unix.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::net;
using namespace std::chrono_literals;

template <class Body>
void on_loop(Body body) {
  EventLoop loop;
  run(loop, body());
}

int option(Descriptor& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(socket.number(), level, name, &value, &size), 0);
  return value;
}

TEST(NetTcp, OptionsAreSetOnBothEnds) {
  on_loop([]() -> Task<void> {
    ListenOptions options{.connections = {.keepalive = 77s}};
    TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0), options));
    Address where = or_throw(listener.local_address());
    TcpOptions plain{.nodelay = false};
    auto both = co_await all_of(TcpStream::connect(where, plain), listener.accept());
    auto [client, server] = or_throw(std::move(both));
    EXPECT_NE(option(server.descriptor(), IPPROTO_TCP, TCP_NODELAY), 0) << "on by default";
    EXPECT_EQ(option(server.descriptor(), IPPROTO_TCP, TCP_KEEPIDLE), 77);
    EXPECT_NE(option(server.descriptor(), SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_EQ(option(client.descriptor(), IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_EQ(option(client.descriptor(), SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_TRUE(client.set_nodelay(true).has_value());
    EXPECT_TRUE(client.set_keepalive(5s).has_value());
    EXPECT_NE(option(client.descriptor(), IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_EQ(option(client.descriptor(), IPPROTO_TCP, TCP_KEEPIDLE), 5);
    EXPECT_EQ(option(client.descriptor(), IPPROTO_TCP, TCP_KEEPINTVL), 30) << "twice a minute";
    EXPECT_EQ(option(client.descriptor(), IPPROTO_TCP, TCP_KEEPCNT), 6) << "half a dozen";
    EXPECT_TRUE(client.set_keepalive(std::nullopt).has_value());
    EXPECT_EQ(option(client.descriptor(), SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_TRUE(client.set_nodelay(false).has_value());
    EXPECT_EQ(option(client.descriptor(), IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_EQ(or_throw(client.peer_address()), where);
    EXPECT_EQ(or_throw(server.peer_address()), or_throw(client.local_address()));
  });
}

TEST(NetTcp, ResetOnCloseIsSeenByAPeerThatWaits) {
  on_loop([]() -> Task<void> {
    TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    Address where = or_throw(listener.local_address());
    TcpOptions options{.reset_on_close = true};
    auto both = co_await all_of(TcpStream::connect(where, options), listener.accept());
    auto [client, server] = or_throw(std::move(both));
    bool reads = false;
    auto read = [&]() -> Task<Result<std::size_t>> {
      std::array<std::byte, 8> buffer;
      reads = true;
      co_return co_await server.read_some(buffer);
    };
    auto leave = [&]() -> Task<void> {
      while (!reads) co_await yield();
      client.close();
    };
    auto [got, left] = co_await all_of(read(), leave());
    EXPECT_EQ(got.error(), std::errc::connection_reset);
  });
}

// Changed while it is open; and changed back, the peer reads the end.
TEST(NetTcp, WhetherACloseResetsCanBeChanged) {
  for (bool reset : {true, false}) {
    on_loop([&]() -> Task<void> {
      TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
      Address where = or_throw(listener.local_address());
      auto both = co_await all_of(TcpStream::connect(where), listener.accept());
      auto [client, server] = or_throw(std::move(both));
      EXPECT_TRUE(client.set_reset_on_close(true).has_value());
      if (!reset) or_throw(client.set_reset_on_close(false));
      client.close();
      std::array<std::byte, 8> buffer;
      Result<std::size_t> got = co_await server.read_some(buffer);
      if (reset) {
        EXPECT_EQ(got.error(), std::errc::connection_reset);
      } else {
        EXPECT_EQ(or_throw(got), 0u);
      }
    });
  }
}

TEST(NetTcp, AConnectionThatIsRefusedIsAnError) {
  on_loop([]() -> Task<void> {
    TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    Address where = or_throw(listener.local_address());
    listener.close();
    Result<TcpStream> peer = co_await TcpStream::connect(where);
    EXPECT_EQ(peer.error(), std::errc::connection_refused);
  });
}

TEST(NetTcp, TwoListenersShareAPortOnlyIfBothSaySo) {
  on_loop([]() -> Task<void> {
    ListenOptions shared{.reuse_port = true};
    TcpListener first = or_throw(TcpListener::listen(Address::loopback_v4(0), shared));
    Address where = or_throw(first.local_address());
    EXPECT_TRUE(TcpListener::listen(where, shared).has_value());
    EXPECT_EQ(TcpListener::listen(where).error(), std::errc::address_in_use);
    co_return;
  });
}

TEST(NetTcp, ASocketMovesToAnotherLoopAndIsRefusedElsewhere) {
  EventLoop here;
  IOContext there{{.workers = 1}};
  TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
  Address where = or_throw(listener.local_address());
  TcpStream client, server;
  auto connect = [&]() -> Task<void> {
    auto both = co_await all_of(TcpStream::connect(where), listener.accept());
    std::tie(client, server) = or_throw(std::move(both));
    Result<void> sent = co_await write_all(client, "abc");
    or_throw(sent);
    std::array<std::byte, 1> buffer;
    Result<std::size_t> count = co_await server.read_some(buffer);
    EXPECT_EQ(or_throw(count), 1u);
    EventLoop other;
    server.move_to(other);
    EXPECT_THROW((void)server.read_some(buffer), UsageError);
  };
  run(here, connect());
  auto go_on = [&]() -> Task<void> {
    std::array<std::byte, 2> buffer;
    EXPECT_THROW((void)server.read_some(buffer), UsageError) << "not the loop it was sent to";
    co_return;
  };
  there.run(go_on());
}

TEST(NetTcp, WhatWasMovedIsReadOnTheOtherLoop) {
  EventLoop here, there;
  TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
  Address where = or_throw(listener.local_address());
  TcpStream client, server;
  auto connect = [&]() -> Task<void> {
    auto both = co_await all_of(TcpStream::connect(where), listener.accept());
    std::tie(client, server) = or_throw(std::move(both));
    Result<void> sent = co_await write_all(client, "abc");
    or_throw(sent);
    Result<PooledBytes> first = co_await server.read_pooled();
    EXPECT_FALSE(or_throw(std::move(first)).empty());
    sent = co_await write_all(client, "def");
    or_throw(sent);
    server.move_to(there);
  };
  run(here, connect());
  auto go_on = [&]() -> Task<std::string> {
    std::string text(3, '\0');
    Result<void> got = co_await read_exactly(server, std::as_writable_bytes(std::span(text)));
    or_throw(got);
    co_return text;
  };
  EXPECT_EQ(run(there, go_on()), "def");
}

TEST(NetUnix, APathIsThereWhileItIsListenedOn) {
  test::TemporaryDirectory scratch;
  std::string path = scratch.file("s");
  on_loop([&]() -> Task<void> {
    UnixListener listener = or_throw(UnixListener::listen(path));
    EXPECT_EQ(UnixListener::listen(path).error(), std::errc::address_in_use);
    EXPECT_TRUE(std::filesystem::is_socket(path)) << "the attempt left it alone";
    auto both = co_await all_of(UnixStream::connect(path), listener.accept());
    EXPECT_TRUE(both.has_value());
    UnixListener moved = std::move(listener);
    listener.close();
    EXPECT_TRUE(std::filesystem::exists(path)) << "the other one has it";
    moved.close();
    EXPECT_FALSE(std::filesystem::exists(path));
  });
}

TEST(NetUnix, AFileThatADeadProcessLeftIsReplacedAndNothingElse) {
  test::TemporaryDirectory scratch;
  std::string path = scratch.file("s");
  {
    UnixListener listener = or_throw(UnixListener::listen(path));
    std::filesystem::create_hard_link(path, scratch.file("kept"));
  }
  std::filesystem::rename(scratch.file("kept"), path);  // a socket that nobody listens on
  UnixListener again = or_throw(UnixListener::listen(path));
  std::filesystem::remove(path);
  std::ofstream(path) << "not a socket";
  again.close();
  EXPECT_TRUE(std::filesystem::is_regular_file(path)) << "not the file that listen() made";
  EXPECT_EQ(UnixListener::listen(path).error(), std::errc::address_in_use);
}

TEST(NetUnix, NamesThatDoNotFitAreRefused) {
  EXPECT_EQ(UnixListener::listen(std::string(200, 'x')).error(), std::errc::filename_too_long);
  EXPECT_EQ(UnixListener::listen("").error(), std::errc::invalid_argument);
}

}  // namespace
