// SPDX-License-Identifier: MIT
#include "file_request.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "date.h"

namespace weft::inline v0::http::detail {

namespace {

enum class Compare { strong, weak };

// Whether the list of entity tags has this one, which is strong. "*" has every one.
bool matches(std::string_view list, std::string_view etag, Compare how) noexcept {
  if (list == "*") return true;
  while (!list.empty()) {
    std::size_t at = list.find_first_not_of(" \t,");
    if (at == list.npos) return false;
    list.remove_prefix(at);
    bool is_weak = list.starts_with("W/");
    if (is_weak) list.remove_prefix(2);
    if (!list.starts_with('"')) return false;
    std::size_t end = list.find('"', 1);
    if (end == list.npos) return false;
    if (list.substr(0, end + 1) == etag && (how == Compare::weak || !is_weak)) return true;
    list.remove_prefix(end + 1);
  }
  return false;
}

// The same of all fields of that name, which are one list (RFC 9110, 5.3). Nothing: there is none.
std::optional<bool> find_match(const Headers& headers, std::string_view name, std::string_view etag,
                               Compare how) noexcept {
  std::optional<bool> found;
  for (const Header& field : headers) {
    if (!equal_ignoring_case(field.name, name)) continue;
    found = found.value_or(false) || matches(field.value, etag, how);
  }
  return found;
}

// Returns: nothing if it is not a number that is written in digits only. One that is too large is larger than any file.
std::optional<std::uint64_t> number(std::string_view digits) noexcept {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || end != digits.data() + digits.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::numeric_limits<std::uint64_t>::max();
  if (error != std::errc()) return std::nullopt;
  return value;
}

// RFC 9110, 14.2: a Range that is not understood is ignored.
FileAnswer range_of(std::string_view text, std::uint64_t size) {
  FileAnswer whole{.status = 200, .range = {.offset = 0, .bytes = size}};
  constexpr std::string_view kUnit = "bytes=";
  if (!equal_ignoring_case(text.substr(0, kUnit.size()), kUnit)) return whole;  // 14.1
  text.remove_prefix(kUnit.size());
  std::size_t dash = text.find('-');
  if (dash == text.npos || text.find(',') != text.npos) return whole;
  std::optional<std::uint64_t> first = number(text.substr(0, dash));
  std::optional<std::uint64_t> last = number(text.substr(dash + 1));
  bool has_first = dash > 0, has_last = dash + 1 < text.size();
  if ((has_first && !first) || (has_last && !last) || (!has_first && !has_last)) return whole;
  if (!has_first) {  // so many at the end
    std::uint64_t count = std::min(*last, size);
    if (count == 0) return {.status = 416, .range = {}};
    return {.status = 206, .range = {.offset = size - count, .bytes = count}};
  }
  if (has_last && *last < *first) return whole;
  if (*first >= size) return {.status = 416, .range = {}};
  std::uint64_t end = has_last ? std::min(*last, size - 1) + 1 : size;
  return {.status = 206, .range = {.offset = *first, .bytes = end - *first}};
}

// RFC 9110, 13.1.5: the range counts only if the file is still the one that it was.
bool range_is_for(const FileIdentity& file, std::optional<std::string_view> condition) {
  if (!condition) return true;
  if (condition->starts_with('"')) return *condition == file.etag;
  return parse_http_date(*condition) == file.modified;
}

}  // namespace

// The order is that of RFC 9110, 13.2.2.
FileAnswer answer_for(const Headers& headers, Method method, const FileIdentity& file) {
  bool reads = method == Method::get || method == Method::head;
  if (auto found = find_match(headers, "if-match", file.etag, Compare::strong)) {
    if (!*found) return {.status = 412, .range = {}};
  } else if (auto date = headers.find("if-unmodified-since")) {
    auto since = parse_http_date(*date);
    if (since && file.modified > *since) return {.status = 412, .range = {}};
  }
  if (auto found = find_match(headers, "if-none-match", file.etag, Compare::weak)) {
    if (*found) return {.status = reads ? 304 : 412, .range = {}};
  } else if (auto date = headers.find("if-modified-since"); date && reads) {
    auto since = parse_http_date(*date);
    if (since && file.modified <= *since) return {.status = 304, .range = {}};
  }
  auto range = headers.find("range");
  if (method == Method::get && range && range_is_for(file, headers.find("if-range"))) {
    return range_of(*range, file.bytes);
  }
  return {.status = 200, .range = {.offset = 0, .bytes = file.bytes}};
}

}  // namespace weft::inline v0::http::detail
