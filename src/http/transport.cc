// SPDX-License-Identifier: MIT
#include "weft/http/transport.h"

#include <sys/socket.h>

#include "weft/io/platform_io.h"

namespace weft::inline v0::http {

Task<Result<PooledBytes>> Transport::read_within(std::chrono::nanoseconds timeout) {
  co_return co_await within(timeout, read());
}

Task<Result<std::size_t>> Transport::write_some_within(std::chrono::nanoseconds timeout,
                                                       std::span<const net::Part> parts) {
  co_return co_await within(timeout, write_some(parts));
}

std::size_t detail::try_send(const Descriptor& socket, std::span<const std::byte> bytes) noexcept {
  PlatformIO* io = PlatformIO::current_or_null();
  if (!io || io->driver() == Driver::io_uring) return 0;
  ssize_t count = ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

}  // namespace weft::inline v0::http
