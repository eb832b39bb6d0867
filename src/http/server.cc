// SPDX-License-Identifier: MIT
#include "weft/http/server.h"

#include <time.h>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "connection.h"
#include "date.h"
#include "weft/base/log.h"
#include "weft/core/combinators.h"
#include "weft/core/moving.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::http {

std::string_view detail::DateLine::now() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return at(now.tv_sec);
}

std::string_view detail::DateLine::at(std::int64_t second) {
  if (second != second_) [[unlikely]] {
    second_ = second;
    text_ = "date: " + http_date(second_) + "\r\n";
  }
  return text_;
}

detail::Workspace* detail::Workspaces::give_back() noexcept {
  if (count_ < kept_.size()) return &kept_[count_++];
  if (count_ == kKeptMax) return nullptr;
  try {
    kept_.emplace_back();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return &kept_[count_++];
}

std::string to_string(const AccessRecord& record) {
  std::string line = record.peer ? record.peer->to_string() : "-";
  line.append(" - - [").append(detail::log_date(::time(nullptr))).append("] \"");
  line.append(record.method).append(" ");
  // What would end the quotation, or the line, is written as an escape: the target is the peer's.
  for (unsigned char c : record.target) {
    if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", c);
      line += escape;
    } else {
      line += static_cast<char>(c);
    }
  }
  line.append(record.version == Version::http_1_0 ? " HTTP/1.0\" " : " HTTP/1.1\" ");
  line.append(std::to_string(record.status)).append(" ").append(std::to_string(record.body_bytes));
  return line;
}

Server::Listed::Listed(Server& server, detail::ServedConnection& connection) noexcept
    : server_(server), connection_(connection) {
  server_.connections_.push_back(connection_);
  ++server_.connection_count_;
  if (server_.is_stopping_) connection_.stop();
}
Server::Listed::~Listed() {
  connection_.unlink();
  --server_.connection_count_;
}

Task<void> Server::serve_connection(Transport& transport) {
  // Not in this frame: the pool would round its size up by more than the heap does.
  auto connection = std::make_unique<detail::Http1Connection>(*this, transport);
  Listed listed(*this, *connection);
  co_await connection->run();
}

// Logged once, and noted each time.
void Server::refuse_protocol(const std::optional<net::Address>& peer, std::string_view alpn) {
  std::string why = "ALPN has agreed on \"" + std::string(alpn) +
                    "\", which http::Server does not speak: ServerOptions::tls may offer "
                    "\"http/1.1\" only";
  if (!std::exchange(has_refused_protocol_, true)) log(LogLevel::error, "http: " + why);
  note_handshake(peer, why);
}

void Server::note_handshake(const std::optional<net::Address>& peer,
                            std::string_view why) noexcept {
  if (!options_.handshake_log) return;
  try {
    options_.handshake_log(peer, why);
  } catch (...) {
    log(LogLevel::error, "http: ServerOptions::handshake_log threw, which it must not");
  }
}

Server::Serving::Serving(Server& server) : server_(server) {
  if (server.is_serving_) {
    throw UsageError(
        "http::Server::serve() is running already: another listener needs another Server");
  }
  server.is_serving_ = true;
  server.is_stopping_ = false;
  server.drain_is_over_.reset();
}

void Server::stop_connections() noexcept {
  is_stopping_ = true;
  for (detail::ServedConnection& connection : connections_) connection.stop();
}

Task<void> Server::drain(Nursery& running, Event& ended) {
  if (ended.is_set()) co_return;
  stop_connections();
  co_await timeout(options_.limits.drain_timeout, any_of(ended.wait(), drain_is_over_.wait()));
  if (!ended.is_set()) running.cancel();
}

Limits share_of(const Limits& all, std::size_t workers) noexcept {
  Limits share = all;
  share.connections_max = net::share_of(all.connections_max, workers);
  share.requests_in_progress_max = net::share_of(all.requests_in_progress_max, workers);
  return share;
}

Task<Result<void>> serve_on(IOContext& context, net::Address where, Handler& handler,
                            ServerOptions options) {
  std::vector<net::TcpListener> listeners;
  for (std::size_t i = 0; i < context.workers(); ++i) {
    Result<net::TcpListener> listener = net::TcpListener::listen(where, {.reuse_port = true});
    if (!listener) co_return std::unexpected(listener.error());
    listeners.push_back(std::move(*listener));
  }
  options.limits = share_of(options.limits, context.workers());
  auto serve_all = [&](Nursery& workers) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < context.workers(); ++i) {
      auto serve = [&handler, &options, &listener = listeners[i]]() -> Task<void> {
        Server server(handler, options);
        co_await server.serve(listener);
      };
      workers.start_on(context.loop(i), serve);
    }
    co_return join;
  };
  co_await with_nursery(serve_all);
  co_return {};
}

}  // namespace weft::inline v0::http
