// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "weft/http/client.h"

namespace weft::test {

// "status body", or what the error says.
inline Task<std::string> fetch(http::Client& client, std::string where) {
  Result<http::ClientResponse> response = co_await client.get(where);
  if (!response) co_return response.error().message();
  Result<std::string> body = co_await response->body().read_all();
  co_return body ? std::to_string(response->status()) + " " + *body : body.error().message();
}

}  // namespace weft::test
