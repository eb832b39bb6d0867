// SPDX-License-Identifier: MIT
// What a read and a write cost in memory: frames, and what OpenSSL itself wants.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "support/counted_allocations.h"
#include "support/tls_engines.h"
#include "weft/net/tcp.h"
#include "weft/tls/stream.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;

TEST(TlsAllocation, NoneOfOursPerReadAndWrite) {
  EventLoop loop;
  auto root = [&]() -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    net::Address where = or_throw(listener.local_address());
    auto both = co_await all_of(net::TcpStream::connect(where), listener.accept());
    auto [ours, theirs] = or_throw(std::move(both));
    auto shaken = co_await all_of(tls::connect(std::move(ours), client_context(), "localhost"),
                                  tls::accept(std::move(theirs), server_context()));
    auto [client, server] = or_throw(std::move(shaken));

    std::array<std::byte, 1000> request{}, buffer;
    const std::string head(200, 'h'), body(2000, 'b');
    auto once = [&]() -> Task<void> {
      Result<void> asked = co_await net::write_all(client, std::span<const std::byte>(request));
      or_throw(asked);
      Result<void> got = co_await net::read_exactly(server, std::span<std::byte>(buffer));
      or_throw(got);
      std::array<net::Part, 2> parts{net::Part(head), net::Part(body)};
      std::span<net::Part> rest = parts;
      Result<void> answered = co_await net::write_all(server, rest);
      or_throw(answered);
      std::array<std::byte, 2200> answer;
      got = co_await net::read_exactly(client, std::span<std::byte>(answer));
      or_throw(got);
    };
    for (int i = 0; i < 10; ++i) co_await once();  // tickets, pools and stocks
    CountedAllocations counted;
    for (int i = 0; i < 100; ++i) co_await once();
    EXPECT_EQ(counted.news(), 0u);
    EXPECT_GT(counted.blocks(), 0u);
  };
  run(loop, root());
}

}  // namespace
