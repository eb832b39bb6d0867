// SPDX-License-Identifier: MIT
#include "weft/http/client.h"

#include <array>
#include <utility>

#include "client_connection.h"
#include "exchange.h"
#include "peer_left.h"
#include "pool.h"
#include "weft/base/assert.h"
#include "weft/core/ok.h"
#include "weft/net/error.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::http {

namespace {

using detail::ClientConnection;
using detail::ClientExchange;
using detail::Lease;
using detail::Outgoing;

// Where a request goes, and by way of whom.
struct Route {
  Endpoint origin;
  std::optional<Proxy> proxy;

  [[nodiscard]] bool has_tunnel() const noexcept { return proxy && origin.scheme == Scheme::https; }
  // Whoever has the same may have the same connection.
  [[nodiscard]] std::string key() const {
    auto name = [](const Endpoint& of) {
      return std::string(to_string(of.scheme)) + "://" + of.authority();
    };
    if (!proxy) return name(origin);
    if (!has_tunnel()) return "by " + name(proxy->where);
    return name(origin) + " by " + name(proxy->where);
  }
};

void require_own(const ClientRequest& request) {
  if (!request.upgrade.empty())
    HeaderLines().add("upgrade", request.upgrade);  // no line break in it
  for (std::string_view own :
       {"host", "connection", "content-length", "transfer-encoding", "expect", "upgrade", "te"}) {
    if (!request.headers.find(own)) continue;
    throw UsageError("header field " + std::string(own) +
                     " is the client's own: the url, the body and ClientRequest's members say it");
  }
  if (request.method == Method::connect || request.method == Method::other) {
    throw UsageError("a Client does not send CONNECT, nor methods that it knows by name only");
  }
}

// RFC 9110, 9.2.2.
bool is_idempotent(Method method) noexcept {
  return method != Method::post && method != Method::patch;
}

// RFC 9110, 14.2: a range is one of the coded bytes, and they alone are of no use.
bool asks_for_codings(const ClientRequest& request, const ClientOptions& options) {
  return options.decodes && request.upgrade.empty() && !request.headers.find("accept-encoding") &&
         !request.headers.find("range");
}

void append_authorization(std::string& head, const Proxy& proxy) {
  if (proxy.authorization.empty()) return;
  head.append("proxy-authorization: ").append(proxy.authorization).append("\r\n");
}

// `proxy`: who is sent it, if that is not the server nor a tunnel to it.
std::string head_of(const ClientRequest& request, const Proxy* proxy,
                    const ClientOptions& options) {
  std::string head(to_string(request.method));
  head.append(" ").append(proxy ? request.url.to_string() : request.url.target());
  head.append(" HTTP/1.1\r\nhost: ").append(request.url.authority()).append("\r\n");
  if (proxy && !request.headers.find("proxy-authorization")) append_authorization(head, *proxy);
  if (!options.user_agent.empty() && !request.headers.find("user-agent")) {
    head.append("user-agent: ").append(options.user_agent).append("\r\n");
  }
  if (asks_for_codings(request, options)) {
    head.append("accept-encoding: ");
    for (detail::Coding coding : detail::known_codings()) {
      if (!head.ends_with(' ')) head.append(", ");
      head.append(to_string(coding));
    }
    head.append("\r\n");
  }
  head.append(request.headers.lines());
  const RequestBody& body = request.body;
  if (!body.length()) {
    head.append("transfer-encoding: chunked\r\n");
  } else if (!body.is_none() || request.method == Method::post || request.method == Method::put ||
             request.method == Method::patch) {
    // RFC 9110, 8.6: also of nothing, where something is expected.
    head.append("content-length: ").append(std::to_string(*body.length())).append("\r\n");
  }
  if (request.expects_continue && !body.is_none()) head.append("expect: 100-continue\r\n");
  if (!request.upgrade.empty()) {
    head.append("connection: upgrade\r\nupgrade: ").append(request.upgrade).append("\r\n");
  }
  return head.append("\r\n");
}

// RFC 9110, 9.3.6: bytes to the origin, by way of the proxy at the other end of `transport`.
Task<Result<std::unique_ptr<Transport>>> open_tunnel(std::unique_ptr<Transport> transport,
                                                     const Route& route,
                                                     const ClientLimits& limits) {
  ClientConnection proxy(std::move(transport), limits);
  const Endpoint& where = route.origin;
  std::string host = where.host.find(':') == where.host.npos ? where.host : "[" + where.host + "]";
  host.append(":").append(std::to_string(where.port));  // the port always
  RequestBody none;
  Outgoing request;
  request.method = Method::connect;
  request.head = "CONNECT " + host + " HTTP/1.1\r\nhost: " + host + "\r\n";
  append_authorization(request.head, *route.proxy);
  request.head += "\r\n";
  request.body = &none;
  co_await ok(proxy.exchange(std::move(request)));
  detail::ResponseHead head;
  proxy.take_head(head);
  if (head.status == 407) co_return std::unexpected(make_error_code(Error::proxy_wants_user));
  if (head.status / 100 != 2) co_return std::unexpected(make_error_code(Error::proxy_refused));
  ClientResponse::Upgraded tunnel = proxy.release();
  // TLS is begun by the client: whoever speaks first is not who we asked for.
  if (!tunnel.read_ahead.empty()) {
    co_return std::unexpected(make_error_code(Error::bad_response));
  }
  co_return std::move(tunnel.transport);
}

Task<Result<std::unique_ptr<Transport>>> open(Connector& connector, const Route& route,
                                              const ClientLimits& limits) {
  if (!route.has_tunnel()) {
    co_return co_await connector.connect(route.proxy ? route.proxy->where : route.origin);
  }
  std::unique_ptr<Transport> transport = co_await ok(connector.connect(route.proxy->where));
  transport = co_await ok(open_tunnel(std::move(transport), route, limits));
  co_return co_await connector.secure(std::move(transport), route.origin);
}

Task<Result<void>> connect(Lease& lease, Connector& connector, const Route& route,
                           const ClientLimits& limits) {
  Result<std::unique_ptr<Transport>> opened =
      co_await within(limits.connect_timeout, open(connector, route, limits));
  if (!opened && opened.error() == std::errc::timed_out) {
    co_return std::unexpected(make_error_code(Error::connect_timeout));
  }
  if (!opened) co_return std::unexpected(opened.error());
  lease.put(std::make_unique<ClientConnection>(std::move(*opened), limits));
  co_return {};
}

// A response that says to ask elsewhere: changes `request` accordingly. Returns: false if it is to be returned as it is.
Result<bool> follow(ClientRequest& request, int status, const Headers& headers) {
  bool is_redirect =
      status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  std::optional<std::string_view> location = headers.find("location");
  if (!is_redirect || !location) return false;
  bool keeps_body = status == 307 || status == 308;
  if (keeps_body && request.body.is_streamed()) return false;
  Result<Url, UrlError> url = request.url.resolve(*location);
  if (!url) return std::unexpected(make_error_code(Error::bad_redirect));

  // RFC 9110, 15.4: 303 is for another resource; of 301 and 302 all have made the same after POST.
  bool becomes_get = (status == 303 && request.method != Method::head) ||
                     (!keeps_body && request.method == Method::post);
  if (becomes_get) {
    request.method = Method::get;
    request.body = RequestBody();
    request.expects_continue = false;
    for (std::string_view of_body :
         {"content-type", "content-encoding", "content-language", "content-location"}) {
      request.headers.remove(of_body);
    }
  } else if (request.body.is_streamed()) {
    return false;
  }
  // What was meant for one origin is not for another.
  if (url->origin() != request.url.origin()) {
    for (std::string_view secret : {"authorization", "cookie", "proxy-authorization"}) {
      request.headers.remove(secret);
    }
  }
  request.url = std::move(*url);
  return true;
}

// The body of a redirect, so that its connection may be used again.
Task<void> skip(ClientExchange& exchange, std::uint64_t bytes_max) {
  std::array<std::byte, 4096> dropped;
  exchange.stop_decoding();  // the bound is of what is sent
  for (std::uint64_t read = 0; read <= bytes_max;) {
    Result<std::size_t> count = co_await exchange.body().read_some(dropped);
    if (!count || *count == 0) co_return;
    read += *count;
  }
}

// Whether it may be sent once more, on a new connection.
bool may_retry(const ClientRequest& request, ClientConnection& connection,
               const std::error_code& error) {
  if (!detail::peer_left(error) || connection.has_answered() || request.body.is_streamed())
    return false;
  return is_idempotent(request.method) || connection.bytes_sent() == 0;
}

}  // namespace

// --- Client -----------------------------------------------------------------------------------------

Client::Client(ClientOptions options)
    : options_(std::move(options)), pool_(std::make_shared<detail::ClientPool>(options_.limits)) {
  HeaderLines().add("user-agent", options_.user_agent);  // UsageError: a line break in it
  if (!options_.connector) options_.connector = std::make_shared<TcpConnector>();
}
Client::~Client() { pool_->close(); }

std::size_t Client::connections() const noexcept { return pool_->in_use() + pool_->kept(); }
std::size_t Client::idle_connections() const noexcept { return pool_->kept(); }
void Client::close_idle() noexcept { pool_->close_kept(); }

Task<Result<ClientResponse>> Client::get(Url url) {
  return request(ClientRequest(Method::get, std::move(url)));
}

Task<Result<ClientResponse>> Client::get(std::string text) {
  Result<Url, UrlError> url = Url::parse(text);
  if (!url) co_return std::unexpected(make_error_code(Error::bad_url));
  co_return co_await get(std::move(*url));
}

Task<Result<ClientResponse>> Client::request(ClientRequest request) {
  require_own(request);
  for (std::size_t redirects = 0;; ++redirects) {
    if (request.asked) *request.asked = request.url;
    std::unique_ptr<ClientExchange> exchange = co_await ok(ask(request));
    bool goes_on = false;
    if (options_.limits.redirects_max > 0) {
      Result<bool> followed = follow(request, exchange->head().status, exchange->headers());
      if (!followed) co_return std::unexpected(followed.error());
      goes_on = *followed;
    }
    if (!goes_on) co_return ClientResponse(std::move(exchange));
    if (redirects == options_.limits.redirects_max) {
      co_return std::unexpected(make_error_code(Error::too_many_redirects));
    }
    co_await skip(*exchange, options_.limits.skipped_body_bytes);
  }
}

// One request, one response.
Task<Result<std::unique_ptr<ClientExchange>>> Client::ask(ClientRequest& request) {
  const ClientLimits& limits = pool_->limits();
  Result<std::optional<Proxy>> proxy = options_.proxies.find(request.url.origin());
  if (!proxy) co_return std::unexpected(proxy.error());
  Route route{request.url.origin(), std::move(*proxy)};
  const Proxy* asked = route.proxy && !route.has_tunnel() ? &*route.proxy : nullptr;

  Outgoing outgoing;
  outgoing.method = request.method;
  outgoing.head = head_of(request, asked, options_);
  outgoing.body = &request.body;
  outgoing.expects_continue = request.expects_continue && !request.body.is_none();
  outgoing.wants_upgrade = !request.upgrade.empty();

  Lease lease = co_await ok(pool_->lease(route.key()));
  bool was_kept = lease.take_kept();
  if (!was_kept) co_await ok(connect(lease, *options_.connector, route, limits));
  Result<void> done = co_await lease.connection()->exchange(outgoing);
  if (!done && was_kept && may_retry(request, *lease.connection(), done.error())) {
    lease.close_kept();  // what the server did to one it has done to the others, or will
    lease.put(nullptr);
    co_await ok(connect(lease, *options_.connector, route, limits));
    done = co_await lease.connection()->exchange(std::move(outgoing));
  }
  if (!done) co_return std::unexpected(done.error());
  bool decodes = asks_for_codings(request, options_);
  co_return std::make_unique<ClientExchange>(std::move(lease), request.url, limits, decodes);
}

// --- BodyWriter, ClientResponse ---------------------------------------------------------------------

Task<Result<void>> BodyWriter::write(std::span<const std::byte> bytes) {
  return sink_.write_piece(bytes);
}

ClientResponse::ClientResponse(std::unique_ptr<ClientExchange> exchange) noexcept
    : exchange_(std::move(exchange)) {}
ClientResponse::ClientResponse(ClientResponse&& other) noexcept = default;
ClientResponse& ClientResponse::operator=(ClientResponse&& other) noexcept = default;
ClientResponse::~ClientResponse() = default;

int ClientResponse::status() const noexcept { return exchange_->head().status; }
Version ClientResponse::version() const noexcept { return exchange_->head().version; }
const Headers& ClientResponse::headers() const noexcept { return exchange_->headers(); }
const Url& ClientResponse::url() const noexcept { return exchange_->url(); }
Body& ClientResponse::body() noexcept { return exchange_->body(); }

ClientResponse::Upgraded ClientResponse::upgrade() {
  if (status() != 101 || !exchange_->has_connection()) {
    throw UsageError("ClientResponse::upgrade() is for a status of 101, and once");
  }
  return exchange_->release();
}

}  // namespace weft::inline v0::http
