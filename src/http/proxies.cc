// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>

#include "weft/http/client.h"

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

}  // namespace

Proxies Proxies::from_environment() {
  Proxies found;
  found.http = variable("http_proxy", nullptr);
  found.https = variable("https_proxy", "HTTPS_PROXY");
  found.no_proxy = variable("no_proxy", "NO_PROXY");
  return found;
}

Result<std::optional<Endpoint>> Proxies::find(const Endpoint& where) const {
  const std::string& given = where.scheme == Scheme::http ? http : https;
  if (given.empty()) return std::nullopt;
  std::string_view rest = no_proxy;
  while (!rest.empty()) {
    std::size_t comma = std::min(rest.find(','), rest.size());
    if (means(trimmed(rest.substr(0, comma)), where)) return std::nullopt;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  bool has_scheme = given.find("://") != given.npos;
  Result<Url, UrlError> url = Url::parse(has_scheme ? given : "http://" + given);
  if (!url || url->target() != "/") return std::unexpected(make_error_code(Error::bad_proxy));
  return url->origin();
}

}  // namespace weft::inline v0::http
