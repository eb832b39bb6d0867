// SPDX-License-Identifier: MIT
#include "weft/tls/error.h"

#include <string>

namespace weft::inline v0::tls {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft.tls"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Error>(code)) {
      case Error::truncated:
        return "the connection ended without close_notify: what was read may be incomplete, do not "
               "use it as a whole";
      case Error::closed_in_handshake:
        return "the peer closed the connection during the handshake: its log may say why";
      case Error::protocol_violation:
        return "what came is not TLS, or was changed on its way: does the peer speak TLS on this "
               "port?";
      case Error::peer_reported:
        return "the peer ended the connection with a fatal alert: its log may say why";
      case Error::no_common_version:
        return "no common TLS version: this end speaks 1.2 and 1.3, and of those what its options "
               "allow";
      case Error::no_common_parameters:
        return "no common cipher, group or signature algorithm: update the older end";
      case Error::no_application_protocol:
        return "no common application protocol: compare the ALPN lists of both ends";
      case Error::certificate_missing:
        return "the peer showed no certificate, and one is required: give it one";
      case Error::certificate_expired:
        return "the peer's certificate has expired: renew it there";
      case Error::certificate_not_yet_valid:
        return "the peer's certificate is not valid yet: compare the clocks";
      case Error::certificate_self_signed:
        return "the peer's certificate is self-signed: if it is the right one, add it to roots_pem";
      case Error::certificate_unknown_authority:
        return "no known root vouches for the peer's certificate: add its root to roots_pem, or "
               "the intermediates to what the peer sends";
      case Error::certificate_wrong_host:
        return "the peer's certificate is for another host: connect by a name that is in it";
      case Error::certificate_revoked:
        return "the peer's certificate was revoked: do not trust it";
      case Error::certificate_refused:
        return "the peer's certificate was refused: failure() has the reason";
      case Error::own_certificate_refused:
        return "the peer refused our certificate: is its root known there, and is it still valid?";
      case Error::bad_certificate:
        return "no certificate could be read: it must be PEM, the server's own first";
      case Error::bad_key:
        return "no private key could be read: it must be PEM, without a passphrase";
      case Error::key_does_not_match:
        return "the private key belongs to another certificate";
      case Error::bad_roots:
        return "no root certificate could be read: they must be PEM";
      case Error::out_of_memory:
        return "OpenSSL had no memory left";
    }
    return "unknown error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weft::inline v0::tls
