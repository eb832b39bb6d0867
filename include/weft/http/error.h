// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Error: what goes wrong in this room and has no errno. A std::error_code, as net::Error.
#include <system_error>
#include <type_traits>

namespace weft::inline v0::http {

enum class Error {
  body_too_large = 1,  // Limits::body_bytes_max, or Body::allow()
  body_timeout,        // Limits::body_timeout
  bad_body,            // its chunks are malformed
  write_timeout,       // Limits::write_timeout, or slower than write_rate_min
  wrong_length,        // more, or less, than content_length() said
  upgraded,            // another protocol has taken over
  broken_off,          // an earlier write of this answer was cut off in the middle
  event_too_large,     // EventReader's bytes_max

  // The client's.
  bad_url,             // Url::parse() says where
  bad_response,        // malformed, or one that can be read in two ways
  head_too_large,      // ClientLimits::head_bytes_max or header_fields_max
  connect_timeout,     // ClientLimits::connect_timeout
  head_timeout,        // ClientLimits::head_timeout
  too_many_redirects,  // ClientLimits::redirects_max
  bad_redirect,        // to what is no URL of http or https
  no_tls,              // https without a Connector that knows TLS
  bad_proxy,           // its URL, in Proxies
  proxy_refused,       // to open a tunnel
  proxy_wants_user,    // before it does
  bad_coding,          // the body is not what its content-encoding says
  expanded_too_much,   // ClientLimits::expansion_max
  pool_timeout,        // ClientLimits::pool_timeout
  pool_full,           // ClientLimits::waiters_per_origin_max
};

[[nodiscard]] const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(Error error) noexcept {
  return std::error_code(static_cast<int>(error), error_category());
}

}  // namespace weft::inline v0::http

template <>
struct std::is_error_code_enum<weft::http::Error> : std::true_type {};
