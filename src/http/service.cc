// SPDX-License-Identifier: MIT
#include "weft/http/service.h"

#include <chrono>
#include <memory>
#include <utility>

#include "weft/core/combinators.h"
#include "weft/core/shield.h"

namespace weft::inline v0::http {

Service::Service(std::vector<net::TcpListener> listeners, Handler& handler, ServerOptions options)
    : listeners_(std::move(listeners)), handler_(handler), options_(std::move(options)) {
  options_.limits = share_of(options_.limits, listeners_.size());
  options_.limits.drain_timeout =
      std::chrono::milliseconds::max();  // who runs this counts the time
}

Task<void> Service::serve(std::size_t worker, Event& stop) {
  net::TcpListener& listener = listeners_[worker];
  Server server(handler_, options_);
  // A stop cancels serve(), which drains; a cancel of all this ends the drain.
  auto serve_until_stop = [&]() -> Task<void> {
    co_await any_of(server.serve(listener), stop.wait());
  };
  auto end_drain = [&]() -> Task<void> {
    server.end_drain();
    co_return;
  };
  auto hurry = [&]() -> Task<void> { co_await until_cancelled_and(end_drain); };
  co_await any_of(serve_until_stop(), hurry());
}

Result<net::Address> listen(net::Server& server, net::Address where, Handler& handler,
                            ServerOptions options, net::ListenOptions sockets) {
  Result<std::vector<net::TcpListener>> listeners = server.open_tcp(where, sockets);
  if (!listeners) return std::unexpected(listeners.error());
  server.add(std::make_unique<Service>(std::move(*listeners), handler, std::move(options)));
  return where;
}

}  // namespace weft::inline v0::http
