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
        return "the peer took nothing for Limits::write_timeout";
      case Error::wrong_length:
        return "the body has another length than content_length() promised";
      case Error::upgraded:
        return "another protocol has taken the connection over";
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
