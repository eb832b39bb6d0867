// SPDX-License-Identifier: MIT
// Fuzzes Url::parse(), Url::resolve() and net::Address::parse().
//
// It looks for what a sanitizer sees, and for this: what is accepted is written in one way, which is read as the same; it has
// nothing in it that could end a line of a request; and an error lies inside of the text.
#include <cstdint>
#include <string>
#include <string_view>

#include "require.h"
#include "weft/http/url.h"
#include "weft/net/address.h"

namespace {

using namespace weft;
using namespace weft::http;
using fuzz::require;

void examine(const Result<Url, UrlError>& url, std::string_view text) {
  if (!url) {
    require(url.error().at() <= text.size());
    return;
  }
  std::string written = url->to_string();
  for (char c : written) require(c > 0x20 && c < 0x7f);
  require(url->target().starts_with('/') && !url->host().empty() && url->port() != 0);
  require(("/" + std::string(url->path()) + "/").find("/../") == std::string::npos);
  // A path that is resolved may be longer than both; else it is read as it was written.
  Result<Url, UrlError> again = Url::parse(written);
  require(again ? *again == *url : written.size() > Url::kBytesMax);
}

void examine_address(std::string_view text) {
  Result<net::Address> address = net::Address::parse(text);
  if (!address) return;
  require(address->is_v4() != address->is_v6());
  Result<net::Address> again = net::Address::parse(address->to_string());
  require(again && *again == *address && again->port() == address->port());
  Result<net::Address> host = net::Address::parse_host(address->host(), address->port());
  require(host && *host == *address);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  examine(Url::parse(text), text);
  examine_address(text);
  // The first line is where, the second what.
  std::size_t line = text.find('\n');
  std::string_view reference = text;
  Result<Url, UrlError> base = Url::parse("http://a/b/c/d;p?q");
  if (line != text.npos) {
    if (Result<Url, UrlError> given = Url::parse(text.substr(0, line))) base = given;
    reference = text.substr(line + 1);
  }
  examine(base->resolve(reference), reference);
  return 0;
}
