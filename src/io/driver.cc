// SPDX-License-Identifier: MIT
#include "weft/io/driver.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "epoll_io.h"
#include "poll_io.h"
#include "uring_io.h"
#include "weft/atomic/atomic.h"
#include "weft/base/assert.h"
#include "weft/base/log.h"

namespace weft::inline v0 {

namespace {

Driver named(std::string_view name) {
  for (Driver driver : {Driver::automatic, Driver::io_uring, Driver::epoll, Driver::poll}) {
    if (to_string(driver) == name) return driver;
  }
  throw UsageError("WEFT_DRIVER=" + std::string(name) +
                   " is no driver: it may be automatic, io_uring, epoll or poll");
}

void log_once(Driver driver, std::string_view why) {
  static detail::Atomic<unsigned> logged{0};
  unsigned bit = 1u << static_cast<unsigned>(driver);
  if (logged.fetch_or(bit, detail::relaxed) & bit) return;
  log(LogLevel::info, "weft: I/O by " + std::string(to_string(driver)) + std::string(why));
}

}  // namespace

std::string_view to_string(Driver driver) noexcept {
  switch (driver) {
    case Driver::automatic:
      return "automatic";
    case Driver::io_uring:
      return "io_uring";
    case Driver::epoll:
      return "epoll";
    case Driver::poll:
      return "poll";
  }
  return "";
}

Driver choose_driver(Driver wanted) {
  std::string_view why;
  if (const char* name = std::getenv("WEFT_DRIVER"); name && *name) {
    wanted = named(name);
    why = ", as WEFT_DRIVER says";
  }
  if (wanted == Driver::automatic) {
    wanted = detail::uring_error() == 0 ? Driver::io_uring : Driver::epoll;
    if (wanted == Driver::epoll) why = ": io_uring is not to be had here";
  } else if (wanted == Driver::io_uring && detail::uring_error() != 0) {
    throw std::system_error(detail::uring_error(), std::generic_category(),
                            "the io_uring driver cannot be used here; automatic would take epoll");
  }
  log_once(wanted, why);
  return wanted;
}

std::unique_ptr<PlatformIO> make_platform_io(Driver driver, int wake_fd) {
  switch (driver) {
    case Driver::io_uring:
      return detail::make_uring_io(wake_fd);
    case Driver::poll:
      return std::make_unique<detail::PollIO>(wake_fd);
    case Driver::epoll:
      return std::make_unique<detail::EpollIO>(wake_fd);
    case Driver::automatic:
      break;
  }
  detail::throw_usage_error("make_platform_io() takes what choose_driver() returned");
}

}  // namespace weft::inline v0
