// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Request, Body: what was asked, and the bytes that came along.
//
//     std::string_view name = request.headers().find("x-name").value_or("nobody");
//     std::string text = or_throw(co_await request.body().read_all());
//
// Views, good until the handler has ended (H1).
//
// Threads        the connection's loop.
// Cancellation   reading a body is a cancel point where it waits; a cancelled read took nothing.
// Errors         Error::body_too_large, body_timeout, bad_body, or what the transport says. After one of them the
//                connection ends with the answer, and if the handler lets it pass (by or_throw(), say) the answer is 413, 408 or 400.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/message.h"

namespace weft::inline v0::http {

namespace detail {

// Where a body comes from: a version of the protocol.
class BodySource {
 public:
  virtual Task<Result<std::size_t>> read_body(std::span<std::byte> buffer) = 0;

 protected:
  ~BodySource() = default;
};

}  // namespace detail

class Body {
 public:
  // Up to buffer.size() bytes. Returns: how many; 0: the end. Requires: the buffer is not empty.
  [[nodiscard]] Task<Result<std::size_t>> read_some(std::span<std::byte> buffer) {
    return source_->read_body(buffer);
  }
  // All that is left; of more than bytes_max(), or than what is given: Error::body_too_large.
  [[nodiscard]] Task<Result<std::string>> read_all() { return read_all(bytes_max_); }
  [[nodiscard]] Task<Result<std::string>> read_all(std::uint64_t bytes_max);

  // What the peer said; nothing: it does not know yet (chunked). 0: there is none.
  [[nodiscard]] std::optional<std::uint64_t> length() const noexcept { return length_; }
  // Up to so many bytes, for this request, instead of Limits::body_bytes_max. Before the first read.
  void allow(std::uint64_t bytes_max) noexcept { bytes_max_ = bytes_max; }
  [[nodiscard]] std::uint64_t bytes_max() const noexcept { return bytes_max_; }

  // For weft's own use.
  void reset(detail::BodySource& source, std::optional<std::uint64_t> length,
             std::uint64_t bytes_max) noexcept {
    source_ = &source;
    length_ = length;
    bytes_max_ = bytes_max;
  }

 private:
  detail::BodySource* source_ = nullptr;
  std::optional<std::uint64_t> length_ = 0;
  std::uint64_t bytes_max_ = 0;
};

class Request {
 public:
  [[nodiscard]] Method method() const noexcept { return method_; }
  [[nodiscard]] std::string_view method_name() const noexcept { return method_name_; }
  // As it was sent.
  [[nodiscard]] std::string_view target() const noexcept { return target_; }
  // The target's path, not decoded; begins with '/', or is "*".
  [[nodiscard]] std::string_view path() const noexcept { return path_; }
  // What is behind the '?', not decoded; empty: nothing.
  [[nodiscard]] std::string_view query() const noexcept { return query_; }
  // The host that was asked, with its port if it was named.
  [[nodiscard]] std::string_view authority() const noexcept { return authority_; }
  [[nodiscard]] Version version() const noexcept { return version_; }
  [[nodiscard]] const Headers& headers() const noexcept { return headers_; }
  // The body may be read though the request is const: it is the connection's.
  [[nodiscard]] Body& body() const noexcept { return *body_; }

  // The part of the path that `{name}` stands for in the Router's pattern, decoded. UsageError: there is none of that name.
  [[nodiscard]] std::string parameter(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> find_parameter(std::string_view name) const;
  // The first value of that name in the query, decoded.
  [[nodiscard]] std::optional<std::string> query_value(std::string_view name) const;

 private:
  friend class Router;
  friend class RequestBuilder;

  Method method_ = Method::get;
  Version version_ = Version::http_1_1;
  std::string_view method_name_, target_, path_, query_, authority_;
  Headers headers_;
  Body* body_ = nullptr;
  // Set by the Router, which is handed a const Request.
  mutable std::vector<std::pair<std::string_view, std::string>> parameters_;
};

// For a version of the protocol: how a Request comes into being.
class RequestBuilder {
 public:
  struct Parts {
    Method method;
    Version version;
    std::string_view method_name, target, authority;
    Headers headers;
  };
  // https: good, but only for a connection that is encrypted (RFC 9110, 7.4).
  enum class Target : std::uint8_t { good, https, malformed };
  [[nodiscard]] static Target build(Request& request, const Parts& parts, Body& body);
};

}  // namespace weft::inline v0::http
