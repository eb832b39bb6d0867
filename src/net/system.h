// SPDX-License-Identifier: MIT
#pragma once
// How this room asks the kernel.
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "weft/base/result.h"
#include "weft/net/address.h"

namespace weft::inline v0::net::detail {

[[nodiscard]] inline std::unexpected<std::error_code> last_error() noexcept {
  return std::unexpected(std::error_code(errno, std::system_category()));
}
// What a call returned, or why it did not.
[[nodiscard]] inline Result<int> result_of(int returned) noexcept {
  if (returned < 0) return last_error();
  return returned;
}
[[nodiscard]] inline Result<void> success_of(int returned) noexcept {
  if (returned < 0) return last_error();
  return {};
}

// getsockname() or getpeername().
using AddressCall = int (*)(int, sockaddr*, socklen_t*) noexcept;
[[nodiscard]] inline Result<Address> ask_address(AddressCall call, int socket) noexcept {
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (call(socket, address, &size) < 0) return last_error();
  return Address::from(*address, size);
}

}  // namespace weft::inline v0::net::detail
