// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ErrorBook: the errors of scopes whose children failed, until the scope ends. One
// per executor.
//
// Errors are rare and scopes are many, so a scope carries one flag bit, and the errors lie here.
#include <array>
#include <cstddef>
#include <exception>
#include <unordered_map>

#include "weft/core/cancellation_runtime.h"

namespace weft::inline v0::detail {

struct ErrorSet {
  std::exception_ptr first;
  std::array<std::exception_ptr, kErrorsKept> others;
  std::size_t count = 0;  // all of them, also those not kept

  void add(std::exception_ptr error) noexcept {
    if (count == 0) {
      first = std::move(error);
    } else if (count <= kErrorsKept) {
      others[count - 1] = std::move(error);
    }
    ++count;
  }
};

class ErrorBook {
 public:
  // Throws std::bad_alloc.
  ErrorSet& of(const Scope& scope) { return sets_[&scope]; }
  ErrorSet take(const Scope& scope) noexcept {
    auto found = sets_.find(&scope);
    if (found == sets_.end()) return {};
    ErrorSet set = std::move(found->second);
    sets_.erase(found);
    return set;
  }

 private:
  std::unordered_map<const Scope*, ErrorSet> sets_;
};

// Makes the others of `set` what other_errors() answers while its first error is handled on this
// thread.
void remember_others(ErrorSet&& set) noexcept;

}  // namespace weft::inline v0::detail
