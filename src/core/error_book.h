// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ErrorBook: the errors of scopes whose children failed, until the scope ends. One
// per executor.
//
// Errors are rare and scopes are many, so a scope carries one flag bit, and the errors lie here.
#include <unordered_map>
#include <utility>

#include "weft/core/cancellation_runtime.h"

namespace weft::inline v0::detail {

class ErrorBook {
 public:
  // Throws std::bad_alloc.
  CaughtError& of(const Scope& scope) { return errors_[&scope]; }
  CaughtError take(const Scope& scope) noexcept {
    auto found = errors_.find(&scope);
    if (found == errors_.end()) return {};
    CaughtError result = std::move(found->second);
    errors_.erase(found);
    return result;
  }

 private:
  std::unordered_map<const Scope*, CaughtError> errors_;
};

}  // namespace weft::inline v0::detail
