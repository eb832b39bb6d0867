// SPDX-License-Identifier: MIT
#include "weft/http/message.h"

#include <algorithm>
#include <functional>

#include "append.h"
#include "characters.h"
#include "weft/base/assert.h"

namespace weft::inline v0::http {

namespace {

using detail::all_in;
using detail::trimmed;

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string_view to_string(Method method) noexcept {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::head:
      return "HEAD";
    case Method::post:
      return "POST";
    case Method::put:
      return "PUT";
    case Method::delete_:
      return "DELETE";
    case Method::options:
      return "OPTIONS";
    case Method::patch:
      return "PATCH";
    case Method::connect:
      return "CONNECT";
    case Method::trace:
      return "TRACE";
    case Method::other:
      break;
  }
  return "";
}

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 425:
      return "Too Early";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 451:
      return "Unavailable For Legal Reasons";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 511:
      return "Network Authentication Required";
  }
  return "Unknown";
}

bool detail::equal_folded(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return x == y || lower(x) == lower(y); });
}

bool has_token(std::string_view list, std::string_view token) noexcept {
  while (true) {
    std::size_t comma = list.find(',');
    if (equal_ignoring_case(trimmed(list.substr(0, comma)), token)) return true;
    if (comma == list.npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    bool is_whole = i + 2 < text.size();
    int high = is_whole ? hex_digit(text[i + 1]) : -1;
    int low = is_whole ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

std::optional<std::string_view> Headers::find(std::string_view name) const noexcept {
  for (const Header& field : fields_) {
    if (equal_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

bool Headers::has_token(std::string_view name, std::string_view token) const noexcept {
  return std::ranges::any_of(fields_, [&](const Header& field) {
    return equal_ignoring_case(field.name, name) && http::has_token(field.value, token);
  });
}

// Before anything is changed: who is refused has lost nothing.
void HeaderLines::require_field(std::string_view name, std::string_view value) {
  if (name.empty() || !all_in(detail::kTokenCharacters, name)) {
    throw UsageError("\"" + std::string(name) + "\" is no name of a header field");
  }
  if (!all_in(detail::kValueCharacters, value)) {
    throw UsageError("the value of header field " + std::string(name) +
                     " has a line break or another control character in it");
  }
}

void HeaderLines::add(std::string_view name, std::string_view value) {
  require_field(name, value);
  append(name, value);
}

void HeaderLines::append(std::string_view name, std::string_view value) {
  if (is_own(name) || is_own(value)) return append(std::string(name), std::string(value));
  const std::size_t at = text_.size();
  lines_.push_back({.at = at, .name_bytes = name.size(), .value_bytes = value.size()});
  detail::append(text_, name, ": ", value, "\r\n");
}

void HeaderLines::set(std::string_view name, std::string_view value) {
  if (is_own(name) || is_own(value)) return set(std::string(name), std::string(value));
  require_field(name, value);
  remove(name);
  append(name, value);
}

void HeaderLines::remove(std::string_view name) noexcept {
  for (std::size_t i = 0; i < lines_.size();) {
    Line line = lines_[i];
    if (!equal_ignoring_case(field(line).name, name)) {
      ++i;
      continue;
    }
    std::size_t bytes = line.name_bytes + line.value_bytes + 4;  // ": " and CRLF
    text_.erase(line.at, bytes);
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(i));
    for (std::size_t later = i; later < lines_.size(); ++later) lines_[later].at -= bytes;
  }
}

bool HeaderLines::is_own(std::string_view view) const noexcept {
  // std::less: pointers into different objects have no order but this.
  std::less<const char*> before;
  return !view.empty() && !before(view.data(), text_.data()) &&
         before(view.data(), text_.data() + text_.size());
}

Header HeaderLines::field(const Line& line) const noexcept {
  const char* name = text_.data() + line.at;
  return {.name = {name, line.name_bytes}, .value = {name + line.name_bytes + 2, line.value_bytes}};
}

std::optional<std::string_view> HeaderLines::find(std::string_view name) const noexcept {
  for (const Line& line : lines_) {
    if (Header found = field(line); equal_ignoring_case(found.name, name)) return found.value;
  }
  return std::nullopt;
}

std::vector<Header> HeaderLines::fields() const {
  std::vector<Header> all;
  all.reserve(lines_.size());
  for (const Line& line : lines_) all.push_back(field(line));
  return all;
}

}  // namespace weft::inline v0::http
