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

// What it says itself: a second one would leave it to the server which of them counts.
void require_own(const ClientOptions& options) {
  detail::require_subprotocols(options.subprotocols);
  for (std::string_view own :
       {"host", "upgrade", "connection", "content-length", "transfer-encoding", "sec-websocket-key",
        "sec-websocket-version", "sec-websocket-accept"}) {
    if (!options.headers.find(own)) continue;
    throw UsageError("ws::ClientOptions::headers: " + std::string(own) +
                     " is the handshake's own, which the url, or host and path, say: leave it out");
  }
  for (auto [own, member] :
       {std::pair("origin", "origin"), std::pair("sec-websocket-protocol", "subprotocols"),
        std::pair("sec-websocket-extensions", "deflate")}) {
    if (!options.headers.find(own)) continue;
    throw UsageError("ws::ClientOptions::headers: for " + std::string(own) +
                     " set ClientOptions::" + member);
  }
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

// A field that is there once, with that value.
bool has_only(const http::Headers& headers, std::string_view name, std::string_view value) {
  return detail::count_of(headers, name) == 1 &&
         http::equal_ignoring_case(*headers.find(name), value);
}

// RFC 6455, 4.1, the list at its end; 9.1.
bool is_answer(const http::Headers& headers, std::string_view key, const ClientOptions& options,
               detail::SessionSetup& setup) {
  if (!has_only(headers, "upgrade", "websocket") || !headers.has_token("connection", "upgrade") ||
      detail::count_of(headers, "sec-websocket-accept") != 1 ||
      headers.find("sec-websocket-accept") != detail::accept_of(key) ||
      !detail::extensions_are_well_formed(headers)) {
    return false;
  }
  if (std::size_t chosen = detail::count_of(headers, "sec-websocket-protocol"); chosen > 0) {
    setup.subprotocol = *headers.find("sec-websocket-protocol");
    if (chosen > 1 ||
        std::ranges::find(options.subprotocols, setup.subprotocol) == options.subprotocols.end()) {
      return false;
    }
  }
  return detail::read_answer(headers, options.deflate, setup.terms);
}

Task<Result<void>> send_all(http::Transport& transport, std::string_view rest) {
  while (!rest.empty()) {
    net::Part part(rest);
    std::span<const net::Part> parts(&part, 1);
    std::size_t count = co_await ok(transport.write_some(parts));
    rest.remove_prefix(count);
  }
  co_return {};
}

http::detail::HeadLimits head_limits() noexcept {
  const http::Limits limits;
  return {.target_bytes_max = limits.target_bytes_max,
          .bytes_max = limits.head_bytes_max,
          .fields_max = limits.header_fields_max};
}

// The server's answer. RFC 9110, 15.2: what is 1xx and does not switch comes before it, and is none.
class AnswerReader {
 public:
  explicit AnswerReader(std::size_t informational_max)
      : parser_(MessageParser::Kind::response, head_limits()),
        informational_left_(informational_max) {}
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;

  // Reads as far as its head goes.
  Task<Result<void>> read(http::Transport& transport) {
    while (true) {
      std::optional<Result<void>> done = parse();
      if (done) co_return *done;
      PooledBytes more = co_await ok(transport.read());
      if (more.empty()) co_return std::unexpected(make_error_code(net::Error::unexpected_end));
      input_.add(std::move(more), parser_, false);
    }
  }
  [[nodiscard]] int status() const noexcept { return parser_.status(); }
  [[nodiscard]] http::Headers headers() const noexcept { return http::Headers(parser_.fields()); }
  // What was read behind it.
  [[nodiscard]] std::span<const std::byte> behind() const noexcept {
    return std::as_bytes(std::span(input_.next()));
  }

 private:
  // Returns: nothing if there is more to come.
  std::optional<Result<void>> parse() {
    const auto bad = [] { return std::unexpected(make_error_code(Error::bad_handshake)); };
    while (!input_.next().empty()) {
      MessageParser::Step step = parser_.walk(input_.next());
      if (step.stop == MessageParser::Stop::failed) return bad();
      input_.take(step.taken);
      if (step.stop == MessageParser::Stop::more) break;
      if (status() == 101 || status() >= 200) return Result<void>();
      if (informational_left_-- == 0) return bad();
      parser_.begin();
      input_.release();
    }
    return std::nullopt;
  }

  MessageParser parser_;
  Input input_;
  std::size_t informational_left_;
};

// Sends the request, and fills in `setup` from the answer.
Task<Result<void>> shake_hands(http::Transport& transport, std::string request,
                               std::string_view key, const ClientOptions& options,
                               detail::SessionSetup& setup) {
  co_await ok(send_all(transport, request));
  AnswerReader answer(options.limits.informational_max);
  co_await ok(answer.read(transport));
  http::Headers headers = answer.headers();
  if (answer.status() != 101) {
    if (options.on_refused) options.on_refused(answer.status(), headers);
    co_return std::unexpected(make_error_code(Error::refused));
  }
  if (!is_answer(headers, key, options, setup)) {
    co_return std::unexpected(make_error_code(Error::bad_handshake));
  }
  setup.read_ahead.assign(answer.behind().begin(), answer.behind().end());
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

Task<Result<Close>> detail::connect_over(http::Transport& transport, std::string host,
                                         std::string path, ClientTalk talk, ClientOptions options) {
  Closing closing(transport);
  if (!is_sendable_word(host) || !is_sendable_word(path) || !path.starts_with('/')) {
    throw UsageError(
        "ws::connect(): a host or a path that cannot be sent: the path begins with '/', and "
        "what is not printable ASCII is escaped");
  }
  require_own(options);
  detail::require_valid(options.limits);
  if (options.deflate) detail::require_valid(*options.deflate);
  detail::SessionSetup setup;
  setup.role = detail::Role::client;
  if (options.deflate) setup.deflate = *options.deflate;
  std::string key = detail::new_key();
  std::string request = request_of(host, path, key, options);
  Task<Result<void>> handshake = shake_hands(transport, std::move(request), key, options, setup);
  co_await ok(within(options.limits.handshake_timeout, std::move(handshake)));
  detail::Session session(transport, options.limits, std::move(setup));
  co_await session.run(talk);
  co_return *session.closed();
}

Task<Result<Close>> detail::connect_to(std::string url, ClientTalk talk, ClientOptions options) {
  std::optional<http::Url> where = read_url(url);
  if (!where) co_return std::unexpected(make_error_code(Error::bad_url));
  if (!options.connector) options.connector = std::make_shared<http::TcpConnector>();
  // One time for all of it: what the way there takes, the handshake does not have.
  TimePoint late = now() + options.limits.handshake_timeout;
  std::unique_ptr<http::Transport> transport = co_await ok(
      within(options.limits.handshake_timeout, options.connector->connect(where->origin())));
  auto left = std::chrono::ceil<std::chrono::milliseconds>(late - now());
  options.limits.handshake_timeout = std::max(left, std::chrono::milliseconds(0));
  Task<Result<Close>> talking = connect_over(*transport, where->authority(), where->target(),
                                             std::move(talk), std::move(options));
  co_return co_await std::move(talking);
}

}  // namespace weft::inline v0::ws
