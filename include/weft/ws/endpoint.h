// SPDX-License-Identifier: MIT
#pragma once
// weft::ws::Endpoint: an http::Handler that turns a request into a Connection.
//
//     ws::Endpoint endpoint(chat, {.subprotocols = {"chat.v2", "chat.v1"}});   // chat: a ws::Handler
//     routes.get("/rooms/{name}", endpoint);
//
//     auto talk = [](ws::Connection& socket, const http::Request& request) -> Task<void> { … };
//     ws::Endpoint endpoint(talk);                                             // or a coroutine
//
// Who is to be turned away with a status (401, say) is so by a middleware of the Router.
//
// Threads        as http::Handler: called on the loop of each connection.
// Errors         a request that is no proper handshake is answered with 400, 403 or 426 (docs/design/ws.md).
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/core/task.h"
#include "weft/http/handler.h"
#include "weft/ws/connection.h"
#include "weft/ws/handler.h"
#include "weft/ws/limits.h"

namespace weft::inline v0::ws {

namespace detail {
class Session;
}  // namespace detail

struct EndpointOptions {
  Limits limits{};
  // The first that the client offers too is taken; if there is none, none is. Tokens, each once.
  std::vector<std::string> subprotocols{};
  // "https://example.org", as browsers write them; "*": any. Empty: that of the host that was asked. A request without an
  // Origin is not from a browser, and is let in.
  std::vector<std::string> allowed_origins{};
  // Offered to clients that can. Nothing: no compression.
  std::optional<DeflateOptions> deflate{};
};

class Endpoint final : public http::Handler {
 public:
  // Runs until the connection is to end: it is closed with 1000 then, if it is not.
  using Talk = std::function<Task<void>(Connection&, const http::Request&)>;

  // Requires: `handler` lives as long as the Endpoint. UsageError: an option is out of its range.
  explicit Endpoint(ws::Handler& handler, EndpointOptions options = {});
  template <class Fn>
    requires(!std::derived_from<std::remove_cvref_t<Fn>, ws::Handler> &&
             !std::same_as<std::remove_cvref_t<Fn>, Endpoint>)
  explicit Endpoint(Fn talk, EndpointOptions options = {})
      : Endpoint(Made{}, std::move(talk), std::move(options)) {
    static_assert(
        std::is_invocable_r_v<Task<void>, Fn&, Connection&, const http::Request&>,
        "an Endpoint takes a ws::Handler, or a coroutine: Task<void>(ws::Connection&, const "
        "http::Request&). A plain function or lambda cannot wait for messages: return "
        "weft::Task<void> and use co_await.");
  }

  Task<void> handle_request(const http::Request& request, http::Response& response,
                            http::Connection& connection) override;

 private:
  struct Made {};
  Endpoint(Made, Talk talk, EndpointOptions options);

  // Fills in the answer. Returns: whether it is 101.
  [[nodiscard]] bool accepts(const http::Request& request, http::Response& response) const;
  [[nodiscard]] bool allows_origin(const http::Request& request) const;
  [[nodiscard]] std::string choose_subprotocol(const http::Request& request) const;
  // The handshake. Returns: null if there is no connection, and the answer, if there is one, says why.
  [[nodiscard]] Task<std::unique_ptr<detail::Session>> open(const http::Request& request,
                                                            http::Response& response,
                                                            http::Connection& connection) const;

  Talk talk_;
  EndpointOptions options_;
};

}  // namespace weft::inline v0::ws
