// SPDX-License-Identifier: MIT
#pragma once
// The words of the opening handshake (RFC 6455, 4).
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "weft/http/message.h"

namespace weft::inline v0::ws::detail {

// 16 random bytes in base64.
[[nodiscard]] std::string new_key();
// Whether it is 16 bytes in base64.
[[nodiscard]] bool is_key(std::string_view key);
// The Sec-WebSocket-Accept of a key.
[[nodiscard]] std::string accept_of(std::string_view key);

// Whether it is a token (RFC 9110, 5.6.2).
[[nodiscard]] bool is_token(std::string_view text) noexcept;
// How many fields have that name.
[[nodiscard]] std::size_t count_of(const http::Headers& headers, std::string_view name);
// UsageError: one of them is no token, or there twice (RFC 6455, 4.1, 10).
void require_subprotocols(std::span<const std::string> names);

// Takes the next of a list that is parted by commas, without the space around it. Returns: false at the end.
[[nodiscard]] bool take_item(std::string_view& list, std::string_view& item, char comma = ',');

}  // namespace weft::inline v0::ws::detail
