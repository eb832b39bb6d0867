// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>

#include "weft/base/base64.h"
#include "weft/http/client.h"
#include "weft/http/message.h"

namespace weft::inline v0::http {

namespace {

std::string variable(const char* name, const char* in_capitals) {
  for (const char* each : {name, in_capitals}) {
    const char* value = each ? std::getenv(each) : nullptr;
    if (value && *value) return value;
  }
  return "";
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Whether one entry of no_proxy means `where`: the name itself or one that ends in it, with a port or without.
bool means(std::string_view entry, const Endpoint& where) {
  if (entry == "*") return true;
  if (equal_ignoring_case(entry, where.host)) return true;  // an IPv6 address has colons too
  std::string port = ":" + std::to_string(where.port);
  if (entry.ends_with(port)) entry.remove_suffix(port.size());
  if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  std::string_view host = where.host;
  if (entry.empty() || host.size() < entry.size()) return false;
  std::size_t before = host.size() - entry.size();
  return equal_ignoring_case(host.substr(before), entry) &&
         (before == 0 || host[before - 1] == '.');
}

// RFC 7617, 2. Nothing: it cannot be said so.
std::optional<std::string> authorization_of(std::string_view user_and_password) {
  std::size_t colon = std::min(user_and_password.find(':'), user_and_password.size());
  std::optional<std::string> user = percent_decoded(user_and_password.substr(0, colon));
  std::string_view rest = user_and_password.substr(colon);
  if (!rest.empty()) rest.remove_prefix(1);
  std::optional<std::string> password = percent_decoded(rest);
  if (!user || !password || user->find(':') != user->npos) return std::nullopt;
  std::string both = *user + ":" + *password;
  auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
  if (std::ranges::any_of(both, is_control)) return std::nullopt;
  return "Basic " + ::weft::detail::base64_encoded(both);
}

// "http://user:password@host:port/", or a part of that.
std::optional<Proxy> parse(std::string text) {
  Proxy proxy;
  if (text.find("://") == text.npos) text = "http://" + text;
  std::size_t from = text.find("://") + 3;
  std::size_t at = text.rfind('@', text.find_first_of("/?#", from));
  if (at != text.npos && at >= from) {
    std::optional<std::string> authorization =
        authorization_of(std::string_view(text).substr(from, at - from));
    if (!authorization) return std::nullopt;
    proxy.authorization = std::move(*authorization);
    text.erase(from, at + 1 - from);
  }
  Result<Url, UrlError> url = Url::parse(text);
  if (!url || url->target() != "/") return std::nullopt;
  proxy.where = url->origin();
  return proxy;
}

}  // namespace

Proxies Proxies::from_environment() {
  Proxies found;
  std::string all = variable("all_proxy", "ALL_PROXY");
  found.http = variable("http_proxy", nullptr);
  found.https = variable("https_proxy", "HTTPS_PROXY");
  if (found.http.empty()) found.http = all;
  if (found.https.empty()) found.https = all;
  found.no_proxy = variable("no_proxy", "NO_PROXY");
  return found;
}

Result<std::optional<Proxy>> Proxies::find(const Endpoint& where) const {
  const std::string& given = where.scheme == Scheme::http ? http : https;
  if (given.empty()) return std::nullopt;
  std::string_view rest = no_proxy;
  while (!rest.empty()) {
    std::size_t comma = std::min(rest.find(','), rest.size());
    if (means(trimmed(rest.substr(0, comma)), where)) return std::nullopt;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  std::optional<Proxy> proxy = parse(given);
  if (!proxy) return std::unexpected(make_error_code(Error::bad_proxy));
  return proxy;
}

}  // namespace weft::inline v0::http
