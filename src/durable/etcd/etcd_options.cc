// SPDX-License-Identifier: MIT
#include "durable/etcd/etcd_options.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "weft/http/message.h"
#include "weft/tls/context.h"
#include "weft/tls/identity.h"

namespace weft::inline v0::durable {

namespace {

constexpr std::uint16_t kDefaultPort = 2379;
constexpr std::size_t kPrefixBytesMax = 256;
constexpr std::size_t kEndpointsMax = 32;
constexpr std::chrono::milliseconds kTimeoutMin{100};
constexpr std::chrono::milliseconds kTimeoutMax = std::chrono::minutes(10);

std::unexpected<LockError> wrong(std::string_view what) {
  std::string text(what);
  text +=
      "; write etcd://[user:password@]host:port[,host:port…][/prefix]"
      "[?timeout=3s&ca=/path&cert=/path&key=/path]";
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
  if (text.contains('#')) return wrong("the etcd URL has a '#'");
  options.prefix = std::move(*prefix);
  return {};
}

// "1500ms", "3s", "2m".
std::optional<std::chrono::milliseconds> parse_time(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, text.data() + text.size());
  if (error != std::errc() || count < 0 || count > kTimeoutMax.count()) return std::nullopt;
  const std::int64_t scale = unit == "ms" ? 1 : unit == "s" ? 1'000 : unit == "m" ? 60'000 : 0;
  const std::chrono::milliseconds time(count * scale);
  if (time < kTimeoutMin || time > kTimeoutMax) return std::nullopt;
  return time;
}

LockResult<> parse_option(std::string_view text, EtcdOptions& options) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  std::optional<std::string> value =
      http::percent_decoded(text.substr(std::min(equals + 1, text.size())));
  if (!value) return wrong("a %-escape in the options of the etcd URL is wrong");
  if (name == "timeout") {
    const std::optional<std::chrono::milliseconds> time = parse_time(*value);
    if (!time) return wrong("timeout in the etcd URL is a time from 100ms to 10m");
    options.call_timeout = *time;
    options.attempt_timeout = std::min(options.attempt_timeout, *time);
    return {};
  }
  std::string* path = name == "ca"     ? &options.ca_path
                      : name == "cert" ? &options.certificate_path
                      : name == "key"  ? &options.key_path
                                       : nullptr;
  if (!path) return wrong("the etcd URL has an unknown option \"" + std::string(name) + "\"");
  if (value->empty()) return wrong(std::string(name) + " in the etcd URL names no file");
  *path = std::move(*value);
  return {};
}

LockResult<> parse_options(std::string_view text, bool is_tls, EtcdOptions& options) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    LockResult<> parsed = parse_option(text.substr(0, end), options);
    if (!parsed) return parsed;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (options.certificate_path.empty() != options.key_path.empty())
    return wrong(
        "the etcd URL has a certificate without its key, or a key without its certificate");
  if (!is_tls && !(options.ca_path.empty() && options.key_path.empty()))
    return wrong("ca, cert and key are for etcds://");
  return {};
}

std::unexpected<LockError> unusable(const std::string& path, const std::error_code& error) {
  return std::unexpected(LockError(LockError::invalid, path + ": " + error.message()));
}

LockResult<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) {
    return std::unexpected(LockError(
        LockError::invalid, path + " cannot be read, or is empty: look at ca= of the URL"));
  }
  return text;
}

}  // namespace

LockResult<> load_certificates(EtcdOptions& options) {
  if (options.ca_path.empty() && options.certificate_path.empty()) return {};
  tls::ClientOptions trusts;
  trusts.alpn = {"http/1.1"};
  if (!options.ca_path.empty()) {
    LockResult<std::string> roots = read_file(options.ca_path);
    if (!roots) return std::unexpected(std::move(roots.error()));
    trusts.roots_pem = std::move(*roots);
    trusts.system_roots = false;  // theirs is a world of its own
  }
  if (!options.certificate_path.empty()) {
    Result<tls::Identity> identity = tls::load_identity(options.certificate_path, options.key_path);
    if (!identity) return unusable(options.certificate_path, identity.error());
    trusts.identity = std::move(*identity);
  }
  Result<tls::ClientContext> context = tls::ClientContext::create(std::move(trusts));
  if (!context) return unusable("the certificates of the etcd URL", context.error());
  http::ConnectorOptions made;
  made.tls = std::move(*context);
  options.connector = std::make_shared<http::TcpConnector>(std::move(made));
  return {};
}

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
  if (const std::size_t mark = rest.find('?'); mark != rest.npos) {
    LockResult<> parsed =
        parse_options(rest.substr(mark + 1), scheme == http::Scheme::https, options);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    rest = rest.substr(0, mark);
  }
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
