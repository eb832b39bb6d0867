// SPDX-License-Identifier: MIT
#pragma once
// weft::net::Server: what listens, and what handles it, in one place, on one loop or many.
//
//     class Echo : public TcpHandler {
//       Task<void> handle_connection(TcpStream peer) override { … co_await … }
//     };
//     Server server({.workers = 4});
//     Echo echo;
//     Address where = or_throw(server.listen_tcp(Address::any_v4(7), echo));
//     ctx.run(server.run());                       // until server.stop()
//
// A handler is a class with a virtual that returns a Task, or a coroutine function. A protocol of
// its own is a Service: http::listen(server, where, routes) of http/service.h registers an
// http::Handler, and with it, as a route, a ws::Endpoint.
//
// stop() is graceful: nothing new is taken, what is being handled has `drain` to end, and is
// cancelled then. To cancel run() is to do so at once.
//
// Threads        listen_*(), add(): before run(), one thread. run(): in a task of an IOContext if
//                there are several workers, else of any loop with I/O. stop(): any thread, also
//                before run(). With several workers a handler is called on all of their loops at
//                once.
// Errors         of listening: as Result. What a handler throws is logged and ends that handler
//                only. What a Service throws cancels the others and is run()'s.
// Allocation     as serve() and serve_datagrams().
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/net/address.h"
#include "weft/net/serve.h"
#include "weft/net/serve_datagrams.h"
#include "weft/net/tcp.h"
#include "weft/net/udp.h"
#include "weft/sync/event.h"

namespace weft::inline v0::net {

class TcpHandler {
 public:
  virtual ~TcpHandler() = default;
  // One connection, from its beginning to its end: it is closed when `connection` dies.
  virtual Task<void> handle_connection(TcpStream connection) = 0;
};

class UdpHandler {
 public:
  virtual ~UdpHandler() = default;
  // One datagram. Both live until the task has ended.
  virtual Task<void> handle_datagram(const Datagram& datagram, DatagramSender& sender) = 0;
};

// What a server runs: once on each of its loops, at the same time.
class Service {
 public:
  virtual ~Service() = default;
  // Serves until `stop` is set, ends what it has begun, and returns; if it is cancelled meanwhile,
  // at once.
  virtual Task<void> serve(std::size_t worker, Event& stop) = 0;
};

struct ServerOptions {
  std::size_t workers = 1;  // loops that serve: those of the IOContext, from 0 on. Not 0
  std::chrono::milliseconds drain = std::chrono::seconds(10);
};

struct TcpServiceOptions {
  ListenOptions listen{};  // reuse_port is set where there are several workers
  // Of all workers: each has its share, at least 1, and keeps to it even if another has room.
  ServeLimits limits{};
};
struct UdpServiceOptions {
  UdpOptions socket{};      // as above
  DatagramLimits limits{};  // of each worker
};

class Server {
 public:
  Server() : Server(ServerOptions()) {}
  // UsageError: no workers.
  explicit Server(ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Listens from now on; who connects before run() waits. Returns: where, with the port that was
  // free if 0 was asked for. Requires: the handler lives as long as the server.
  [[nodiscard]] Result<Address> listen_tcp(Address where, TcpHandler& handler,
                                           TcpServiceOptions options = {});
  [[nodiscard]] Result<Address> listen_udp(Address where, UdpHandler& handler,
                                           UdpServiceOptions options = {});
  // The handler as a coroutine function, which is kept: Task<void>(TcpStream), or
  // Task<void>(const Datagram&, DatagramSender&).
  template <class Fn>
    requires(!std::derived_from<std::remove_cvref_t<Fn>, TcpHandler>)
  [[nodiscard]] Result<Address> listen_tcp(Address where, Fn&& handler,
                                           TcpServiceOptions options = {});
  template <class Fn>
    requires(!std::derived_from<std::remove_cvref_t<Fn>, UdpHandler>)
  [[nodiscard]] Result<Address> listen_udp(Address where, Fn&& handler,
                                           UdpServiceOptions options = {});
  // Anything else.
  void add(std::unique_ptr<Service> service);
  // For a Service over TCP: a listener for each worker, all on one address, which `where` is then.
  [[nodiscard]] Result<std::vector<TcpListener>> open_tcp(Address& where,
                                                          ListenOptions options = {}) const;

  [[nodiscard]] std::size_t workers() const noexcept { return options_.workers; }

  // Once. UsageError: a second time; several workers, and not in an IOContext that has as many.
  [[nodiscard]] Task<void> run();
  void stop() noexcept { stop_.set(); }

 private:
  [[nodiscard]] Task<void> give_time();

  const ServerOptions options_;
  std::vector<std::unique_ptr<TcpHandler>> tcp_functions_;
  std::vector<std::unique_ptr<UdpHandler>> udp_functions_;
  std::vector<std::unique_ptr<Service>> services_;
  Event stop_{"stop of a server"};
  bool ran_ = false;
};

namespace detail {

template <class Fn>
class TcpFunction final : public TcpHandler {
 public:
  template <class F>
  explicit TcpFunction(F&& fn) : fn_(std::forward<F>(fn)) {}
  Task<void> handle_connection(TcpStream connection) override {
    co_await fn_(std::move(connection));
  }

 private:
  Fn fn_;
};

template <class Fn>
class UdpFunction final : public UdpHandler {
 public:
  template <class F>
  explicit UdpFunction(F&& fn) : fn_(std::forward<F>(fn)) {}
  Task<void> handle_datagram(const Datagram& datagram, DatagramSender& sender) override {
    co_await fn_(datagram, sender);
  }

 private:
  Fn fn_;
};

}  // namespace detail

template <class Fn>
  requires(!std::derived_from<std::remove_cvref_t<Fn>, TcpHandler>)
Result<Address> Server::listen_tcp(Address where, Fn&& handler, TcpServiceOptions options) {
  detail::check_handler<std::decay_t<Fn>, TcpStream>();
  tcp_functions_.push_back(
      std::make_unique<detail::TcpFunction<std::decay_t<Fn>>>(std::forward<Fn>(handler)));
  return listen_tcp(where, *tcp_functions_.back(), std::move(options));
}

template <class Fn>
  requires(!std::derived_from<std::remove_cvref_t<Fn>, UdpHandler>)
Result<Address> Server::listen_udp(Address where, Fn&& handler, UdpServiceOptions options) {
  detail::check_handler<std::decay_t<Fn>, const Datagram&, DatagramSender&>();
  udp_functions_.push_back(
      std::make_unique<detail::UdpFunction<std::decay_t<Fn>>>(std::forward<Fn>(handler)));
  return listen_udp(where, *udp_functions_.back(), std::move(options));
}

}  // namespace weft::inline v0::net
