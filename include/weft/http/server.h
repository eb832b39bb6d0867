// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Server: answers requests that come over connections.
//
//     http::Router routes;
//     routes.get("/hello/{name}", hello);
//     http::Server server(routes);
//     co_await server.serve(listener);           // or, on all workers of a context: serve_on(context, address, routes)
//
//     http::Server secure(routes, {.tls = or_throw(tls::ServerContext::create({.identity = ours}))});     // https
//
// Cancelling serve() is a graceful stop: the listener closes, connections that wait for a request close, the others finish
// their answer, and what still runs after Limits::drain_timeout is cancelled. serve() ends when all have ended.
//
// Threads        one loop: that on which serve() runs. On several workers, a Server on each.
// Errors         of a connection: they end it. A handler's exception: 500, and logged.
// Allocation     per connection a few frames; per request none that lasts, but what the handler does.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/intrusive_list.h"
#include "weft/core/nursery.h"
#include "weft/core/shield.h"
#include "weft/core/task.h"
#include "weft/http/handler.h"
#include "weft/http/limits.h"
#include "weft/http/transport.h"
#include "weft/net/serve.h"
#include "weft/run/io_context.h"
#include "weft/sync/event.h"
#include "weft/tls/context.h"
#include "weft/tls/stream.h"

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
  // Given: connections of serve() begin with a TLS handshake. Its ALPN, if it has any, is "http/1.1" and nothing else.
  std::optional<tls::ServerContext> tls{};
  // Called for each handshake that fails, with the reason in words: anybody can make that happen. Must not throw.
  std::function<void(const std::optional<net::Address>& peer, std::string_view why)>
      handshake_log{};
};

class Server;

namespace detail {

class ServedConnection : public ListNode<> {
 public:
  virtual void stop() noexcept = 0;

 protected:
  ~ServedConnection() = default;
};

// One that is not one of HTTP yet.
template <net::Stream S>
class ShakingHands final : public ServedConnection {
 public:
  explicit ShakingHands(tls::Stream<S>& stream) noexcept : stream_(stream) {}
  void stop() noexcept override { stream_.close(); }

 private:
  tls::Stream<S>& stream_;
};

// "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", made once a second.
class DateLine {
 public:
  [[nodiscard]] std::string_view now();
  // At so many seconds since 1970. Made anew when they change.
  [[nodiscard]] std::string_view at(std::int64_t second);

 private:
  std::int64_t second_ = -1;
  std::string text_;
};

// What a connection needs while it answers, and not while it waits.
struct Workspace {
  std::string output;
  HeaderLines lines;
  std::vector<Header> fields;
};

// Memory of connections that wait, for the next one that answers: an idle one holds none (H5), and a busy one asks for none.
// Handed over in both directions by exchange: nothing is built or moved.
class Workspaces {
 public:
  // The one to be taken next; null: there is none. From then on it is not here.
  [[nodiscard]] Workspace* take() noexcept { return count_ == 0 ? nullptr : &kept_[--count_]; }
  // An empty one to be filled; null: there are enough.
  [[nodiscard]] Workspace* give_back() noexcept;

  static constexpr std::size_t kOutputBytesMax = 16 * 1024;  // of one that is kept

 private:
  static constexpr std::size_t kKeptMax = 64;

  std::vector<Workspace> kept_;  // the first count_ have memory, the others are empty
  std::size_t count_ = 0;
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
  // What a serve() that was cancelled still waits for is cancelled now, and not after Limits::drain_timeout.
  void end_drain() noexcept { drain_is_over_.set(); }

  [[nodiscard]] Handler& handler() noexcept { return handler_; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t connections() const noexcept { return connection_count_; }
  // Handlers that run.
  [[nodiscard]] std::size_t requests_in_progress() const noexcept { return in_progress_; }
  // For weft's own use.
  class InProgress {
   public:
    explicit InProgress(Server& server) noexcept : server_(server) { ++server_.in_progress_; }
    InProgress(const InProgress&) = delete;
    InProgress& operator=(const InProgress&) = delete;
    ~InProgress() { --server_.in_progress_; }

   private:
    Server& server_;
  };
  [[nodiscard]] detail::DateLine& date() noexcept { return date_; }
  [[nodiscard]] detail::Workspaces& workspaces() noexcept { return workspaces_; }

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

  // A connection that is to be stopped with the others, while this lives; at once, if they have been.
  class Listed {
   public:
    Listed(Server& server, detail::ServedConnection& connection) noexcept;
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;
    ~Listed();

   private:
    Server& server_;
    detail::ServedConnection& connection_;
  };

  template <net::Stream S>
  Task<void> serve_plain(S stream);
  template <net::Stream S>
  Task<void> serve_tls(S stream);
  // Returns: whether it succeeded.
  template <net::Stream S>
  Task<bool> shake_hands(tls::Stream<S>& stream);
  // A mistake of ours: the context offers what is not spoken here.
  void refuse_protocol(const std::optional<net::Address>& peer, std::string_view alpn);
  void note_handshake(const std::optional<net::Address>& peer, std::string_view why) noexcept;
  void stop_connections() noexcept;
  Task<void> drain(Nursery& running, Event& ended);

  Handler& handler_;
  ServerOptions options_;
  detail::DateLine date_;
  detail::Workspaces workspaces_;
  IntrusiveList<detail::ServedConnection> connections_;
  std::size_t connection_count_ = 0;
  std::size_t in_progress_ = 0;
  bool is_stopping_ = false;
  bool is_serving_ = false;
  bool has_refused_protocol_ = false;
  Event drain_is_over_{"end of a drain"};
};

template <net::Stream S>
Task<void> Server::serve_plain(S stream) {
  StreamTransport transport(std::move(stream));
  co_await serve_connection(transport);
}

template <net::Stream S>
Task<void> Server::serve_tls(S stream) {
  tls::Stream<S> secure(std::move(stream), *options_.tls);
  bool done = co_await shake_hands(secure);
  if (!done) co_return;
  if (!detail::is_http1(secure.alpn()))
    co_return refuse_protocol(detail::peer_of(secure), secure.alpn());
  StreamTransport transport(std::move(secure));
  co_await serve_connection(transport);
}

template <net::Stream S>
Task<bool> Server::shake_hands(tls::Stream<S>& stream) {
  detail::ShakingHands<S> shaking(stream);
  Listed listed(*this, shaking);
  Result<void> done = co_await stream.handshake();
  if (!done && !is_stopping_) {
    note_handshake(detail::peer_of(stream),
                   stream.failure().empty() ? done.error().message() : stream.failure());
  }
  co_return done.has_value();
}

template <class Listener>
Task<void> Server::serve(Listener& listener) {
  Event ended;
  auto answer = [this](auto stream) -> Task<void> {
    return options_.tls ? serve_tls(std::move(stream)) : serve_plain(std::move(stream));
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
// share of connections_max and requests_in_progress_max.
// Requires: `handler` may be called on several threads. Errors: those of TcpListener::listen(), before anything is served.
[[nodiscard]] Task<Result<void>> serve_on(IOContext& context, net::Address where, Handler& handler,
                                          ServerOptions options = {});

}  // namespace weft::inline v0::http
