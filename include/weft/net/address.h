// SPDX-License-Identifier: MIT
#pragma once
// weft::net::Address: an IP address and a port, as text and as the kernel wants it.
//
//     Result<Address> where = Address::parse("[::1]:8080");
//     Address any = Address::any_v4(8080);
//
// Names of hosts are resolve()'s; paths of Unix sockets are UnixStream's.
//
// Threads        a value: as an int.
// Allocation     none, but the strings it returns.
#include <netinet/in.h>
#include <sys/socket.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::inline v0::net {

class Address {
 public:
  // 0.0.0.0:0
  Address() noexcept : Address(any_v4(0)) {}

  [[nodiscard]] static Address any_v4(std::uint16_t port) noexcept;
  [[nodiscard]] static Address any_v6(std::uint16_t port) noexcept;
  [[nodiscard]] static Address loopback_v4(std::uint16_t port) noexcept;
  [[nodiscard]] static Address loopback_v6(std::uint16_t port) noexcept;

  // "192.0.2.1:80", "[2001:db8::1]:80", "[fe80::1%2]:80" (a scope by its number). Anything else, a name of a host or of
  // a port too: std::errc::invalid_argument.
  [[nodiscard]] static Result<Address> parse(std::string_view text);
  // The same without the port, and without brackets.
  [[nodiscard]] static Result<Address> parse_host(std::string_view host, std::uint16_t port);

  // What the kernel filled in. address_family_not_supported: neither AF_INET nor AF_INET6.
  [[nodiscard]] static Result<Address> from(const sockaddr& address, socklen_t size) noexcept;

  [[nodiscard]] bool is_v4() const noexcept { return storage_.any.sa_family == AF_INET; }
  [[nodiscard]] bool is_v6() const noexcept { return storage_.any.sa_family == AF_INET6; }
  [[nodiscard]] int family() const noexcept { return storage_.any.sa_family; }
  // 127.0.0.0/8 or ::1.
  [[nodiscard]] bool is_loopback() const noexcept;
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] Address with_port(std::uint16_t port) const noexcept;

  // As parse() reads it.
  [[nodiscard]] std::string to_string() const;
  // Without the port, and without brackets.
  [[nodiscard]] std::string host() const;

  [[nodiscard]] const sockaddr& native() const noexcept { return storage_.any; }
  [[nodiscard]] socklen_t native_size() const noexcept {
    return is_v4() ? sizeof storage_.v4 : sizeof storage_.v6;
  }

  friend bool operator==(const Address& a, const Address& b) noexcept;
  // By family, host, port, scope: any order that is one.
  friend std::strong_ordering operator<=>(const Address& a, const Address& b) noexcept;

 private:
  union Storage {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  explicit Address(const sockaddr_in& v4) noexcept { storage_.v4 = v4; }
  explicit Address(const sockaddr_in6& v6) noexcept { storage_.v6 = v6; }

  Storage storage_{.v6 = {}};
};

}  // namespace weft::inline v0::net
