// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Url: where something is, by RFC 3986, of the schemes http and https.
//
//     Result<Url, UrlError> url = Url::parse("https://example.org:8443/a/b?c=d");
//     Result<Url, UrlError> next = url->resolve("../e");                  // https://example.org:8443/e
//
// What is not a URL is not mended: a space, a letter that is not ASCII, a '%' without its two digits are errors that say
// where. Escapes stay as they are; percent_encoded() makes them. The host is in lower case, the path without "." and
// "..". A fragment is checked and dropped: it is never sent. A user in front of the host is refused: it belongs into a
// header field, and in a URL it ends up in logs.
//
// Threads        a value: as a std::string.
// Allocation     its strings.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::inline v0::http {

// what() says what is wrong, and where. An exception too, for or_throw().
class UrlError : public std::invalid_argument {
 public:
  UrlError(std::string_view text, std::size_t at, const char* why);
  // The byte of the text that was given.
  [[nodiscard]] std::size_t at() const noexcept { return at_; }

 private:
  std::size_t at_;
};

enum class Scheme : std::uint8_t { http, https };
[[nodiscard]] std::string_view to_string(Scheme scheme) noexcept;
[[nodiscard]] constexpr std::uint16_t default_port(Scheme scheme) noexcept {
  return scheme == Scheme::http ? 80 : 443;
}

// Where a connection goes. `host` is a name or an address, without brackets.
struct Endpoint {
  Scheme scheme = Scheme::http;
  std::string host;
  std::uint16_t port = 80;

  // "example.org", "example.org:8080", "[::1]:8080": as the header field host has it.
  [[nodiscard]] std::string authority() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

class Url {
 public:
  static constexpr std::size_t kBytesMax = 8 * 1024;  // what servers take

  // Absolute, with its scheme.
  [[nodiscard]] static Result<Url, UrlError> parse(std::string_view text);
  // What `reference` means on a page that is here (RFC 3986, 5.2).
  [[nodiscard]] Result<Url, UrlError> resolve(std::string_view reference) const;

  [[nodiscard]] Scheme scheme() const noexcept { return origin_.scheme; }
  [[nodiscard]] const std::string& host() const noexcept { return origin_.host; }
  [[nodiscard]] std::uint16_t port() const noexcept { return origin_.port; }
  // Scheme, host and port: who is trusted with one URL of an origin is trusted with all.
  [[nodiscard]] const Endpoint& origin() const noexcept { return origin_; }
  [[nodiscard]] std::string authority() const { return origin_.authority(); }
  // Path and query, as a request names them; begins with '/'.
  [[nodiscard]] const std::string& target() const noexcept { return target_; }
  [[nodiscard]] std::string_view path() const noexcept;
  // What is behind the '?'; empty: nothing.
  [[nodiscard]] std::string_view query() const noexcept;
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Url&, const Url&) = default;

 private:
  Url() = default;
  class Parser;

  Endpoint origin_;
  std::string target_;
};

// `text` as one part of a path or one value of a query: everything but letters, digits and "-._~" becomes a %-escape.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace weft::inline v0::http
