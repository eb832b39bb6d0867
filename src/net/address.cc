// SPDX-License-Identifier: MIT
#include "weft/net/address.h"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <cstring>
#include <tuple>

namespace weft::inline v0::net {

namespace {

std::unexpected<std::error_code> no(std::errc code) {
  return std::unexpected(std::make_error_code(code));
}

// The whole of `text`, as a decimal number without a sign.
template <class T>
bool to_number(std::string_view text, T& number) {
  const char* end = text.data() + text.size();
  std::from_chars_result result = std::from_chars(text.data(), end, number);
  return !text.empty() && result.ec == std::errc() && result.ptr == end;
}

sockaddr_in make_v4(in_addr host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr = host;
  return address;
}
sockaddr_in6 make_v6(const in6_addr& host, std::uint16_t port, std::uint32_t scope = 0) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = host;
  address.sin6_scope_id = scope;
  return address;
}

}  // namespace

Address Address::any_v4(std::uint16_t port) noexcept {
  return Address(make_v4({.s_addr = htonl(INADDR_ANY)}, port));
}
Address Address::loopback_v4(std::uint16_t port) noexcept {
  return Address(make_v4({.s_addr = htonl(INADDR_LOOPBACK)}, port));
}
Address Address::any_v6(std::uint16_t port) noexcept { return Address(make_v6(in6addr_any, port)); }
Address Address::loopback_v6(std::uint16_t port) noexcept {
  return Address(make_v6(in6addr_loopback, port));
}

Result<Address> Address::parse(std::string_view text) {
  std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  if (colon == text.npos || !to_number(text.substr(colon + 1), port)) {
    return no(std::errc::invalid_argument);
  }
  std::string_view host = text.substr(0, colon);
  bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets nobody can tell which colon is the port's.
  if (bracketed != host.contains(':')) return no(std::errc::invalid_argument);
  return parse_host(host, port);
}

Result<Address> Address::parse_host(std::string_view host, std::uint16_t port) {
  std::uint32_t scope = 0;
  if (std::size_t percent = host.find('%'); percent != host.npos) {
    if (!host.contains(':') || !to_number(host.substr(percent + 1), scope)) {
      return no(std::errc::invalid_argument);
    }
    host = host.substr(0, percent);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};  // inet_pton() wants an end to it
  if (host.size() >= text.size() || host.contains('\0')) return no(std::errc::invalid_argument);
  std::memcpy(text.data(), host.data(), host.size());
  if (in_addr v4; ::inet_pton(AF_INET, text.data(), &v4) == 1) return Address(make_v4(v4, port));
  if (in6_addr v6; ::inet_pton(AF_INET6, text.data(), &v6) == 1) {
    return Address(make_v6(v6, port, scope));
  }
  return no(std::errc::invalid_argument);
}

Result<Address> Address::from(const sockaddr& address, socklen_t size) noexcept {
  Address result;
  if (address.sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    std::memcpy(&result.storage_.v4, &address, sizeof(sockaddr_in));
  } else if (address.sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    std::memcpy(&result.storage_.v6, &address, sizeof(sockaddr_in6));
  } else {
    return no(std::errc::address_family_not_supported);
  }
  return result;
}

bool Address::is_loopback() const noexcept {
  if (is_v4()) return (ntohl(storage_.v4.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
}

std::uint16_t Address::port() const noexcept {
  return ntohs(is_v4() ? storage_.v4.sin_port : storage_.v6.sin6_port);
}

Address Address::with_port(std::uint16_t port) const noexcept {
  Address other = *this;
  (is_v4() ? other.storage_.v4.sin_port : other.storage_.v6.sin6_port) = htons(port);
  return other;
}

std::string Address::host() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = is_v4() ? static_cast<const void*>(&storage_.v4.sin_addr)
                              : static_cast<const void*>(&storage_.v6.sin6_addr);
  std::string name = ::inet_ntop(family(), bytes, text.data(), text.size());
  if (is_v6() && storage_.v6.sin6_scope_id != 0) {
    name += '%' + std::to_string(storage_.v6.sin6_scope_id);
  }
  return name;
}

std::string Address::to_string() const {
  return (is_v4() ? host() : '[' + host() + ']') + ':' + std::to_string(port());
}

std::strong_ordering operator<=>(const Address& a, const Address& b) noexcept {
  if (a.family() != b.family()) return a.family() <=> b.family();
  if (a.is_v4()) {
    auto key = [](const sockaddr_in& v4) {
      return std::tuple(ntohl(v4.sin_addr.s_addr), ntohs(v4.sin_port));
    };
    return key(a.storage_.v4) <=> key(b.storage_.v4);
  }
  const sockaddr_in6 &one = a.storage_.v6, &other = b.storage_.v6;
  int hosts = std::memcmp(&one.sin6_addr, &other.sin6_addr, sizeof one.sin6_addr);
  if (hosts != 0) return hosts <=> 0;
  return std::tuple(a.port(), one.sin6_scope_id) <=> std::tuple(b.port(), other.sin6_scope_id);
}
bool operator==(const Address& a, const Address& b) noexcept { return (a <=> b) == 0; }

}  // namespace weft::inline v0::net
