// SPDX-License-Identifier: MIT
#include "weft/net/serve.h"

#include <string>

#include "weft/base/log.h"

namespace weft::inline v0::net::detail {

namespace {

// Out of memory for a message: the bare fact will do.
void log_line(LogLevel level, const char* what, const char* why) noexcept {
  try {
    log(level, std::string(what) + why);
  } catch (...) {
    log(level, what);
  }
}

}  // namespace

void log_handler_error(std::exception_ptr error) noexcept {
  constexpr const char* kWhat = "net::serve(): a handler ended its connection with an exception: ";
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& exception) {
    log_line(LogLevel::error, kWhat, exception.what());
  } catch (...) {
    log_line(LogLevel::error, kWhat, "no std::exception");
  }
}

void AcceptComplaints::log(std::error_code error) noexcept {
  if (std::exchange(last_, error) == error) return;
  log_line(LogLevel::warning, "net::serve(): accept() failed, and goes on: ",
           std::system_category().message(error.value()).c_str());
}

}  // namespace weft::inline v0::net::detail
