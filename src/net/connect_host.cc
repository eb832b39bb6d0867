// SPDX-License-Identifier: MIT
// TcpStream::connect() by a host's name: part of weft::resolve.
#include "connect_race.h"
#include "weft/net/connect.h"
#include "weft/net/resolver.h"

namespace weft::inline v0::net {

namespace {

Task<void> look_up(detail::ConnectRace& race, std::string host, std::uint16_t port,
                   ResolveOptions options) {
  Family family = options.family;
  Result<std::vector<Address>> addresses =
      co_await resolve(std::move(host), port, std::move(options));
  race.found(family, std::move(addresses));
}

}  // namespace

Task<Result<TcpStream>> TcpStream::connect(std::string host, std::uint16_t port) {
  return connect(std::move(host), port, ConnectOptions());
}

Task<Result<TcpStream>> TcpStream::connect(std::string host, std::uint16_t port,
                                           ConnectOptions options) {
  detail::ConnectRace race(options);
  std::vector<Task<void>> lookups;
  // Two questions and not one for both: a server that is slow with the one must not hold up the
  // other.
  for (Family family : {Family::v6, Family::v4}) {
    if (options.resolve.family != Family::any && options.resolve.family != family) continue;
    ResolveOptions one = options.resolve;
    one.family = family;
    race.expect(family);
    lookups.push_back(look_up(race, host, port, std::move(one)));
  }
  co_return co_await race.run(std::move(lookups));
}

}  // namespace weft::inline v0::net
