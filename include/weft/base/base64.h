// SPDX-License-Identifier: MIT
#pragma once
// Base64 by RFC 4648, section 4: the standard alphabet, with its padding.
#include <optional>
#include <string>
#include <string_view>

namespace weft::inline v0::detail {

[[nodiscard]] std::string base64_encoded(std::string_view bytes);
// Nothing: it is not that, or not as base64_encoded() writes it.
[[nodiscard]] std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace weft::inline v0::detail
