// SPDX-License-Identifier: MIT
#pragma once
// weft::net::resolve(): the addresses of a host.
//
//     Result<std::vector<Address>> where = co_await resolve("example.org", 443);
//     Result<std::vector<Address>> soon = co_await within(1s, resolve("example.org", 443));
//
// An address as text is itself, at once; "localhost", and what is below it, is this machine
// (RFC 6761, 6.3). Otherwise the hosts file is asked first, then the name
// servers, for IPv4 and IPv6 at once; over TCP, if an answer does not fit into a datagram. What
// comes is sorted by RFC 6724, the best first. Nothing is remembered: a name server nearby does
// that.
//
// c-ares does the asking, on the loop itself: no threads. It is the target weft::resolve; without
// c-ares there is none, and a program that calls this does not link.
//
// Threads        any loop that has I/O.
// Cancellation   a cancel point; its sockets are closed then.
// Errors         Error::host_not_found, bad_host_name, resolver_failed, resolver_silent;
//                std::errc::timed_out.
// Blocking       reads /etc/resolv.conf and the hosts file (the environment's CARES_HOSTS names
//                another) at each call, two small files.
// Allocation     frames, and c-ares's own.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/net/address.h"

namespace weft::inline v0::net {

enum class Family { any, v4, v6 };

struct ResolveOptions {
  Family family = Family::any;
  // For all of it: then std::errc::timed_out.
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  // That a name server has for its answer, before the next one is asked; twice as long in each
  // round.
  std::chrono::milliseconds attempt_timeout = std::chrono::seconds(2);
  int rounds = 3;                  // through all name servers. At least 1
  std::vector<Address> servers{};  // empty: those of /etc/resolv.conf
  bool search_domains = true;      // a short name may mean one in the domains of /etc/resolv.conf
};

inline constexpr std::size_t kAddressesMax = 64;  // of one host; more are left out

// (Name the options before they enter a co_await expression: g++ 12 destroys them twice there.)
[[nodiscard]] Task<Result<std::vector<Address>>> resolve(std::string host, std::uint16_t port,
                                                         ResolveOptions options);
[[nodiscard]] Task<Result<std::vector<Address>>> resolve(std::string host, std::uint16_t port);

}  // namespace weft::inline v0::net
