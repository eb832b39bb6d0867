// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Server: answers requests that come over connections.
//
//     http::Router routes;
//     routes.get("/hello/{name}", hello);
//     http::Server server(routes);
//     co_await server.serve(listener);           // or, on all workers of a context: serve_on(context, address, routes)
//
// Cancelling serve() is a graceful stop: the listener closes, connections that wait for a request close, the others finish
// their answer, and what still runs after Limits::drain_timeout is cancelled. serve() ends when all have ended.
//
// Threads        one loop: that on which serve() runs. On several workers, a Server on each.
// Errors         of a connection: they end it. A handler's exception: 500, and logged.
// Allocation     per connection a few frames; per request none that lasts, but what the handler does.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/intrusive_list.h"
#include "weft/core/nursery.h"
#include "weft/core/shield.h"
#include "weft/core/task.h"
#include "weft/http/handler.h"
#include "weft/http/limits.h"
#include "weft/net/serve.h"
#include "weft/run/io_context.h"
#include "weft/sync/event.h"

namespace weft::inline v0::http {

// One answer, for the log.
struct AccessRecord {
  std::optional<net::Address> peer;
  std::string_view method, target;
  Version version;
  int status;
  std::uint64_t body_bytes;           // of the answer
  std::chrono::nanoseconds duration;  // from the head to the answer
};
// `peer - - [date] "GET / HTTP/1.1" status bytes`, as other servers write it.
[[nodiscard]] std::string to_string(const AccessRecord& record);

struct ServerOptions {
  Limits limits{};
  // Called after each answer. Must not throw.
  std::function<void(const AccessRecord&)> access_log{};
};

class Server;

namespace detail {

class ServedConnection : public ListNode<> {
 public:
  virtual void stop() noexcept = 0;

 protected:
  ~ServedConnection() = default;
};

// "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", made once a second.
class DateLine {
 public:
  [[nodiscard]] std::string_view now();

 private:
  std::int64_t second_ = -1;
  std::string text_;
};

}  // namespace detail

class Server {
 public:
  // Requires: `handler` lives as long as the Server.
  explicit Server(Handler& handler, ServerOptions options = {})
      : handler_(handler), options_(std::move(options)) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Whatever `listener` accepts. Requires: it lives until this has ended. Once it has, it may be called again; UsageError before.
  template <class Listener>
  [[nodiscard]] Task<void> serve(Listener& listener);
  // One connection, until it ends.
  [[nodiscard]] Task<void> serve_connection(Transport& transport);

  [[nodiscard]] Handler& handler() noexcept { return handler_; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t connections() const noexcept { return connection_count_; }
  // For weft's own use.
  [[nodiscard]] detail::DateLine& date() noexcept { return date_; }

 private:
  // One serve() at a time: a stop is for all connections.
  class Serving {
   public:
    explicit Serving(Server& server);
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;
    ~Serving() { server_.is_serving_ = false; }

   private:
    Server& server_;
  };

  void stop_connections() noexcept;
  Task<void> drain(Nursery& running, Event& ended);

  Handler& handler_;
  ServerOptions options_;
  detail::DateLine date_;
  IntrusiveList<detail::ServedConnection> connections_;
  std::size_t connection_count_ = 0;
  bool is_stopping_ = false;
  bool is_serving_ = false;
};

template <class Listener>
Task<void> Server::serve(Listener& listener) {
  Event ended;
  auto answer = [this](auto stream) -> Task<void> {
    StreamTransport transport(std::move(stream));
    co_await serve_connection(transport);
  };
  // Also when net::serve() throws: there is nothing to drain then.
  struct Ends {
    Event& ended;
    explicit Ends(Event& event) : ended(event) {}
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;
    ~Ends() { ended.set(); }
  };
  Serving serving_now(*this);
  // The connections are in a nursery of their own, which the cancel reaches only by way of the drain.
  auto serving = [&](Nursery& outer) -> Task<NurseryEnd> {
    auto connections = [&](Nursery& inner) -> Task<NurseryEnd> {
      auto goodbye = [&]() -> Task<void> {
        listener.close();
        co_await drain(inner, ended);
      };
      auto wait = [&, goodbye]() -> Task<void> { co_await until_cancelled_and(goodbye); };
      outer.start(wait);
      Ends ends(ended);
      co_await net::serve(listener, {.connections_max = options_.limits.connections_max}, answer);
      co_return join;
    };
    co_await noncancellable(with_nursery(connections));
    co_return cancel;
  };
  co_await with_nursery(serving);
}

// On every worker of `context`, each with a listener of its own at `where` (port 0 is not for this: each would have another) and its
// share of connections_max.
// Requires: `handler` may be called on several threads. Errors: those of TcpListener::listen(), before anything is served.
[[nodiscard]] Task<Result<void>> serve_on(IOContext& context, net::Address where, Handler& handler,
                                          ServerOptions options = {});

}  // namespace weft::inline v0::http
