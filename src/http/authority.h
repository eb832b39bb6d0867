// SPDX-License-Identifier: MIT
#pragma once
// is_authority(): whether a Host field, or the authority of a target, is one.
#include <cstdint>
#include <string_view>

#include "characters.h"

namespace weft::inline v0::http::detail {

// RFC 3986, 3.2.2: reg-name without its escapes. Not the comma, which only a list that somebody joined would have.
inline constexpr CharacterSet kHostCharacters = letters_digits_and("-._~!$&'()*+;=");

// RFC 3986, 3.2.3: digits, or none.
[[nodiscard]] constexpr bool is_port(std::string_view digits) noexcept {
  constexpr std::uint32_t kPortMax = 65535;
  std::uint32_t number = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<std::uint32_t>(c - '0');
    if (number > kPortMax) return false;
  }
  return true;
}

// Of what has an escape in it, or an address in brackets.
[[nodiscard]] bool is_rare_authority(std::string_view text) noexcept;

// RFC 9110, 7.2: uri-host [ ":" port ], and RFC 9110, 4.2.1: the host is not empty. One pass over what is usual.
[[nodiscard]] inline bool is_authority(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size() && is_in(kHostCharacters, text[at])) ++at;
  if (at == text.size()) return at > 0;
  if (text[at] == ':') return at > 0 && is_port(text.substr(at + 1));
  return is_rare_authority(text);
}

}  // namespace weft::inline v0::http::detail
