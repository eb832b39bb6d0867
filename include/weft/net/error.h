// SPDX-License-Identifier: MIT
#pragma once
// weft::net::Error: what goes wrong in this room and has no errno.
//
//     if (got.error() == net::Error::unexpected_end) …
//
// A std::error_code like those of the system: Result carries both.
#include <system_error>
#include <type_traits>

namespace weft::inline v0::net {

enum class Error {
  unexpected_end = 1,  // the stream ended where more was asked for
  too_long,            // what was looked for did not come within the limit
  host_not_found,      // no such name, or it has no address
  resolver_failed,     // no name server could be reached, or gave an answer that can be used
  resolver_silent,     // no name server gave any answer
  bad_host_name,       // it is none
};

[[nodiscard]] const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(Error error) noexcept {
  return std::error_code(static_cast<int>(error), error_category());
}

}  // namespace weft::inline v0::net

template <>
struct std::is_error_code_enum<weft::net::Error> : std::true_type {};
