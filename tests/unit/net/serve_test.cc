// SPDX-License-Identifier: MIT
#include "weft/net/serve.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/stream_text.h"
#include "weft/base/log.h"
#include "weft/net/unix.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::net;

template <class Body>
void on_loop(Body body) {
  EventLoop loop;
  run(loop, body());
  EXPECT_EQ(loop.strand_count(), 0u);
}

TcpListener listener_on(Address& where) {
  TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(0)));
  where = or_throw(listener.local_address());
  return listener;
}

Task<std::string> ask(Address where, std::string question) {
  Result<TcpStream> connected = co_await TcpStream::connect(where);
  TcpStream peer = or_throw(std::move(connected));
  co_await test::write_text(peer, question);
  Result<void> ended = co_await peer.shutdown_write();
  or_throw(ended);
  co_return co_await test::read_to_end(peer);
}

Task<void> echo(TcpStream peer) {
  std::array<std::byte, 64> buffer;
  while (true) {
    Result<std::size_t> count = co_await peer.read_some(buffer);
    if (!count || *count == 0) co_return;
    Result<void> sent = co_await write_all(peer, std::span<const std::byte>(buffer).first(*count));
    if (!sent) co_return;
  }
}

TEST(NetServe, HandlesManyAndEndsWhenTheListenerIsClosed) {
  on_loop([]() -> Task<void> {
    Address where;
    TcpListener listener = listener_on(where);
    auto ask_all = [&]() -> Task<void> {
      std::vector<Task<std::string>> clients;
      for (int i = 0; i < 50; ++i) clients.push_back(ask(where, "number " + std::to_string(i)));
      std::vector<std::string> answers = co_await all_of(std::move(clients));
      for (int i = 0; i < 50; ++i) EXPECT_EQ(answers[i], "number " + std::to_string(i));
      listener.close();
    };
    auto handler = [](TcpStream peer) { return echo(std::move(peer)); };
    co_await all_of(serve(listener, {}, handler), ask_all());
  });
}

TEST(NetServe, NeverHasMoreConnectionsThanTheLimit) {
  on_loop([]() -> Task<void> {
    Address where;
    TcpListener listener = listener_on(where);
    unsigned open = 0, most = 0;
    auto handler = [&](TcpStream peer) -> Task<void> {
      most = std::max(most, ++open);
      co_await echo(std::move(peer));
      --open;
    };
    auto ask_all = [&]() -> Task<void> {
      std::vector<Task<std::string>> clients;
      for (int i = 0; i < 20; ++i) clients.push_back(ask(where, "x"));
      std::vector<std::string> answers = co_await all_of(std::move(clients));
      EXPECT_EQ(answers.size(), 20u) << "those beyond the limit waited, and were served";
      listener.close();
    };
    ServeLimits limits{.connections_max = 3};
    co_await all_of(serve(listener, limits, handler), ask_all());
    EXPECT_LE(most, 3u);
    EXPECT_GE(most, 2u) << "the test did not test";
  });
}

std::string logged;
void keep(LogLevel, std::string_view message) noexcept { logged += std::string(message) + '\n'; }

TEST(NetServe, AHandlersExceptionEndsItsOwnConnectionOnly) {
  on_loop([]() -> Task<void> {
    Address where;
    TcpListener listener = listener_on(where);
    logged.clear();
    LogSink before = set_log_sink(keep);
    int calls = 0;
    auto handler = [&](TcpStream peer) -> Task<void> {
      if (++calls == 1) throw std::runtime_error("no such luck");
      co_await echo(std::move(peer));
    };
    auto ask_all = [&]() -> Task<void> {
      std::string answer;
      try {
        answer = co_await ask(where, "first");
      } catch (const std::system_error&) {  // a reset, if it had sent already
      }
      EXPECT_EQ(answer, "");
      answer = co_await ask(where, "second");
      EXPECT_EQ(answer, "second");
      listener.close();
    };
    co_await all_of(serve(listener, {}, handler), ask_all());
    set_log_sink(before);
    EXPECT_NE(logged.find("no such luck"), logged.npos) << logged;
  });
}

TEST(NetServe, CancelledItCancelsItsHandlers) {
  on_loop([]() -> Task<void> {
    Address where;
    TcpListener listener = listener_on(where);
    bool begun = false, unwound = false;
    auto handler = [&](TcpStream) -> Task<void> {
      begun = true;
      struct Mark {
        bool& set;
        ~Mark() { set = true; }
      } mark{unwound};
      co_await suspend_forever();
    };
    auto meanwhile = [&]() -> Task<void> {
      Result<TcpStream> peer = co_await TcpStream::connect(where);
      EXPECT_TRUE(peer.has_value());
      while (!begun) co_await yield();
    };
    co_await any_of(serve(listener, {}, handler), meanwhile());
    EXPECT_TRUE(unwound);
  });
}

TEST(NetServe, ServesUnixListenersToo) {
  on_loop([]() -> Task<void> {
    std::string name = "@weft-serve-" + std::to_string(::getpid());
    UnixListener listener = or_throw(UnixListener::listen(name));
    int served = 0;
    auto handler = [&](UnixStream peer) -> Task<void> {
      ++served;
      auto credentials = peer.peer_credentials();
      EXPECT_EQ(or_throw(credentials).process, ::getpid());
      co_return;
    };
    auto visit = [&]() -> Task<void> {
      Result<UnixStream> peer = co_await UnixStream::connect(name);
      EXPECT_TRUE(peer.has_value());
      while (served == 0) co_await yield();
      listener.close();
    };
    co_await all_of(serve(listener, {}, handler), visit());
    EXPECT_EQ(served, 1);
  });
}

}  // namespace
