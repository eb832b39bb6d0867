// SPDX-License-Identifier: MIT
#include "error_book.h"

#include <string>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/log.h"
#include "weft/core/combinator.h"
#include "weft/core/errors.h"

namespace weft::inline v0 {

namespace {

// The sets whose first error was handed out last on this thread: enough for the catch blocks that
// can be open at once.
constexpr std::size_t kErrorSetsRemembered = 8;
struct Remembered {
  std::array<detail::ErrorSet, kErrorSetsRemembered> sets;
  std::size_t next = 0;
};

Remembered& remembered() {
  thread_local Remembered here;
  return here;
}

}  // namespace

OtherErrors other_errors() {
  OtherErrors result;
  std::exception_ptr current = std::current_exception();
  if (!current) return result;
  for (const detail::ErrorSet& set : remembered().sets) {
    if (set.count < 2 || set.first != current) continue;
    result.count = set.count - 1;
    for (std::size_t i = 0; i < kErrorsKept && i < result.count; ++i)
      result.kept.push_back(set.others[i]);
    break;
  }
  return result;
}

namespace detail {

void remember_others(ErrorSet&& set) noexcept {
  if (set.count < 2) return;
  Remembered& here = remembered();
  here.sets[here.next] = std::move(set);
  here.next = (here.next + 1) % kErrorSetsRemembered;
}

void remember_other_error(const std::exception_ptr& first,
                          const std::exception_ptr& other) noexcept {
  for (ErrorSet& set : remembered().sets) {
    if (set.count >= 1 && set.first == first) {
      set.add(other);
      return;
    }
  }
  ErrorSet set;
  set.add(first);
  set.add(other);
  remember_others(std::move(set));
}

std::string describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

void report_unread_error(const std::exception_ptr& error) noexcept {
  try {
    log(LogLevel::error, "a task failed and nobody read its outcome: " + describe(error));
  } catch (...) {
    log(LogLevel::error, "a task failed and nobody read its outcome");
  }
}

void throw_off_home(const char* what) {
  throw UsageError(
      std::string(what) +
      " was called away from the scope's home loop, or after the scope had ended: hold a "
      "PromiseChildLease, a StartedTask or a CancelHandle there instead");
}

}  // namespace detail

}  // namespace weft::inline v0
