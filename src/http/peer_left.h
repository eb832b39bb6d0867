// SPDX-License-Identifier: MIT
#pragma once
// Whether an error of a transport says that the peer has ended the connection where it should have gone on.
#include <system_error>

#include "weft/net/error.h"
#include "weft/tls/error.h"

namespace weft::inline v0::http::detail {

[[nodiscard]] inline bool peer_left(const std::error_code& error) noexcept {
  return error == net::Error::unexpected_end || error == tls::Error::truncated ||
         error == std::errc::connection_reset || error == std::errc::broken_pipe;
}

}  // namespace weft::inline v0::http::detail
