// SPDX-License-Identifier: MIT
#include "weft/durable/lock_error.h"

#include <string>

namespace weft::inline v0::durable {

LockError::LockError(Kind kind, std::string_view detail)
    : std::runtime_error(std::string(to_string(kind)).append(": ").append(detail)), kind_(kind) {}

const char* to_string(LockError::Kind kind) noexcept {
  switch (kind) {
    case LockError::invalid:
      return "invalid";
    case LockError::timeout:
      return "timeout";
    case LockError::busy:
      return "busy";
    case LockError::unreachable:
      return "unreachable";
    case LockError::lost:
      return "lost";
    case LockError::revoked:
      return "revoked";
    case LockError::withdrawn:
      return "withdrawn";
    case LockError::not_owner:
      return "not_owner";
    case LockError::mismatch:
      return "mismatch";
    case LockError::storage:
      return "storage";
  }
  return "unknown";
}

}  // namespace weft::inline v0::durable
