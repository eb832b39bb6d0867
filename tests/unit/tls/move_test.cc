// SPDX-License-Identifier: MIT
// A tls::Stream goes to another loop with its transport, and with what was decrypted, or received, and not read.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "support/tls_engines.h"
#include "weft/net/unix.h"
#include "weft/tls/stream.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using Stream = tls::Stream<net::UnixStream>;

Task<std::string> read_text(Stream& stream, std::size_t bytes) {
  std::string text(bytes, '\0');
  Result<void> got = co_await net::read_exactly(stream, std::as_writable_bytes(std::span(text)));
  or_throw(got);
  co_return text;
}

TEST(TlsStream, MovesToAnotherLoopWithItsTransport) {
  EventLoop here, there;
  const tls::ClientContext client_side = client_context();
  const tls::ServerContext server_side = server_context();
  std::optional<Stream> client, server;
  auto begin = [&]() -> Task<void> {
    auto [near, far] = or_throw(net::UnixStream::pair());
    auto shaken = co_await all_of(tls::connect(std::move(near), client_side, "localhost"),
                                  tls::accept(std::move(far), server_side));
    auto [ours, theirs] = or_throw(std::move(shaken));
    client.emplace(std::move(ours));
    server.emplace(std::move(theirs));
    // One record, of which a part is read here: the rest of it is plaintext in the stream. Another one is in the kernel.
    Result<void> sent = co_await net::write_all(*client, "abcdef");
    or_throw(sent);
    std::string text = co_await read_text(*server, 2);
    EXPECT_EQ(text, "ab");
    sent = co_await net::write_all(*client, "ghi");
    or_throw(sent);
    server->transport().move_to(there);
    client->transport().move_to(there);
  };
  run(here, begin());
  auto go_on = [&]() -> Task<void> {
    std::string text = co_await read_text(*server, 7);
    EXPECT_EQ(text, "cdefghi");
    // Both ways, and to a proper end.
    Result<void> sent = co_await net::write_all(*server, "answer");
    or_throw(sent);
    text = co_await read_text(*client, 6);
    EXPECT_EQ(text, "answer");
    Result<void> ended = co_await server->shutdown_write();
    or_throw(ended);
    std::array<std::byte, 1> one;
    Result<std::size_t> count = co_await client->read_some(one);
    EXPECT_EQ(or_throw(count), 0u);
  };
  run(there, go_on());
}

TEST(TlsStream, IsRefusedOnTheLoopThatItHasLeft) {
  EventLoop here, there;
  const tls::ClientContext client_side = client_context();
  const tls::ServerContext server_side = server_context();
  auto body = [&]() -> Task<void> {
    auto [near, far] = or_throw(net::UnixStream::pair());
    auto shaken = co_await all_of(tls::connect(std::move(near), client_side, "localhost"),
                                  tls::accept(std::move(far), server_side));
    auto [ours, theirs] = or_throw(std::move(shaken));
    theirs.transport().move_to(there);
    bool is_refused = false;
    try {
      std::array<std::byte, 1> one;
      [[maybe_unused]] Result<std::size_t> count = co_await theirs.read_some(one);
    } catch (const UsageError&) {
      is_refused = true;
    }
    EXPECT_TRUE(is_refused);
  };
  run(here, body());
}

}  // namespace
