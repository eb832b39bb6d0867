// SPDX-License-Identifier: MIT
#pragma once
// How permessage-deflate is agreed on (RFC 7692, 7.1).
#include <optional>
#include <string>
#include <string_view>

#include "weft/http/message.h"
#include "weft/ws/limits.h"

namespace weft::inline v0::ws::detail {

// What was agreed on.
struct DeflateTerms {
  bool server_context_takeover = true;
  bool client_context_takeover = true;
  int server_window_bits = 15;
  int client_window_bits = 15;
};

// UsageError: one of them is out of its range.
void require_valid(const DeflateOptions& options);

// Whether all its Sec-WebSocket-Extensions together are what RFC 6455, 9.1 has for a list, known or not. None is well formed.
[[nodiscard]] bool extensions_are_well_formed(const http::Headers& headers);

// Requires: they are well formed.
// A server's: the first offer in `headers` that can be taken. Nothing: none can.
[[nodiscard]] std::optional<DeflateTerms> take_offer(const http::Headers& headers,
                                                     const DeflateOptions& options);
// The value of Sec-WebSocket-Extensions with which it says so.
[[nodiscard]] std::string answer_of(const DeflateTerms& terms);

// A client's.
[[nodiscard]] std::string offer_of(const DeflateOptions& options);
// Requires: they are well formed.
// Returns: false if the server's answer is none to that. `terms` stays empty if it declined.
[[nodiscard]] bool read_answer(const http::Headers& headers,
                               const std::optional<DeflateOptions>& options,
                               std::optional<DeflateTerms>& terms);

}  // namespace weft::inline v0::ws::detail
