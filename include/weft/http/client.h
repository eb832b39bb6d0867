// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Client: asks servers, and keeps the connections for the next question.
//
//     http::Client client;
//     ClientResponse response = or_throw(co_await client.get("http://127.0.0.1:8080/"));
//     if (response.status() == 200) page = or_throw(co_await response.body().read_all());
//
//     ClientRequest upload(Method::put, url);
//     upload.body = RequestBody::stream([&](BodyWriter& out) { return send_file(file, out); });
//     Result<ClientResponse> done = co_await within(10s, client.request(std::move(upload)));
//
// request() returns when the head of the response is there; the body is read as it comes. What is behind a redirect is
// fetched, up to ClientLimits::redirects_max. A status is not an error.
//
// gzip and brotli (if it was built in) are asked for and decoded as they come, unless the request has an accept-encoding or a range of its own, or
// ClientOptions::decodes is off. Then content-encoding and content-length are no longer among the header fields: they were the
// compressed body's. A body of another coding is left as it is, with its fields.
//
// Connections are kept per origin. One whose response was read to its end is used again; from one that is dropped
// earlier, by a cancel for instance, nobody could say where the next response begins: it is closed. A kept connection that
// the server has closed meanwhile is replaced, once, if the request may be repeated (RFC 9110, 9.2.2) or none of it was sent.
//
// Threads        one loop: that of the first request. Destroy it before the loop.
// Cancellation   request() is a cancel point where it waits, and closes its connection. A cancelled read of a body took nothing.
// Errors         http::Error, net::Error, or what the system says. UsageError: a header field that is the client's own (host,
//                connection, content-length, transfer-encoding, expect, upgrade, te), Method::connect or Method::other.
// Allocation     a few blocks per request.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/connector.h"
#include "weft/http/error.h"
#include "weft/http/message.h"
#include "weft/http/request.h"
#include "weft/http/url.h"

namespace weft::inline v0::http {

namespace detail {
class BodySink;
class ClientExchange;
class ClientPool;
}  // namespace detail

// docs/design/limits.md says what happens at each.
struct ClientLimits {
  std::uint32_t connections_per_origin_max = 8;  // further requests wait
  std::size_t waiters_per_origin_max = 10'000;   // so many; one more: Error::pool_full
  std::size_t idle_connections_max = 32;         // of all origins together; the oldest is closed
  std::size_t redirects_max = 10;
  std::size_t informational_max = 16;  // 1xx before the response

  std::size_t head_bytes_max = 64 * 1024;
  std::size_t header_fields_max = 256;
  std::uint64_t body_bytes_max = 64 * 1024 * 1024;  // of Body::read_all(); read_some() has no bound
  std::uint64_t skipped_body_bytes = 64 * 1024;     // of a redirect; more: the connection is closed
  // Of a body that was compressed, so many times what was sent, beyond the first MiB.
  std::uint64_t expansion_max = 256;

  std::chrono::milliseconds pool_timeout{60'000};     // for a place among the connections
  std::chrono::milliseconds connect_timeout{10'000};  // a proxy's tunnel and TLS included
  std::chrono::milliseconds head_timeout{
      60'000};  // from the end of the request to that of the head
  std::chrono::milliseconds body_timeout{30'000};     // without a byte
  std::chrono::milliseconds write_timeout{30'000};    // without a byte that the server takes
  std::chrono::milliseconds continue_timeout{1'000};  // then the body is sent without a 100
  std::chrono::milliseconds idle_timeout{30'000};     // of a connection that is kept
};

// Who is asked instead of the server itself.
struct Proxy {
  Endpoint where;
  // What it is told of us: the value of the field proxy-authorization. Empty: nothing.
  std::string authorization;
  friend bool operator==(const Proxy&, const Proxy&) = default;
};

// Who is asked for what. A value is a URL or "host:port", with "user:password@" in front of the host if it wants to know (%-escaped
// where it would end too early); empty: nobody.
struct Proxies {
  std::string http, https;
  // Names parted by commas that are asked directly, with all below them; "*": everybody.
  std::string no_proxy;

  // http_proxy and https_proxy, all_proxy for what they do not say, no_proxy; and all but the first in capitals. Not
  // HTTP_PROXY: in a CGI program that is a header field of whoever asks.
  [[nodiscard]] static Proxies from_environment();
  // Nothing: ask directly. Errors: Error::bad_proxy.
  [[nodiscard]] Result<std::optional<Proxy>> find(const Endpoint& where) const;
};

// What a streamed body is written to.
class BodyWriter {
 public:
  explicit BodyWriter(detail::BodySink& sink) noexcept : sink_(sink) {}
  // Waits while the server does not read. Errors: Error::wrong_length, Error::write_timeout, or the transport's.
  [[nodiscard]] Task<Result<void>> write(std::span<const std::byte> bytes);
  [[nodiscard]] Task<Result<void>> write(std::string_view text) {
    return write(std::as_bytes(std::span(text)));
  }

 private:
  detail::BodySink& sink_;
};

class RequestBody {
 public:
  using Sender = std::function<Task<Result<void>>(BodyWriter&)>;

  // None.
  RequestBody() noexcept = default;
  RequestBody(std::string bytes) : bytes_(std::move(bytes)), length_(bytes_.size()) {}
  RequestBody(const char* text) : RequestBody(std::string(text)) {}
  // In pieces: `sender`, a coroutine, writes them, and its error is the request's. Without a length it is sent in chunks.
  // It is called once: where the body would have to be sent again (a redirect by 307 or 308), the redirect is the response.
  [[nodiscard]] static RequestBody stream(Sender sender, std::optional<std::uint64_t> length = {}) {
    RequestBody body;
    body.sender_ = std::move(sender);
    body.length_ = length;
    return body;
  }

  [[nodiscard]] bool is_streamed() const noexcept { return static_cast<bool>(sender_); }
  [[nodiscard]] bool is_none() const noexcept { return !sender_ && bytes_.empty(); }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] const Sender& sender() const noexcept { return sender_; }
  [[nodiscard]] std::optional<std::uint64_t> length() const noexcept { return length_; }

 private:
  std::string bytes_;
  Sender sender_;
  std::optional<std::uint64_t> length_ = 0;
};

// With a constructor of its own, and so safe in a co_await expression on g++ 12, too.
struct ClientRequest {
  ClientRequest(Method how, Url where, HeaderLines fields = {}, RequestBody what = {})
      : method(how), url(std::move(where)), headers(std::move(fields)), body(std::move(what)) {}

  Method method;
  Url url;
  HeaderLines headers;
  RequestBody body;
  // The body is sent when the server has agreed, or says nothing for ClientLimits::continue_timeout.
  bool expects_continue = false;
  // Unless it is null, told where the question goes each time that it goes somewhere: of a request that failed behind redirects, too, it
  // is known whom it failed with. Outlives request().
  Url* asked = nullptr;
  // Another protocol, by its name: the server may answer 101, and then ClientResponse::upgrade() has the connection.
  std::string upgrade;
};

class [[nodiscard]] ClientResponse {
 public:
  ClientResponse(ClientResponse&& other) noexcept;
  ClientResponse& operator=(ClientResponse&& other) noexcept;
  ~ClientResponse();

  [[nodiscard]] int status() const noexcept;
  [[nodiscard]] Version version() const noexcept;
  // Views, good as long as this lives.
  [[nodiscard]] const Headers& headers() const noexcept;
  // Where it came from, after redirects.
  [[nodiscard]] const Url& url() const noexcept;
  [[nodiscard]] Body& body() noexcept;

  // After 101: the connection, and what the server sent behind its answer. UsageError: the status is another one, or it
  // was taken already.
  struct Upgraded {
    std::unique_ptr<Transport> transport;
    std::vector<std::byte> read_ahead;
  };
  [[nodiscard]] Upgraded upgrade();

 private:
  friend class Client;
  explicit ClientResponse(std::unique_ptr<detail::ClientExchange> exchange) noexcept;

  std::unique_ptr<detail::ClientExchange> exchange_;
};

struct ClientOptions {
  ClientLimits limits{};
  Proxies proxies = Proxies::from_environment();
  std::string user_agent = "weft";  // empty: none is sent
  bool decodes = true;              // gzip and brotli
  // None: a TcpConnector.
  std::shared_ptr<Connector> connector{};
};

class Client {
 public:
  explicit Client(ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // Requires: no request() is under way. Responses may live on; their connections are not kept.
  ~Client();

  [[nodiscard]] Task<Result<ClientResponse>> request(ClientRequest request);
  [[nodiscard]] Task<Result<ClientResponse>> get(Url url);
  // Errors: Error::bad_url; Url::parse() says where.
  [[nodiscard]] Task<Result<ClientResponse>> get(std::string url);

  [[nodiscard]] const ClientOptions& options() const noexcept { return options_; }
  // Connections that are open: in use, and kept.
  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::size_t idle_connections() const noexcept;
  // Closes those that are kept.
  void close_idle() noexcept;

 private:
  Task<Result<std::unique_ptr<detail::ClientExchange>>> ask(ClientRequest& request);

  ClientOptions options_;
  std::shared_ptr<detail::ClientPool> pool_;
};

}  // namespace weft::inline v0::http
