// SPDX-License-Identifier: MIT
#pragma once
// The words of the opening handshake (RFC 6455, 4).
#include <string>
#include <string_view>

namespace weft::inline v0::ws::detail {

// 16 random bytes in base64.
[[nodiscard]] std::string new_key();
// Whether it is 16 bytes in base64.
[[nodiscard]] bool is_key(std::string_view key) noexcept;
// The Sec-WebSocket-Accept of a key.
[[nodiscard]] std::string accept_of(std::string_view key);

// Takes the next of a list that is parted by commas, without the space around it. Returns: false at the end.
[[nodiscard]] bool take_item(std::string_view& list, std::string_view& item, char comma = ',');

}  // namespace weft::inline v0::ws::detail
