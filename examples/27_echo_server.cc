// SPDX-License-Identifier: MIT
// An echo server, and a client that talks to it, cancels a read, and goes on.
//
// Run: build/release/examples/27_echo_server
// See: what was sent comes back; a read that ran out of time has taken nothing; the server ends when its listener closes.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include "weft/net/serve.h"
#include "weft/net/tcp.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [echo]
Task<void> echo(net::TcpStream peer) {
  std::array<std::byte, 4096> buffer;
  while (true) {
    Result<std::size_t> count = co_await peer.read_some(buffer);
    if (!count || *count == 0) co_return;  // it has gone: by a reset, or in peace
    std::span<const std::byte> rest = std::span(buffer).first(*count);
    Result<void> sent = co_await net::write_all(peer, rest);
    if (!sent) co_return;
  }
}
// [/echo]

// [client]
Task<Result<void>> talk(net::Address where) {
  net::TcpStream stream = co_await ok(within(2s, net::TcpStream::connect(where)));
  std::array<std::byte, 4096> buffer;
  // Nothing was sent, so nothing comes: the time runs out, and the stream is as it was.
  Result<std::size_t> early = co_await within(10ms, stream.read_some(buffer));
  std::printf("before: %s\n", early ? "something" : early.error().message().c_str());
  for (const char* word : {"weft", "is", "listening"}) {
    co_await ok(net::write_all(stream, std::string_view(word)));
    std::size_t count = co_await ok(stream.read_some(buffer));
    std::printf("echo: %.*s\n", static_cast<int>(count), reinterpret_cast<char*>(buffer.data()));
  }
  co_return {};
}
// [/client]

Task<void> run_both() {
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  net::Address where = or_throw(listener.local_address());
  auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(net::serve(listener, {.connections_max = 100}, echo));
    Result<void> talked = co_await talk(where);
    if (!talked) std::printf("the client failed: %s\n", talked.error().message().c_str());
    listener.close();  // no more connections; those that are there end with their peers
    co_return join;
  };
  co_await with_nursery(both);
  std::puts("all have gone");
}

int main() {
  EventLoop loop;
  run(loop, run_both());
}
