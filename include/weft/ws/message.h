// SPDX-License-Identifier: MIT
#pragma once
// weft::ws::Message, Close: what comes over a connection, and how it ends.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weft::inline v0::ws {

enum class Kind : std::uint8_t { text, binary };

// Whole, however many frames it came in. A text is UTF-8.
struct Message {
  Message() noexcept = default;
  Message(Kind of_kind, std::string bytes) noexcept : kind(of_kind), data(std::move(bytes)) {}

  [[nodiscard]] bool is_text() const noexcept { return kind == Kind::text; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span(data));
  }
  friend bool operator==(const Message&, const Message&) = default;

  Kind kind = Kind::text;
  std::string data;
};

// RFC 6455, 7.4. A program's own are 4000 to 4999; 3000 to 3999 are registered for libraries.
using CloseCode = std::uint16_t;
namespace close_codes {
inline constexpr CloseCode normal = 1000;
inline constexpr CloseCode going_away = 1001;
inline constexpr CloseCode protocol_error = 1002;
inline constexpr CloseCode unsupported_data = 1003;
inline constexpr CloseCode no_status = 1005;  // never sent: a Close frame without a code
inline constexpr CloseCode lost = 1006;       // never sent: no Close frame came
inline constexpr CloseCode bad_data = 1007;
inline constexpr CloseCode policy_violation = 1008;
inline constexpr CloseCode message_too_big = 1009;
inline constexpr CloseCode extension_missing = 1010;
inline constexpr CloseCode internal_error = 1011;
inline constexpr CloseCode service_restart = 1012;
inline constexpr CloseCode try_again_later = 1013;
inline constexpr CloseCode bad_gateway = 1014;
}  // namespace close_codes

// Whether a Close frame may have it.
[[nodiscard]] constexpr bool is_sendable(CloseCode code) noexcept {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}
inline constexpr std::size_t kCloseReasonBytesMax = 123;

struct Close {
  Close() noexcept = default;
  Close(CloseCode with_code, std::string because) noexcept
      : code(with_code), reason(std::move(because)) {}
  friend bool operator==(const Close&, const Close&) = default;

  CloseCode code = close_codes::lost;
  std::string reason;
};

}  // namespace weft::inline v0::ws
