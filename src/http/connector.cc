// SPDX-License-Identifier: MIT
#include "weft/http/connector.h"

#include <poll.h>

#include "weft/core/ok.h"
#include "weft/http/error.h"

namespace weft::inline v0::http {

bool detail::is_quiet(const Descriptor& socket) noexcept {
  if (!socket || socket.has_read_ahead()) return false;
  pollfd ask{.fd = socket.number(), .events = POLLIN | POLLRDHUP, .revents = 0};
  return ::poll(&ask, 1, 0) == 0;
}

Task<Result<std::unique_ptr<Transport>>> Connector::secure(std::unique_ptr<Transport>,
                                                           const Endpoint&) {
  co_return std::unexpected(make_error_code(Error::no_tls));
}

Task<Result<std::unique_ptr<Transport>>> TcpConnector::connect(const Endpoint& where) {
  if (where.scheme == Scheme::https) co_return std::unexpected(make_error_code(Error::no_tls));
  Result<net::Address> address = where.host == "localhost"
                                     ? Result<net::Address>(net::Address::loopback_v4(where.port))
                                     : net::Address::parse_host(where.host, where.port);
  if (!address) co_return std::unexpected(make_error_code(Error::unknown_host));
  net::TcpStream stream = co_await ok(net::TcpStream::connect(*address, options_));
  co_return std::make_unique<StreamTransport<net::TcpStream>>(std::move(stream));
}

}  // namespace weft::inline v0::http
