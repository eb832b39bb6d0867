// SPDX-License-Identifier: MIT
#include "weft/http/error.h"

#include <string>

namespace weft::inline v0::http {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft.http"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Error>(code)) {
      case Error::body_too_large:
        return "the body is larger than is allowed: Limits::body_bytes_max, or Body::allow() for "
               "one request";
      case Error::body_timeout:
        return "nothing came of the body for Limits::body_timeout";
      case Error::bad_body:
        return "the body is malformed";
      case Error::write_timeout:
        return "the peer took nothing for Limits::write_timeout, or less than "
               "Limits::write_rate_min";
      case Error::wrong_length:
        return "the body has another length than content_length() promised";
      case Error::upgraded:
        return "another protocol has taken the connection over";
      case Error::broken_off:
        return "an earlier write of this answer was cut off in the middle, and nothing can follow "
               "it";
      case Error::event_too_large:
        return "an event is larger than EventReader was told to take";
      case Error::bad_url:
        return "this is no URL of http or https: Url::parse() says where it goes wrong";
      case Error::bad_response:
        return "the response is malformed";
      case Error::head_too_large:
        return "the head of the response is larger than ClientLimits::head_bytes_max, or has more "
               "than "
               "ClientLimits::header_fields_max fields";
      case Error::connect_timeout:
        return "no connection came about within ClientLimits::connect_timeout";
      case Error::head_timeout:
        return "the head of the response did not come within ClientLimits::head_timeout";
      case Error::too_many_redirects:
        return "there are more redirects than ClientLimits::redirects_max";
      case Error::bad_redirect:
        return "the server redirects to what is no URL of http or https";
      case Error::no_tls:
        return "the Connector in ClientOptions::connector does not know TLS, which https needs "
               "(TcpConnector does)";
      case Error::bad_proxy:
        return "the proxy in ClientOptions::proxies (or in the environment) is no URL of http, nor "
               "host:port, nor one with user:password@ in front of the host";
      case Error::proxy_refused:
        return "the proxy refused to open a tunnel";
      case Error::proxy_wants_user:
        return "the proxy wants to know who asks, or knows nobody of that name: write "
               "http://user:password@host:port";
      case Error::bad_coding:
        return "the body is not what its content-encoding says, or ends too early";
      case Error::expanded_too_much:
        return "the body, decoded, is larger than ClientLimits::expansion_max times what was sent";
      case Error::pool_timeout:
        return "no connection to this server became free within ClientLimits::pool_timeout: allow "
               "more by connections_per_origin_max, or read responses to their end sooner";
      case Error::pool_full:
        return "ClientLimits::waiters_per_origin_max requests wait for a connection to this server "
               "already: ask for less at a time, or allow more connections by "
               "connections_per_origin_max";
    }
    return "unknown error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weft::inline v0::http
