// SPDX-License-Identifier: MIT
#pragma once
// Which characters HTTP has where, as tables.
#include <array>
#include <cstddef>
#include <string_view>

namespace weft::inline v0::http::detail {

using CharacterSet = std::array<bool, 256>;

[[nodiscard]] consteval CharacterSet letters_digits_and(std::string_view marks) {
  CharacterSet is{};
  for (char c = '0'; c <= '9'; ++c) is[static_cast<unsigned char>(c)] = true;
  for (char c = 'a'; c <= 'z'; ++c) is[static_cast<unsigned char>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) is[static_cast<unsigned char>(c)] = true;
  for (char c : marks) is[static_cast<unsigned char>(c)] = true;
  return is;
}

// RFC 9110, 5.6.2.
inline constexpr CharacterSet kTokenCharacters = letters_digits_and("!#$%&'*+-.^_`|~");

// RFC 9110, 5.5: no control characters but the tab.
inline constexpr CharacterSet kValueCharacters = [] {
  CharacterSet is{};
  for (std::size_t c = 0; c < is.size(); ++c) is[c] = (c >= 0x20 && c != 0x7f) || c == '\t';
  return is;
}();

[[nodiscard]] constexpr bool is_in(const CharacterSet& set, char c) noexcept {
  return set[static_cast<unsigned char>(c)];
}

// Of every character, and not only until the first that is wrong: so it has no branches, and is done in a few instructions.
[[nodiscard]] constexpr bool all_in(const CharacterSet& set, std::string_view text) noexcept {
  bool all = true;
  for (char c : text) all &= is_in(set, c);
  return all;
}

// OWS and BWS.
[[nodiscard]] constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace weft::inline v0::http::detail
