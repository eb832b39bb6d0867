// SPDX-License-Identifier: MIT
#include "weft/http/transport.h"

#include <sys/socket.h>

#include <utility>

#include "weft/io/platform_io.h"

namespace weft::inline v0::http {

TimePoint detail::Stall::begin(std::chrono::nanoseconds timeout) {
  TimePoint start = now();
  if (!is_on_) since_ = start;
  is_on_ = true;
  TimePoint until = deadline(timeout);
  if (until > start || std::exchange(is_last_try_, true)) return until;
  return start + kLastTry;
}

TimePoint detail::Stall::deadline(std::chrono::nanoseconds timeout) const noexcept {
  return timeout > TimePoint::max() - since_ ? TimePoint::max() : since_ + timeout;
}

bool detail::Stall::ends_at(TimePoint when) noexcept {
  if (!is_on_ || when <= since_) return false;
  since_ = when;
  is_last_try_ = false;
  return true;
}

Task<Result<PooledBytes>> Transport::read_within(std::chrono::nanoseconds timeout) {
  co_return co_await within(timeout, read());
}

Task<Result<std::size_t>> Transport::write_some_within(std::chrono::nanoseconds timeout,
                                                       std::span<const net::Part> parts) {
  auto count = co_await deadline(stall_.begin(timeout), write_some(parts));
  if (!count) co_return std::unexpected(std::make_error_code(std::errc::timed_out));
  if (*count) stall_.end();
  co_return *count;
}

std::size_t detail::try_send(const Descriptor& socket, std::span<const std::byte> bytes) noexcept {
  PlatformIO* io = PlatformIO::current_or_null();
  if (!io || io->driver() == Driver::io_uring) return 0;
  return send_now(socket, bytes);
}

std::size_t detail::send_now(const Descriptor& socket, std::span<const std::byte> bytes) noexcept {
  ssize_t count = ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

}  // namespace weft::inline v0::http
