// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::LockError: why there is no lock, or no lock any more. Speaks of the lock alone: what the code under the lock
// throws passes through. or_throw() (base/result.h) throws it.
//
//     if (!done && done.error() == LockError::timeout) …
//     std::cerr << done.error().what();      // "timeout: not acquired within 30 s: 3 ahead"
#include <expected>
#include <stdexcept>
#include <string_view>

namespace weft::inline v0::durable {

class LockError : public std::runtime_error {
 public:
  enum Kind {
    invalid = 1,  // the options or the URL; nothing was asked of any store
    timeout,      // not acquired in time
    busy,         // try_acquire(): somebody else has it, or is before us
    unreachable,  // the store did not answer
    lost,         // it was ours, and ended before the code under it had
    revoked,      // somebody took it away from all who held it or waited for it
    withdrawn,    // the engine ended while we waited
    not_owner,    // the ticket is not, or no longer, ours
    mismatch,  // others use the resource with another capacity, or the store is of another version
    storage,   // the store is broken, full, or may not be written
  };

  // detail: what exactly, and what to do.
  LockError(Kind kind, std::string_view detail);

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  // Asking again can help: the store may come back.
  [[nodiscard]] bool is_passing() const noexcept { return kind_ == unreachable; }

  friend bool operator==(const LockError& error, Kind kind) noexcept { return error.kind_ == kind; }

 private:
  Kind kind_;
};

// "timeout", "not_owner".
[[nodiscard]] const char* to_string(LockError::Kind kind) noexcept;

template <class T = void>
using LockResult = std::expected<T, LockError>;

}  // namespace weft::inline v0::durable
