// SPDX-License-Identifier: MIT
#pragma once
// weft::tls::Error: why TLS said no, in classes that a program may want to tell apart.
//
//     if (got.error() == tls::Error::truncated) …
//
// The message says what can be done about it. What OpenSSL had to say in detail, and about which host, is
// in Stream::failure(). Errors of the transport pass through as they are.
#include <system_error>
#include <type_traits>

namespace weft::inline v0::tls {

enum class Error {
  // The connection.
  truncated = 1,        // the transport ended without close_notify
  closed_in_handshake,  // the peer left before the handshake was done
  protocol_violation,   // what came is no TLS, or was changed on its way
  peer_reported,        // the peer sent a fatal alert that has no name here

  // What both must agree on.
  no_common_version,
  no_common_parameters,  // ciphers, groups or signatures
  no_application_protocol,

  // The peer's certificate.
  certificate_missing,
  certificate_expired,
  certificate_not_yet_valid,
  certificate_self_signed,
  certificate_unknown_authority,
  certificate_wrong_host,
  certificate_revoked,
  certificate_refused,  // for another reason

  // Ours.
  own_certificate_refused,  // by the peer
  bad_certificate,          // not PEM, or nothing in it
  bad_key,
  key_does_not_match,
  bad_roots,

  out_of_memory,
};

[[nodiscard]] const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(Error error) noexcept {
  return std::error_code(static_cast<int>(error), error_category());
}

}  // namespace weft::inline v0::tls

template <>
struct std::is_error_code_enum<weft::tls::Error> : std::true_type {};
