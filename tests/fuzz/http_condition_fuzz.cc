// SPDX-License-Identifier: MIT
// Fuzzes what a request asks of a file: conditions, ranges, dates, and which coding it would like.
//
// It looks for what a sanitizer sees, and for this: the answer is one that there is, and a range lies in the file; several lines of one name are
// a list, in any order; a date that is read is written in one way, which is read as the same; and no coding is chosen that was refused.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/coding.h"
#include "http/date.h"
#include "http/file_request.h"
#include "require.h"

namespace {

using namespace weft::http;
using weft::fuzz::require;

constexpr std::array<std::string_view, 7> kNames = {
    "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
    "range",    "if-range",      "accept-encoding"};

// Each line is a value; its first character says of which field. What no head can have in a value is left out.
std::vector<Header> fields_of(std::string_view text) {
  std::vector<Header> fields;
  while (!text.empty() && fields.size() < 16) {
    std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.find_first_of(std::string_view("\r\0", 2)) != line.npos) continue;
    std::string_view name = kNames[static_cast<unsigned char>(line[0]) % kNames.size()];
    line.remove_prefix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    fields.push_back({.name = name, .value = line});
  }
  return fields;
}

void examine(const detail::FileAnswer& answer, Method method, const detail::FileIdentity& file) {
  bool reads = method == Method::get || method == Method::head;
  switch (answer.status) {
    case 200:
      require(answer.range.offset == 0 && answer.range.bytes == file.bytes);
      break;
    case 206:
      require(method == Method::get && answer.range.bytes > 0);
      require(answer.range.offset < file.bytes &&
              answer.range.bytes <= file.bytes - answer.range.offset);
      break;
    case 304:
      require(reads);
      break;
    case 412:
      break;
    default:
      require(answer.status == 416 && method == Method::get);
  }
}

void examine_date(std::string_view text) {
  std::optional<std::int64_t> date = detail::parse_http_date(text);
  if (!date) return;
  std::string written = detail::http_date(*date);
  // A year of five digits has no such form: the last second of 9999.
  constexpr std::int64_t kLast = 253402300799;
  if (*date <= kLast) require(written.size() == 29 && detail::parse_http_date(written) == date);
}

void examine_codings(const Headers& headers) {
  detail::Acceptance accepts = detail::acceptance_of(headers);
  for (int weight : {accepts.gzip, accepts.brotli, accepts.identity.value_or(0)}) {
    require(weight >= 0 && weight <= 1000);
  }
  detail::Coding chosen = detail::choose_coding(accepts, detail::known_codings());
  require(chosen == detail::Coding::identity || accepts.of(chosen) > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  constexpr Method kMethods[] = {Method::get, Method::head, Method::put};
  Method method = kMethods[data[0] % 3];
  detail::FileIdentity file{.bytes = data[1], .modified = 784111777, .etag = "\"1a-2b\""};
  std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::vector<Header> fields = fields_of(text);
  detail::FileAnswer answer = detail::answer_for(Headers(fields), method, file);
  examine(answer, method, file);
  examine_codings(Headers(fields));
  for (const Header& field : fields) examine_date(field.value);

  // Of lists only: of a field that may be there once, the first counts.
  auto is_list = [](const Header& field) { return field.name.ends_with("-match"); };
  std::vector<Header> turned;
  for (const Header& field : fields)
    turned.insert(is_list(field) ? turned.begin() : turned.end(), field);
  detail::FileAnswer again = detail::answer_for(Headers(turned), method, file);
  require(again.status == answer.status && again.range.offset == answer.range.offset &&
          again.range.bytes == answer.range.bytes);
  return 0;
}
