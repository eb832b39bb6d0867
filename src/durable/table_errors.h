// SPDX-License-Identifier: MIT
#pragma once
// What every table says in the same words.
#include <cstdint>
#include <string>

#include "weft/durable/lock_error.h"

namespace weft::inline v0::durable::detail {

inline std::unexpected<LockError> other_capacity(const std::string& resource, std::uint32_t theirs,
                                                 std::uint32_t ours) {
  return std::unexpected(
      LockError(LockError::mismatch,
                "'" + resource + "' is in use with a capacity of " + std::to_string(theirs) +
                    ", not " + std::to_string(ours) +
                    ": a mutex, a semaphore, and one of other permits need names of their own"));
}
inline std::unexpected<LockError> no_such_ticket() {
  return std::unexpected(LockError(LockError::not_owner, "the store has no such ticket any more"));
}

}  // namespace weft::inline v0::durable::detail
