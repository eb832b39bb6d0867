// SPDX-License-Identifier: MIT
#pragma once
// weft::ws::Error: why there are no more messages, or no connection. A std::error_code, as net::Error.
#include <system_error>
#include <type_traits>

namespace weft::inline v0::ws {

enum class Error {
  closed = 1,       // properly: both sides have said so. Connection::closed() has the code
  protocol_error,   // the peer broke a rule of RFC 6455: 1002
  bad_text,         // not UTF-8: 1007; or what was to be sent is not
  bad_data,         // it does not inflate: 1007
  message_too_big,  // Limits::message_bytes_max, frame_bytes_max: 1009
  pong_timeout,     // Limits::pong_timeout
  close_timeout,    // Limits::close_timeout
  write_timeout,    // Limits::write_timeout
  internal_error,   // the program's own coroutine threw: 1011
  refused,          // the server's answer was not 101: ClientOptions::on_refused is told
  bad_handshake,    // it was, but not the answer to our request
  bad_url,          // of a scheme that is not ws or wss, with a fragment, or no URL at all
};

[[nodiscard]] const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(Error error) noexcept {
  return std::error_code(static_cast<int>(error), error_category());
}

}  // namespace weft::inline v0::ws

template <>
struct std::is_error_code_enum<weft::ws::Error> : std::true_type {};
