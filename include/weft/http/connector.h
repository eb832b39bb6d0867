// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Connector: how a Client comes by its connections. TcpConnector: over TCP, and TLS for https.
//
//     tls::ClientContext trusts = or_throw(tls::ClientContext::create({.roots_pem = our_root, .alpn = {"http/1.1"}}));
//     Client client({.connector = std::make_shared<TcpConnector>(ConnectorOptions{.tls = trusts})});
//
// One of your own makes a Client speak over Unix sockets, through a tunnel, or to a server in the same process.
//
// Threads        the Client's loop.
// Cancellation   a cancelled connect() leaves nothing open.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/transport.h"
#include "weft/http/url.h"
#include "weft/net/connect.h"
#include "weft/tls/context.h"

namespace weft::inline v0::http {

class Connector {
 public:
  virtual ~Connector() = default;

  // A connection to `where`; of https, encrypted, with the peer's name verified.
  [[nodiscard]] virtual Task<Result<std::unique_ptr<Transport>>> connect(const Endpoint& where) = 0;
  // The same through `tunnel`, which a proxy has led to `where` already. As it comes: Error::no_tls.
  [[nodiscard]] virtual Task<Result<std::unique_ptr<Transport>>> secure(
      std::unique_ptr<Transport> tunnel, const Endpoint& where);
};

struct ConnectorOptions {
  net::ConnectOptions connect{};
  // None: one that trusts whom the system trusts, made for the first request of https. That reads the system's roots, and the
  // loop stands still for some milliseconds: where that is too long, give one.
  std::optional<tls::ClientContext> tls{};
};

// By name or address: net::resolve(), and whichever address answers first.
// Errors: of the resolver, of the connection, tls::Error.
class TcpConnector final : public Connector {
 public:
  explicit TcpConnector(ConnectorOptions options = {}) noexcept : options_(std::move(options)) {}
  Task<Result<std::unique_ptr<Transport>>> connect(const Endpoint& where) override;
  Task<Result<std::unique_ptr<Transport>>> secure(std::unique_ptr<Transport> tunnel,
                                                  const Endpoint& where) override;

 private:
  template <net::Stream S>
  Task<Result<std::unique_ptr<Transport>>> shake_hands(S stream, std::string host);

  ConnectorOptions options_;
};

}  // namespace weft::inline v0::http
