// SPDX-License-Identifier: MIT
#pragma once
// weft::ws::connect: a client's Connection, to a URL, or over any net::Stream.
//
//     auto chat = [&](ws::Connection& socket) -> Task<void> {
//       Result<void> sent = co_await socket.send("hello");
//       Result<ws::Message> answer = co_await socket.receive();
//     };
//     ws::Close end = co_await ok(ws::connect("wss://example.org/chat", chat));
//
//     net::UnixStream stream = co_await ok(net::UnixStream::connect(address));
//     ws::Close end = co_await ok(ws::connect(std::move(stream), "localhost", "/chat", chat));
//
// Asks the server, checks its answer, and runs the coroutine with the Connection; when it has ended, closes with 1000 what is not
// closed. A scope, and not a value, because a task of its own writes for it (docs/design/ws.md).
//
// Returns        how the connection ended.
// Cancellation   passed to the coroutine; then the stream is closed, and the server sees that it was lost.
// Errors         before the coroutine is called: Error::bad_url, what the Connector or the stream says, Error::refused,
//                Error::bad_handshake, std::errc::timed_out (Limits::handshake_timeout). After it: none. What the coroutine throws
//                passes through, and closes with 1011. UsageError: a host or path that cannot be sent, an option out of its range,
//                a subprotocol that is no token or there twice, a header field that the handshake says itself.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/invoked.h"
#include "weft/core/task.h"
#include "weft/http/connector.h"
#include "weft/http/message.h"
#include "weft/http/transport.h"
#include "weft/ws/connection.h"
#include "weft/ws/limits.h"

namespace weft::inline v0::ws {

struct ClientOptions {
  Limits limits{};
  // Offered, the best first. Tokens, each once.
  std::vector<std::string> subprotocols{};
  // Sent if it is not empty: "https://example.org".
  std::string origin{};
  // More header fields of the request: not those that the other members, or the handshake, say.
  http::HeaderLines headers{};
  // Offered. Nothing: no compression.
  std::optional<DeflateOptions> deflate{};
  // The server's answer, when it is not 101 (nor 1xx: those are passed over, up to Limits::informational_max). Good during the call.
  std::function<void(int status, const http::Headers&)> on_refused{};
  // How a URL's server is reached. None: an http::TcpConnector, which resolves the name, takes the address that answers first,
  // and trusts, for wss, whom the system trusts. For several connections with wss give one: the system's roots are read once then.
  std::shared_ptr<http::Connector> connector{};
};

using ClientTalk = std::function<Task<void>(Connection&)>;

namespace detail {

[[nodiscard]] Task<Result<Close>> connect_to(std::string url, ClientTalk talk,
                                             ClientOptions options);
[[nodiscard]] Task<Result<Close>> connect_over(http::Transport& transport, std::string host,
                                               std::string path, ClientTalk talk,
                                               ClientOptions options);

template <net::Stream S>
[[nodiscard]] Task<Result<Close>> connect_by(S stream, std::string host, std::string path,
                                             ClientTalk talk, ClientOptions options) {
  http::StreamTransport<S> transport(std::move(stream));
  Task<Result<Close>> talking = connect_over(transport, std::move(host), std::move(path),
                                             std::move(talk), std::move(options));
  co_return co_await std::move(talking);
}

template <class Fn>
consteval void check_talk() {
  ::weft::detail::check_callable<Fn>();
  static_assert(std::is_invocable_r_v<Task<void>, std::decay_t<Fn>&, Connection&>,
                "ws::connect() takes a coroutine: Task<void>(ws::Connection&). A plain function or "
                "lambda cannot wait for messages: return weft::Task<void> and use co_await.");
}

}  // namespace detail

// `talk`: a coroutine, as ClientTalk is, which is kept until it has ended. On g++ 12 name it before a co_await expression, as any
// lambda with captures, and do not move it into the call.
//
// `url`: "ws://" or "wss://", a host, perhaps a port, path and query; no fragment (RFC 6455, 3). No proxy is asked, and no redirect
// followed: on_refused is told of one.
template <class Fn>
[[nodiscard]] Task<Result<Close>> connect(std::string url, Fn&& talk, ClientOptions options = {}) {
  detail::check_talk<Fn>();
  return detail::connect_to(std::move(url), ClientTalk(std::forward<Fn>(talk)), std::move(options));
}

// Requires: `transport` lives until this has ended. It is closed then. `host`: with its port, if that is not the usual one.
template <class Fn>
[[nodiscard]] Task<Result<Close>> connect(http::Transport& transport, std::string host,
                                          std::string path, Fn&& talk, ClientOptions options = {}) {
  detail::check_talk<Fn>();
  return detail::connect_over(transport, std::move(host), std::move(path),
                              ClientTalk(std::forward<Fn>(talk)), std::move(options));
}

template <net::Stream S, class Fn>
[[nodiscard]] Task<Result<Close>> connect(S stream, std::string host, std::string path, Fn&& talk,
                                          ClientOptions options = {}) {
  detail::check_talk<Fn>();
  return detail::connect_by(std::move(stream), std::move(host), std::move(path),
                            ClientTalk(std::forward<Fn>(talk)), std::move(options));
}

}  // namespace weft::inline v0::ws
