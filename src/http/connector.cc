// SPDX-License-Identifier: MIT
#include "weft/http/connector.h"

#include <poll.h>

#include "transport_stream.h"
#include "weft/core/ok.h"
#include "weft/http/error.h"
#include "weft/net/tcp.h"
#include "weft/tls/stream.h"

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
  net::ConnectOptions how = options_.connect;
  net::TcpStream stream = co_await ok(net::TcpStream::connect(where.host, where.port, how));
  if (where.scheme == Scheme::http) {
    co_return std::make_unique<StreamTransport<net::TcpStream>>(std::move(stream));
  }
  co_return co_await shake_hands(std::move(stream), where.host);
}

Task<Result<std::unique_ptr<Transport>>> TcpConnector::secure(std::unique_ptr<Transport> tunnel,
                                                              const Endpoint& where) {
  co_return co_await shake_hands(detail::TransportStream(std::move(tunnel)), where.host);
}

template <net::Stream S>
Task<Result<std::unique_ptr<Transport>>> TcpConnector::shake_hands(S stream, std::string host) {
  if (!options_.tls) {
    tls::ClientOptions defaults{.alpn = {"http/1.1"}};
    Result<tls::ClientContext> made = tls::ClientContext::create(std::move(defaults));
    if (!made) co_return std::unexpected(made.error());
    options_.tls = std::move(*made);
  }
  tls::Stream<S> secure =
      co_await ok(tls::connect(std::move(stream), *options_.tls, std::move(host)));
  if (!detail::is_http1(secure.alpn())) {
    co_return std::unexpected(make_error_code(tls::Error::no_application_protocol));
  }
  co_return std::make_unique<StreamTransport<tls::Stream<S>>>(std::move(secure));
}

}  // namespace weft::inline v0::http
