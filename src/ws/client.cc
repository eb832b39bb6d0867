// SPDX-License-Identifier: MIT
#include "weft/ws/client.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "handshake.h"
#include "http/input.h"
#include "http/parser.h"
#include "session.h"
#include "weft/base/assert.h"
#include "weft/core/ok.h"
#include "weft/http/limits.h"
#include "weft/http/url.h"
#include "weft/net/error.h"
#include "weft/time/sleep.h"
#include "weft/time/timeout.h"
#include "weft/ws/error.h"

namespace weft::inline v0::ws {

namespace {

using http::detail::Input;
using http::detail::MessageParser;

// What could end the line, or the word, that it stands in.
bool is_sendable_word(std::string_view word) noexcept {
  return !word.empty() &&
         std::ranges::all_of(word, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

std::string request_of(std::string_view host, std::string_view path, std::string_view key,
                       const ClientOptions& options) {
  http::HeaderLines lines;
  lines.add("host", host);
  lines.add("upgrade", "websocket");
  lines.add("connection", "Upgrade");
  lines.add("sec-websocket-key", key);
  lines.add("sec-websocket-version", "13");
  std::string offered;
  for (const std::string& subprotocol : options.subprotocols) {
    offered.append(offered.empty() ? "" : ", ").append(subprotocol);
  }
  if (!offered.empty()) lines.add("sec-websocket-protocol", offered);
  if (options.deflate) lines.add("sec-websocket-extensions", detail::offer_of(*options.deflate));
  if (!options.origin.empty()) lines.add("origin", options.origin);
  std::string text("GET ");
  text.append(path).append(" HTTP/1.1\r\n").append(lines.lines());
  text.append(options.headers.lines()).append("\r\n");
  return text;
}

// RFC 6455, 4.1, the list at its end.
bool is_answer(const http::Headers& headers, std::string_view key, const ClientOptions& options,
               detail::SessionSetup& setup) {
  if (!headers.has_token("upgrade", "websocket") || !headers.has_token("connection", "upgrade") ||
      headers.find("sec-websocket-accept") != detail::accept_of(key)) {
    return false;
  }
  std::size_t subprotocols = 0;
  for (const http::Header& field : headers) {
    if (!http::equal_ignoring_case(field.name, "sec-websocket-protocol")) continue;
    setup.subprotocol = field.value;
    if (++subprotocols > 1) return false;
    if (std::ranges::find(options.subprotocols, setup.subprotocol) == options.subprotocols.end()) {
      return false;
    }
  }
  return detail::read_answer(headers, options.deflate, setup.terms);
}

// Sends the request, and fills in `setup` from the answer.
Task<Result<void>> shake_hands(http::Transport& transport, std::string request,
                               std::string_view key, const ClientOptions& options,
                               detail::SessionSetup& setup) {
  for (std::string_view rest(request); !rest.empty();) {
    net::Part part(rest);
    std::span<const net::Part> parts(&part, 1);
    std::size_t count = co_await ok(transport.write_some(parts));
    rest.remove_prefix(count);
  }
  const http::Limits limits;
  const http::detail::HeadLimits head_limits{.target_bytes_max = limits.target_bytes_max,
                                             .bytes_max = limits.head_bytes_max,
                                             .fields_max = limits.header_fields_max};
  MessageParser parser(MessageParser::Kind::response, head_limits);
  Input input;
  while (true) {
    PooledBytes more = co_await ok(transport.read());
    if (more.empty()) co_return std::unexpected(make_error_code(net::Error::unexpected_end));
    input.add(std::move(more), parser, false);
    MessageParser::Step step = parser.walk(input.next());
    if (step.stop == MessageParser::Stop::failed) {
      co_return std::unexpected(make_error_code(Error::bad_handshake));
    }
    input.take(step.taken);
    if (step.stop != MessageParser::Stop::more) break;
  }
  http::Headers headers(parser.fields());
  if (parser.status() != 101) {
    if (options.on_refused) options.on_refused(parser.status(), headers);
    co_return std::unexpected(make_error_code(Error::refused));
  }
  if (!is_answer(headers, key, options, setup)) {
    co_return std::unexpected(make_error_code(Error::bad_handshake));
  }
  std::span<const std::byte> behind = std::as_bytes(std::span(input.next()));
  setup.read_ahead.assign(behind.begin(), behind.end());
  co_return {};
}

// The same place, as http has it: RFC 6455, 3 has its paths, queries and ports.
std::optional<http::Url> read_url(std::string_view text) {
  std::size_t colon = std::min(text.find(':'), text.size());
  std::string_view scheme = text.substr(0, colon);
  bool is_secure = http::equal_ignoring_case(scheme, "wss");
  if (!is_secure && !http::equal_ignoring_case(scheme, "ws")) return std::nullopt;
  if (text.find('#') != text.npos) return std::nullopt;
  std::string as_http(is_secure ? "https" : "http");
  Result<http::Url, http::UrlError> url = http::Url::parse(as_http.append(text.substr(colon)));
  if (!url) return std::nullopt;
  return std::move(*url);
}

// However it is left.
class Closing {
 public:
  explicit Closing(http::Transport& transport) noexcept : transport_(transport) {}
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing() { transport_.close(); }

 private:
  http::Transport& transport_;
};

}  // namespace

Task<Result<Close>> connect(http::Transport& transport, std::string host, std::string path,
                            ClientTalk talk, ClientOptions options) {
  Closing closing(transport);
  if (!is_sendable_word(host) || !is_sendable_word(path) || !path.starts_with('/')) {
    throw UsageError(
        "ws::connect(): a host or a path that cannot be sent: the path begins with '/', and "
        "what is not printable ASCII is escaped");
  }
  detail::require_valid(options.limits);
  if (options.deflate) detail::require_valid(*options.deflate);
  detail::SessionSetup setup;
  setup.role = detail::Role::client;
  setup.limits = options.limits;
  if (options.deflate) setup.deflate = *options.deflate;
  std::string key = detail::new_key();
  std::string request = request_of(host, path, key, options);
  Task<Result<void>> handshake = shake_hands(transport, std::move(request), key, options, setup);
  co_await ok(within(options.limits.handshake_timeout, std::move(handshake)));
  detail::Session session(transport, std::move(setup));
  co_await session.run(std::move(talk));
  co_return *session.closed();
}

Task<Result<Close>> connect(std::string url, ClientTalk talk, ClientOptions options) {
  std::optional<http::Url> where = read_url(url);
  if (!where) co_return std::unexpected(make_error_code(Error::bad_url));
  if (!options.connector) options.connector = std::make_shared<http::TcpConnector>();
  // One time for all of it: what the way there takes, the handshake does not have.
  TimePoint late = now() + options.limits.handshake_timeout;
  std::unique_ptr<http::Transport> transport = co_await ok(
      within(options.limits.handshake_timeout, options.connector->connect(where->origin())));
  auto left = std::chrono::ceil<std::chrono::milliseconds>(late - now());
  options.limits.handshake_timeout = std::max(left, std::chrono::milliseconds(0));
  Task<Result<Close>> talking =
      connect(*transport, where->authority(), where->target(), std::move(talk), std::move(options));
  co_return co_await std::move(talking);
}

}  // namespace weft::inline v0::ws
