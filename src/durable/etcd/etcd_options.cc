// SPDX-License-Identifier: MIT
#include "durable/etcd/etcd_options.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "weft/http/message.h"

namespace weft::inline v0::durable {

namespace {

constexpr std::uint16_t kDefaultPort = 2379;
constexpr std::size_t kPrefixBytesMax = 256;
constexpr std::size_t kEndpointsMax = 32;

std::unexpected<LockError> wrong(std::string_view what) {
  std::string text(what);
  text += "; write etcd://[user:password@]host:port[,host:port…][/prefix]";
  return std::unexpected(LockError(LockError::invalid, text));
}

// "host", "host:port", "[::1]:port". Whether the host is one, http::Url knows.
LockResult<http::Endpoint> parse_endpoint(std::string_view text, http::Scheme scheme) {
  if (text.empty()) return wrong("a host is missing in the etcd URL");
  const bool has_port = text.rfind(':') != text.npos && !text.ends_with(']');
  std::string asked = std::string(http::to_string(scheme)) + "://" + std::string(text);
  if (!has_port) asked += ":" + std::to_string(kDefaultPort);
  const Result<http::Url, http::UrlError> url = http::Url::parse(asked + "/");
  if (!url || url->target() != "/") {
    return wrong("\"" + std::string(text) + "\" in the etcd URL is not a host and its port");
  }
  return url->origin();
}

LockResult<> parse_user(std::string_view text, EtcdOptions& options) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon == 0) {
    return wrong("the etcd URL has a user without a password, or a password without a user");
  }
  std::optional<std::string> user = http::percent_decoded(text.substr(0, colon));
  std::optional<std::string> password = http::percent_decoded(text.substr(colon + 1));
  if (!user || !password)
    return wrong("a %-escape in the user or the password of the etcd URL is wrong");
  if (password->empty()) return wrong("the password in the etcd URL is empty");
  options.user = std::move(*user);
  options.password = std::move(*password);
  return {};
}

LockResult<> parse_prefix(std::string_view text, EtcdOptions& options) {
  while (text.ends_with('/')) text.remove_suffix(1);
  if (text.empty()) return {};
  std::optional<std::string> prefix = http::percent_decoded(text);
  if (!prefix) return wrong("a %-escape in the prefix of the etcd URL is wrong");
  if (prefix->size() > kPrefixBytesMax) {
    return wrong("the prefix in the etcd URL is longer than " + std::to_string(kPrefixBytesMax) +
                 " bytes");
  }
  if (std::ranges::any_of(text, [](char c) { return c == '?' || c == '#'; })) {
    return wrong("the etcd URL has a '?' or '#': it takes no options");
  }
  options.prefix = std::move(*prefix);
  return {};
}

}  // namespace

LockResult<EtcdOptions> parse_etcd_url(std::string_view url) {
  http::Scheme scheme = http::Scheme::http;
  std::string_view rest = url;
  if (url.starts_with("etcds://")) {
    scheme = http::Scheme::https;
    rest.remove_prefix(8);
  } else if (url.starts_with("etcd://")) {
    rest.remove_prefix(7);
  } else {
    return wrong("this is no etcd URL");
  }
  EtcdOptions options;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view hosts = rest.substr(0, slash);
  if (slash < rest.size()) {
    LockResult<> parsed = parse_prefix(rest.substr(slash + 1), options);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
  }
  if (const std::size_t at = hosts.rfind('@'); at != hosts.npos) {
    LockResult<> parsed = parse_user(hosts.substr(0, at), options);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    hosts.remove_prefix(at + 1);
  }
  while (true) {
    const std::size_t comma = std::min(hosts.find(','), hosts.size());
    LockResult<http::Endpoint> endpoint = parse_endpoint(hosts.substr(0, comma), scheme);
    if (!endpoint) return std::unexpected(std::move(endpoint.error()));
    options.endpoints.push_back(std::move(*endpoint));
    if (options.endpoints.size() > kEndpointsMax) return wrong("the etcd URL names too many hosts");
    if (comma == hosts.size()) return options;
    hosts.remove_prefix(comma + 1);
  }
}

std::string EtcdOptions::url() const {
  const bool is_tls = !endpoints.empty() && endpoints.front().scheme == http::Scheme::https;
  std::string text = is_tls ? "etcds://" : "etcd://";
  if (!user.empty()) text += http::percent_encoded(user) + ":…@";
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    if (i > 0) text += ',';
    text += endpoints[i].authority();
  }
  return text + "/" + prefix;
}

}  // namespace weft::inline v0::durable
