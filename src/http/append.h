// SPDX-License-Identifier: MIT
#pragma once
// append(): several pieces behind a text, with one look at the room that there is.
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace weft::inline v0::http::detail {

// Requires: no piece lies in `text`.
template <std::convertible_to<std::string_view>... Pieces>
[[gnu::always_inline]] inline void append(std::string& text, const Pieces&... pieces) {
  [](std::string& to, auto... views) {
    const std::size_t old = to.size();
    // What it is called with is no use: libstdc++ 12 hands over the capacity.
    to.resize_and_overwrite((old + ... + views.size()), [&](char* begin, std::size_t) noexcept {
      char* at = begin + old;
      ((at += views.copy(at, views.size())), ...);
      return static_cast<std::size_t>(at - begin);
    });
  }(text, std::string_view(pieces)...);
}

}  // namespace weft::inline v0::http::detail
