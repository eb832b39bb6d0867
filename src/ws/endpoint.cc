// SPDX-License-Identifier: MIT
#include "weft/ws/endpoint.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "handshake.h"
#include "session.h"
#include "weft/http/message.h"

namespace weft::inline v0::ws {

namespace {

constexpr std::string_view kVersion = "13";

bool refuse(http::Response& response, int status, std::string_view why) {
  response.status(status);
  std::string text(http::reason_phrase(status));
  text.append(": ").append(why).append("\n");
  response.body("text/plain", std::move(text));
  return false;
}

// "host:port" without the port that goes without saying.
std::string_view without_usual_port(std::string_view authority, std::string_view scheme) noexcept {
  std::string_view usual = http::equal_ignoring_case(scheme, "https") ? ":443" : ":80";
  if (authority.ends_with(usual)) authority.remove_suffix(usual.size());
  return authority;
}

// RFC 6454, 6.2: "scheme://host[:port]". Behind a proxy that decrypts the scheme is not ours to know.
bool is_origin_of(std::string_view origin, std::string_view host) noexcept {
  std::size_t colon = origin.find("://");
  if (colon == origin.npos) return false;  // "null": a page that has none
  std::string_view scheme = origin.substr(0, colon);
  std::string_view authority = without_usual_port(origin.substr(colon + 3), scheme);
  return !authority.empty() &&
         http::equal_ignoring_case(authority, without_usual_port(host, scheme));
}

// Tells the session that the server stops, as long as there is a session.
class StopNotice {
 public:
  StopNotice(http::Connection& connection, detail::Session& session) : connection_(connection) {
    connection_.on_stop(
        [&session] { session.begin_close(close_codes::going_away, "the server stops"); });
  }
  StopNotice(const StopNotice&) = delete;
  StopNotice& operator=(const StopNotice&) = delete;
  ~StopNotice() { connection_.on_stop({}); }

 private:
  http::Connection& connection_;
};

}  // namespace

Endpoint::Endpoint(ws::Handler& handler, EndpointOptions options)
    : Endpoint(
          Made{},
          [&handler](Connection& connection, const http::Request& request) {
            return static_cast<detail::Session&>(connection).serve(handler, request);
          },
          std::move(options)) {}

Endpoint::Endpoint(Made, Talk talk, EndpointOptions options)
    : talk_(std::move(talk)), options_(std::move(options)) {
  detail::require_valid(options_.limits);
  detail::require_subprotocols(options_.subprotocols);
  if (options_.deflate) detail::require_valid(*options_.deflate);
}

bool Endpoint::allows_origin(const http::Request& request) const {
  std::optional<std::string_view> origin = request.headers().find("origin");
  if (!origin) return true;
  if (options_.allowed_origins.empty()) return is_origin_of(*origin, request.authority());
  return std::ranges::any_of(options_.allowed_origins, [&](const std::string& allowed) {
    return allowed == "*" || http::equal_ignoring_case(allowed, *origin);
  });
}

std::string Endpoint::choose_subprotocol(const http::Request& request) const {
  for (const std::string& ours : options_.subprotocols) {
    for (const http::Header& field : request.headers()) {
      if (!http::equal_ignoring_case(field.name, "sec-websocket-protocol")) continue;
      std::string_view list = field.value;
      std::string_view theirs;
      while (detail::take_item(list, theirs)) {
        if (theirs == ours) return ours;
      }
    }
  }
  return {};
}

// RFC 6455, 4.2.1.
bool Endpoint::accepts(const http::Request& request, http::Response& response) const {
  const http::Headers& headers = request.headers();
  if (request.method() != http::Method::get || request.version() != http::Version::http_1_1 ||
      !headers.has_token("upgrade", "websocket") || !headers.has_token("connection", "upgrade")) {
    response.header("upgrade", "websocket");
    return refuse(response, 426, "here is WebSocket spoken, and nothing else");
  }
  // 4.4.
  if (detail::count_of(headers, "sec-websocket-version") != 1 ||
      headers.find("sec-websocket-version") != kVersion) {
    response.header("upgrade", "websocket");
    response.header("sec-websocket-version", kVersion);
    return refuse(response, 426, "the version is not 13");
  }
  if (detail::count_of(headers, "sec-websocket-key") != 1 ||
      !detail::is_key(*headers.find("sec-websocket-key"))) {
    return refuse(response, 400, "there is not exactly one sec-websocket-key of 16 bytes");
  }
  // 9.1.
  if (!detail::extensions_are_well_formed(headers)) {
    return refuse(response, 400, "sec-websocket-extensions is no list of extensions");
  }
  if (detail::count_of(headers, "origin") > 1 || !allows_origin(request)) {
    return refuse(response, 403, "the page's origin is not allowed");
  }
  return true;
}

Task<std::unique_ptr<detail::Session>> Endpoint::open(const http::Request& request,
                                                      http::Response& response,
                                                      http::Connection& connection) const {
  if (!accepts(request, response)) co_return nullptr;
  detail::SessionSetup setup;
  setup.role = detail::Role::server;
  setup.subprotocol = choose_subprotocol(request);
  if (options_.deflate) {
    setup.deflate = *options_.deflate;
    setup.terms = detail::take_offer(request.headers(), setup.deflate);
  }
  response.header("sec-websocket-accept",
                  detail::accept_of(*request.headers().find("sec-websocket-key")));
  if (!setup.subprotocol.empty()) response.header("sec-websocket-protocol", setup.subprotocol);
  if (setup.terms) {
    response.header("sec-websocket-extensions", detail::answer_of(*setup.terms));
  }
  Result<http::Connection::Upgraded> upgraded = co_await connection.upgrade(response, "websocket");
  if (!upgraded) {
    if (response.has_begun()) co_return nullptr;
    for (const char* name :
         {"sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-extensions"}) {
      response.remove_header(name);
    }
    refuse(response, 400, "a handshake has no body");
    co_return nullptr;
  }
  setup.read_ahead = std::move(upgraded->read_ahead);
  co_return std::make_unique<detail::Session>(*upgraded->transport, options_.limits,
                                              std::move(setup));
}

// What the handshake needs is not in this frame, which lasts as long as the connection (W5).
Task<void> Endpoint::handle_request(const http::Request& request, http::Response& response,
                                    http::Connection& connection) {
  std::unique_ptr<detail::Session> session = co_await open(request, response, connection);
  if (!session) co_return;
  StopNotice notice(connection, *session);
  detail::Session::Talk talk = [&](Connection& socket) { return talk_(socket, request); };
  co_await session->run(talk);
}

}  // namespace weft::inline v0::ws
