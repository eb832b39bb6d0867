// SPDX-License-Identifier: MIT
#include "weft/net/error.h"

#include <string>

namespace weft::inline v0::net {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft.net"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Error>(code)) {
      case Error::unexpected_end:
        return "the stream ended where more was expected";
      case Error::too_long:
        return "what was looked for did not come within the limit";
      case Error::host_not_found:
        return "no such host, or it has no address of the wanted family: check the name";
      case Error::resolver_failed:
        return "no name server was there, or gave a usable answer: check /etc/resolv.conf, or try "
               "again later";
      case Error::resolver_silent:
        return "no name server answered: check the network, and the servers in /etc/resolv.conf";
      case Error::bad_host_name:
        return "this is not the name of a host: labels of 1 to 63 bytes, with dots between them";
    }
    return "unknown error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weft::inline v0::net
