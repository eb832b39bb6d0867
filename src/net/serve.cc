// SPDX-License-Identifier: MIT
#include "weft/net/serve.h"

#include <string>

#include "weft/base/log.h"

namespace weft::inline v0::net::detail {

namespace {

// Out of memory for a message: the bare fact will do.
void log_line(LogLevel level, const char* what, const char* why) noexcept {
  try {
    weft::log(level, std::string(what) + why);
  } catch (...) {
    weft::log(level, what);
  }
}

}  // namespace

void log_handler_error(std::exception_ptr error) noexcept {
  constexpr const char* kWhat = "net: a handler ended with an exception: ";
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& exception) {
    log_line(LogLevel::error, kWhat, exception.what());
  } catch (...) {
    log_line(LogLevel::error, kWhat, "no std::exception");
  }
}

bool Complaints::log(std::error_code error) noexcept {
  if (std::exchange(last_, error) == error) return true;
  try {
    log_line(LogLevel::warning, whose_, (" failed, and goes on: " + error.message()).c_str());
  } catch (...) {
    log_line(LogLevel::warning, whose_, " failed, and goes on");
  }
  return false;
}

// Not EOPNOTSUPP: Linux says that of one connection, too (accept(2), "Error handling").
bool is_lasting(std::error_code error) noexcept {
  return error == std::errc::invalid_argument || error == std::errc::not_a_socket;
}

}  // namespace weft::inline v0::net::detail
