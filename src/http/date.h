// SPDX-License-Identifier: MIT
#pragma once
// Dates as HTTP writes them, whatever the locale.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::inline v0::http::detail {

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7), from seconds since 1970.
[[nodiscard]] std::string http_date(std::int64_t seconds);
// Also the two obsolete forms. Nothing: it is no date.
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text);
// "06/Nov/1994:08:49:37 +0000", as access logs have it.
[[nodiscard]] std::string log_date(std::int64_t seconds);

}  // namespace weft::inline v0::http::detail
