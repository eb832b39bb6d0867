// SPDX-License-Identifier: MIT
#pragma once
// weft::net::connect_any(): a connection to whichever of several addresses answers first.
//
//     Result<TcpStream> peer = co_await within(5s, TcpStream::connect("example.org", 443));
//
//     std::vector<ConnectAttempt> attempts;
//     ConnectOptions options{.attempts = &attempts};        // says which failed, and how
//     Result<TcpStream> peer = co_await connect_any(addresses, options);
//
// Happy eyeballs (RFC 8305): one attempt after the other, IPv6 and IPv4 in turn, each begun when
// the one before it has failed, or has not succeeded within attempt_delay. The first that succeeds
// wins; the others are cancelled and closed before this returns. TcpStream::connect() by a name
// resolves both families at once, and begins with what it has: with IPv6 as soon as that is there,
// with IPv4 alone after resolution_delay.
//
// Cancellation   a cancel point; every attempt is cancelled and closed.
// Errors         that of the attempt that failed first; if there was none, the resolver's.
//                `attempts` has all.
// Allocation     frames.
#include <chrono>
#include <system_error>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/net/address.h"
#include "weft/net/resolver.h"
#include "weft/net/tcp.h"

namespace weft::inline v0::net {

struct ConnectAttempt {
  Address where;
  // None: it has won. operation_canceled: another one has. operation_in_progress: all of it was
  // cancelled.
  std::error_code error;
};

struct ConnectOptions {
  TcpOptions connection{};
  ResolveOptions resolve{};  // where a name is given
  std::chrono::milliseconds attempt_delay{250};
  std::chrono::milliseconds resolution_delay{50};
  // Is told of each attempt when it begins and when it ends. Must live until then.
  std::vector<ConnectAttempt>* attempts = nullptr;
};

// host_not_found: `addresses` is empty. (As with resolve(), name the options first.)
[[nodiscard]] Task<Result<TcpStream>> connect_any(std::vector<Address> addresses,
                                                  ConnectOptions options);
[[nodiscard]] Task<Result<TcpStream>> connect_any(std::vector<Address> addresses);

}  // namespace weft::inline v0::net
