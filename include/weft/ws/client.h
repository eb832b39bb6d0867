// SPDX-License-Identifier: MIT
#pragma once
// weft::ws::connect: a client's Connection over any net::Stream.
//
//     auto chat = [&](ws::Connection& socket) -> Task<void> {
//       Result<void> sent = co_await socket.send("hello");
//       Result<ws::Message> answer = co_await socket.receive();
//     };
//     net::TcpStream stream = co_await ok(net::TcpStream::connect(address));
//     ws::Close end = co_await ok(ws::connect(std::move(stream), "example.org", "/chat", chat));
//
// Asks the server, checks its answer, and runs the coroutine with the Connection; when it has ended, closes with 1000 what is not
// closed. A scope, and not a value, because a task of its own writes for it (docs/design/ws.md).
//
// Returns        how the connection ended.
// Cancellation   passed to the coroutine; then the stream is closed, and the server sees that it was lost.
// Errors         before the coroutine is called: what the stream says, Error::refused, Error::bad_handshake, std::errc::timed_out
//                (Limits::handshake_timeout). After it: none. What the coroutine throws passes through, and closes with 1011.
//                UsageError: a host or path that cannot be sent, an option out of its range.
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/message.h"
#include "weft/http/transport.h"
#include "weft/ws/connection.h"
#include "weft/ws/limits.h"

namespace weft::inline v0::ws {

struct ClientOptions {
  Limits limits{};
  // Offered, the best first.
  std::vector<std::string> subprotocols{};
  // Sent if it is not empty: "https://example.org".
  std::string origin{};
  // More header fields of the request.
  http::HeaderLines headers{};
  // Offered. Nothing: no compression.
  std::optional<DeflateOptions> deflate{};
  // The server's answer, when it is not 101. Good during the call.
  std::function<void(int status, const http::Headers&)> on_refused{};
};

using ClientTalk = std::function<Task<void>(Connection&)>;

// Requires: `transport` lives until this has ended. It is closed then. `host`: with its port, if that is not the usual one.
[[nodiscard]] Task<Result<Close>> connect(http::Transport& transport, std::string host,
                                          std::string path, ClientTalk talk,
                                          ClientOptions options = {});

template <net::Stream S>
[[nodiscard]] Task<Result<Close>> connect(S stream, std::string host, std::string path,
                                          ClientTalk talk, ClientOptions options = {}) {
  http::StreamTransport<S> transport(std::move(stream));
  Task<Result<Close>> talking = connect(static_cast<http::Transport&>(transport), std::move(host),
                                        std::move(path), std::move(talk), std::move(options));
  co_return co_await std::move(talking);
}

}  // namespace weft::inline v0::ws
