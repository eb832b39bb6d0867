// SPDX-License-Identifier: MIT
#pragma once
// How this room asks the kernel.
#include <cerrno>
#include <system_error>

#include "weft/base/result.h"

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

}  // namespace weft::inline v0::net::detail
