// SPDX-License-Identifier: MIT
#include "weft/net/server.h"

#include "weft/base/log.h"
#include "weft/core/combinators.h"
#include "weft/core/errors.h"
#include "weft/core/moving.h"
#include "weft/core/nursery.h"
#include "weft/run/io_context.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::net {

namespace {

// A socket for each worker, all on one address: the kernel spreads what comes among them.
template <class Socket, class Open>
Result<std::vector<Socket>> open_each(std::size_t workers, Address& where, Open open) {
  std::vector<Socket> sockets;
  while (sockets.size() < workers) {
    Result<Socket> opened = open(where);
    if (!opened) return std::unexpected(opened.error());
    Result<Address> bound = opened->local_address();
    if (!bound) return std::unexpected(bound.error());
    where = *bound;  // the others take the port that the first was given
    sockets.push_back(std::move(*opened));
  }
  return sockets;
}

// Also if it is cancelled: who comes when nobody serves any more is to be told.
template <class Socket>
class CloseAtEnd {
 public:
  explicit CloseAtEnd(Socket& socket) noexcept : socket_(socket) {}
  CloseAtEnd(const CloseAtEnd&) = delete;
  CloseAtEnd& operator=(const CloseAtEnd&) = delete;
  ~CloseAtEnd() { socket_.close(); }

 private:
  Socket& socket_;
};

Task<void> close_after(Event& stop, TcpListener& listener) {
  co_await stop.wait();
  listener.close();
}

class TcpService final : public Service {
 public:
  TcpService(std::vector<TcpListener> listeners, TcpHandler& handler, ServeLimits limits)
      : listeners_(std::move(listeners)), handler_(handler), limits_(limits) {}

  Task<void> serve(std::size_t worker, Event& stop) override {
    TcpListener& listener = listeners_[worker];
    CloseAtEnd closes(listener);
    auto handle = [this](TcpStream connection) {
      return handler_.handle_connection(std::move(connection));
    };
    co_await all_of(net::serve(listener, limits_, handle), close_after(stop, listener));
  }

 private:
  std::vector<TcpListener> listeners_;
  TcpHandler& handler_;
  const ServeLimits limits_;
};

class UdpService final : public Service {
 public:
  UdpService(std::vector<UdpSocket> sockets, UdpHandler& handler, DatagramLimits limits)
      : sockets_(std::move(sockets)), handler_(handler), limits_(limits) {}

  Task<void> serve(std::size_t worker, Event& stop) override {
    UdpSocket& socket = sockets_[worker];
    CloseAtEnd closes(socket);
    auto handle = [this](const Datagram& datagram, DatagramSender& sender) {
      return handler_.handle_datagram(datagram, sender);
    };
    co_await serve_datagrams(socket, limits_, handle, stop);
  }

 private:
  std::vector<UdpSocket> sockets_;
  UdpHandler& handler_;
  const DatagramLimits limits_;
};

}  // namespace

Server::Server(ServerOptions options) : options_(options) {
  if (options.workers == 0) weft::detail::throw_usage_error("net::Server: it has no workers");
}
Server::~Server() = default;

Result<std::vector<TcpListener>> Server::open_tcp(Address& where, ListenOptions options) const {
  if (workers() > 1) options.reuse_port = true;
  auto open = [&](const Address& at) { return TcpListener::listen(at, options); };
  return open_each<TcpListener>(workers(), where, open);
}

Result<Address> Server::listen_tcp(Address where, TcpHandler& handler, TcpServiceOptions options) {
  auto listeners = open_tcp(where, options.listen);
  if (!listeners) return std::unexpected(listeners.error());
  ServeLimits share = options.limits;
  share.connections_max = share_of(share.connections_max, workers());
  add(std::make_unique<TcpService>(std::move(*listeners), handler, share));
  return where;
}

Result<Address> Server::listen_udp(Address where, UdpHandler& handler, UdpServiceOptions options) {
  if (workers() > 1) options.socket.reuse_port = true;
  auto open = [&](const Address& at) { return UdpSocket::bind(at, options.socket); };
  auto sockets = open_each<UdpSocket>(workers(), where, open);
  if (!sockets) return std::unexpected(sockets.error());
  add(std::make_unique<UdpService>(std::move(*sockets), handler, options.limits));
  return where;
}

void Server::add(std::unique_ptr<Service> service) {
  if (ran_) weft::detail::throw_usage_error("net::Server: handlers are registered before run()");
  services_.push_back(std::move(service));
}

Task<void> Server::give_time() {
  co_await stop_.wait();
  co_await sleep_for(options_.drain);
  log(LogLevel::warning,
      "net::Server: what was being handled at stop() did not end in time, and is cancelled");
}

Task<void> Server::run() {
  if (std::exchange(ran_, true)) weft::detail::throw_usage_error("net::Server: it runs once");
  IOContext* context = IOContext::current_or_null();
  if (workers() > 1 && (!context || context->workers() < workers())) {
    weft::detail::throw_usage_error(
        "net::Server: run() it in a task of an IOContext that has as many workers");
  }
  auto serve_all = [&](Nursery& services) -> Task<NurseryEnd> {
    for (const std::unique_ptr<Service>& each : services_) {
      for (std::size_t i = 0; i < workers(); ++i) {
        if (workers() == 1) {
          services.start(each->serve(i, stop_));
        } else {
          services.start_on(context->loop(i), each->serve(i, stop_));
        }
      }
    }
    co_return join;
  };
  co_await any_of(with_nursery(serve_all), give_time());
}

}  // namespace weft::inline v0::net
