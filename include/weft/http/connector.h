// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Connector: how a Client comes by its connections. TcpConnector: over TCP.
//
// One of your own makes a Client speak over Unix sockets, through a tunnel, or to a server in the same process.
//
// Threads        the Client's loop.
// Cancellation   a cancelled connect() leaves nothing open.
#include <memory>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/transport.h"
#include "weft/http/url.h"
#include "weft/net/tcp.h"

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

// To addresses, and to localhost. https: Error::no_tls.
class TcpConnector final : public Connector {
 public:
  explicit TcpConnector(net::TcpOptions options = {}) noexcept : options_(options) {}
  Task<Result<std::unique_ptr<Transport>>> connect(const Endpoint& where) override;

 private:
  net::TcpOptions options_;
};

}  // namespace weft::inline v0::http
