// SPDX-License-Identifier: MIT
#include "weft/base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "weft/base/assert.h"

namespace weft::inline v0 {

namespace {

void write_to_stderr(LogLevel level, std::string_view message) noexcept {
  constexpr const char* kNames[] = {"info", "warning", "error"};
  std::fprintf(stderr, "weft %s: %.*s\n", kNames[static_cast<int>(level)],
               static_cast<int>(message.size()), message.data());
}

// Not through the room atomic/: a checker has nothing to learn from one pointer that is swapped
// whole.
// std::atomic and not the seam in atomic/, because that room stands on this one. One word that is
// exchanged whole: there is no interleaving to check.
constinit std::atomic<LogSink> g_sink{&write_to_stderr};

}  // namespace

LogSink set_log_sink(LogSink sink) noexcept {
  return g_sink.exchange(sink ? sink : &write_to_stderr);
}

void log(LogLevel level, std::string_view message) noexcept { g_sink.load()(level, message); }

namespace detail {

void assert_failed(const char* condition, const char* rule, const char* file, int line) noexcept {
  char text[512];
  int length = std::snprintf(text, sizeof text, "rule broken: %s\n  condition: %s\n  at %s:%d",
                             rule, condition, file, line);
  if (length > static_cast<int>(sizeof text)) length = sizeof text;
  log(LogLevel::error, {text, static_cast<std::size_t>(length)});
  std::abort();
}

void throw_usage_error(const char* rule) { throw UsageError(rule); }

}  // namespace detail

}  // namespace weft::inline v0
