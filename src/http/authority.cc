// SPDX-License-Identifier: MIT
#include "authority.h"

#include <algorithm>

#include "weft/net/address.h"

namespace weft::inline v0::http::detail {

namespace {

bool is_hex(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_name(std::string_view host) noexcept {
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] == '%') {
      if (i + 2 >= host.size() || !is_hex(host[i + 1]) || !is_hex(host[i + 2])) return false;
      i += 2;
    } else if (!is_in(kHostCharacters, host[i])) {
      return false;
    }
  }
  return !host.empty();
}

// RFC 3986, 3.2.2: IPvFuture.
bool is_future_address(std::string_view text) noexcept {
  if (!text.starts_with('v') && !text.starts_with('V')) return false;
  std::size_t dot = text.find('.');
  if (dot == text.npos || dot == 1 || dot + 1 == text.size()) return false;
  auto is_part = [](char c) { return c == ':' || is_in(kHostCharacters, c); };
  return std::ranges::all_of(text.substr(1, dot - 1), is_hex) &&
         std::ranges::all_of(text.substr(dot + 1), is_part);
}

// A scope is the sender's own business (RFC 6874 was withdrawn by RFC 9844).
bool is_address(std::string_view inside) noexcept {
  if (is_future_address(inside)) return true;
  constexpr std::size_t kTextMax = 45;  // "ffff:…:255.255.255.255"
  if (inside.size() > kTextMax || inside.find('%') != inside.npos) return false;
  Result<net::Address> address = net::Address::parse_host(inside, 0);
  return address && address->is_v6();
}

}  // namespace

bool is_rare_authority(std::string_view text) noexcept {
  bool has_brackets = text.starts_with('[');
  std::size_t end = has_brackets ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == text.npos) return false;
  if (has_brackets ? !is_address(text.substr(1, end - 1)) : !is_name(text.substr(0, end))) {
    return false;
  }
  text.remove_prefix(has_brackets ? end + 1 : end);
  return text.empty() || (text.front() == ':' && is_port(text.substr(1)));
}

}  // namespace weft::inline v0::http::detail
