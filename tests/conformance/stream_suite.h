// SPDX-License-Identifier: MIT
#pragma once
// The examination of a net::Stream, whatever carries it.
//
//     struct Tcp { static Task<…> connect(); };        two ends that are connected
//
// Each kind names itself, and makes two connected ends on the current loop.
#include <string>
#include <utility>

#include "driver_fixture.h"
#include "weft/net/memory_stream.h"
#include "weft/net/tcp.h"
#include "weft/net/unix.h"

#ifdef WEFT_HAS_TLS
#include "support/tls_engines.h"
#include "weft/tls/stream.h"
#endif

namespace weft::test {

// So that writes have to wait, as those over a network do.
inline void make_small(net::StreamSocket& socket) {
  int bytes = 16 * 1024;
  int number = socket.descriptor().number();
  checked(::setsockopt(number, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), "SO_SNDBUF");
}

struct OverTcp {
  using Stream = net::TcpStream;
  static Task<std::pair<Stream, Stream>> connect() {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    net::Address where = or_throw(listener.local_address());
    auto both = co_await all_of(net::TcpStream::connect(where), listener.accept());
    auto [ours, theirs] = or_throw(std::move(both));
    make_small(ours);
    make_small(theirs);
    co_return std::pair(std::move(ours), std::move(theirs));
  }
};

struct OverUnix {
  using Stream = net::UnixStream;
  static Task<std::pair<Stream, Stream>> connect() {
    auto both = or_throw(net::UnixStream::pair());
    make_small(both.first);
    make_small(both.second);
    co_return both;
  }
};

struct OverMemory {
  using Stream = net::MemoryStream;
  static Task<std::pair<Stream, Stream>> connect() { co_return net::memory_streams(); }
};

// Three bytes at a time, through a pipe of seven.
struct OverTornMemory {
  using Stream = net::MemoryStream;
  static Task<std::pair<Stream, Stream>> connect() {
    net::MemoryStreamOptions options{.bytes_max = 7, .read_bytes_max = 3, .write_bytes_max = 5};
    co_return net::memory_streams(options);
  }
};

// What the peer of an end that is closed without a word reads.
template <class Kind>
std::error_code after_close() {
  if constexpr (requires { Kind::after_close(); }) {
    return Kind::after_close();
  } else {
    return {};  // the end
  }
}

#ifdef WEFT_HAS_TLS
// As torn as a record allows for that is to be on its way while nobody reads.
struct OverTornRecords {
  using Stream = net::MemoryStream;
  static Task<std::pair<Stream, Stream>> connect() {
    net::MemoryStreamOptions options{
        .bytes_max = 997, .read_bytes_max = 101, .write_bytes_max = 71};
    co_return net::memory_streams(options);
  }
};

// TLS over another kind.
template <class Kind>
struct OverTls {
  using Stream = tls::Stream<typename Kind::Stream>;
  static Task<std::pair<Stream, Stream>> connect() {
    static const tls::ClientContext client_side = client_context();
    static const tls::ServerContext server_side = server_context();
    auto both = co_await Kind::connect();
    auto shaken = co_await all_of(tls::connect(std::move(both.first), client_side, "localhost"),
                                  tls::accept(std::move(both.second), server_side));
    auto [ours, theirs] = or_throw(std::move(shaken));
    co_return std::pair(std::move(ours), std::move(theirs));
  }
  static std::error_code after_close() { return tls::Error::truncated; }
};
#endif

}  // namespace weft::test
