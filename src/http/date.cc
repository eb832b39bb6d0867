// SPDX-License-Identifier: MIT
#include "date.h"

#include <time.h>

#include <cstdio>

namespace weft::inline v0::http::detail {

namespace {

constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

tm utc(std::int64_t seconds) noexcept {
  time_t when = seconds;
  tm parts;
  ::gmtime_r(&when, &parts);
  return parts;
}

}  // namespace

std::string http_date(std::int64_t seconds) {
  tm t = utc(seconds);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[t.tm_wday],
                t.tm_mday, kMonths[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
  return text;
}

std::string log_date(std::int64_t seconds) {
  tm t = utc(seconds);
  char text[64];
  std::snprintf(text, sizeof text, "%02d/%s/%04d:%02d:%02d:%02d +0000", t.tm_mday,
                kMonths[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
  return text;
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  std::string terminated(text);
  for (const char* format :
       {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
    tm t{};
    const char* end = ::strptime(terminated.c_str(), format, &t);
    if (end && *end == '\0') return ::timegm(&t);
  }
  return std::nullopt;
}

}  // namespace weft::inline v0::http::detail
