// SPDX-License-Identifier: MIT
#pragma once
// weft::http::listen(): an http::Handler on a net::Server, beside handlers of other kinds.
//
//     http::Router routes;
//     routes.get("/hello/{name}", hello);
//     ws::Endpoint chat(room);                                  // a ws::Handler, as a route
//     routes.get("/chat", chat);
//     net::Server server({.workers = 4});
//     net::Address web = or_throw(http::listen(server, net::Address::any_v4(80), routes));
//     net::Address echo = or_throw(server.listen_tcp(net::Address::any_v4(7), echo_handler));
//     ctx.run(server.run());                                    // until server.stop()
//
// An http::Server on each worker. stop(): as a cancel of http::Server::serve(), with the time that net::ServerOptions::drain
// gives to all services; Limits::drain_timeout does not count here. To cancel run() is to cancel what is being handled.
//
// Threads        listen(): before run(). The handler is called on all workers' loops at once.
// Errors         of listening: as Result. Others: as http::Server.
#include <cstddef>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/handler.h"
#include "weft/http/server.h"
#include "weft/net/server.h"

namespace weft::inline v0::http {

class Service final : public net::Service {
 public:
  // A listener for each worker; Limits::connections_max and requests_in_progress_max are those of all, each has its
  // share.
  // Requires: `handler` lives as long as this.
  Service(std::vector<net::TcpListener> listeners, Handler& handler, ServerOptions options);
  Task<void> serve(std::size_t worker, Event& stop) override;

 private:
  std::vector<net::TcpListener> listeners_;
  Handler& handler_;
  ServerOptions options_;  // of each
};

// Listens from now on, and adds a Service to `server`. Returns: where, with the port that was free if 0 was asked for.
// Requires: `handler` lives as long as `server`.
[[nodiscard]] Result<net::Address> listen(net::Server& server, net::Address where, Handler& handler,
                                          ServerOptions options = {},
                                          net::ListenOptions sockets = {});

}  // namespace weft::inline v0::http
