// SPDX-License-Identifier: MIT
#include "weft/http/server.h"

#include <time.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "connection.h"
#include "weft/core/moving.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::http {

namespace {

constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::string_view detail::DateLine::now() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != second_) {
    second_ = now.tv_sec;
    tm t;
    ::gmtime_r(&now.tv_sec, &t);
    // RFC 9110, 5.6.7. 37 characters until the year 10000.
    std::snprintf(text_, sizeof text_, "date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
                  kDays[t.tm_wday], t.tm_mday, kMonths[t.tm_mon], t.tm_year + 1900, t.tm_hour,
                  t.tm_min, t.tm_sec);
  }
  return {text_, 37};
}

std::string to_string(const AccessRecord& record) {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  tm t;
  ::gmtime_r(&now.tv_sec, &t);
  char date[40];
  std::snprintf(date, sizeof date, "%02d/%s/%04d:%02d:%02d:%02d +0000", t.tm_mday,
                kMonths[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
  std::string line = record.peer ? record.peer->to_string() : "-";
  line.append(" - - [").append(date).append("] \"").append(record.method).append(" ");
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

Task<void> Server::serve_connection(Transport& transport) {
  detail::Http1Connection connection(*this, transport);
  struct Listed {
    Server& server;
    detail::ServedConnection& connection;
    Listed(Server& on, detail::ServedConnection& listed) : server(on), connection(listed) {
      server.connections_.push_back(connection);
      ++server.connection_count_;
    }
    ~Listed() {
      connection.unlink();
      --server.connection_count_;
    }
  } listed(*this, connection);
  if (is_stopping_) connection.stop();
  co_await connection.run();
}

void Server::stop_connections() noexcept {
  is_stopping_ = true;
  for (detail::ServedConnection& connection : connections_) connection.stop();
}

Task<void> Server::drain(Nursery& running, Event& ended) {
  if (ended.is_set()) co_return;
  stop_connections();
  auto in_time = co_await timeout(options_.limits.drain_timeout, ended.wait());
  if (!in_time && !ended.is_set()) running.cancel();
}

Task<Result<void>> serve_on(IOContext& context, net::Address where, Handler& handler,
                            ServerOptions options) {
  std::vector<net::TcpListener> listeners;
  for (std::size_t i = 0; i < context.workers(); ++i) {
    Result<net::TcpListener> listener = net::TcpListener::listen(where, {.reuse_port = true});
    if (!listener) co_return std::unexpected(listener.error());
    listeners.push_back(std::move(*listener));
  }
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
