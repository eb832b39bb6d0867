// SPDX-License-Identifier: MIT
#include "weft/core/caught_error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "weft/atomic/atomic.h"
#include "weft/base/log.h"

namespace weft::inline v0 {

namespace detail {

struct OtherErrorSet {
  Atomic<std::uint32_t> references{1};
  std::size_t count = 0;  // all of them, also those not kept
  std::array<std::exception_ptr, kErrorsKept> kept;

  [[nodiscard]] std::size_t kept_count() const noexcept { return std::min(count, kErrorsKept); }
  void add(const std::exception_ptr& error) noexcept {
    if (count < kErrorsKept) kept[count] = error;
    ++count;
  }
};

}  // namespace detail

namespace {

using detail::CaughtError;

// The errors with others that were thrown last on this thread, newest first: enough for the catch
// blocks that can be open at once. An error that waits lies where it waits, with its others.
constexpr std::size_t kErrorsRemembered = 8;
using Remembered = std::array<CaughtError, kErrorsRemembered>;

Remembered& remembered() {
  thread_local Remembered here;
  return here;
}

auto find_remembered(const std::exception_ptr& first) noexcept {
  return std::ranges::find_if(remembered(),
                              [&](const CaughtError& each) { return each.first() == first; });
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

}  // namespace

OtherErrors other_errors() {
  std::exception_ptr current = std::current_exception();
  return current ? CaughtError(std::move(current)).others() : OtherErrors();
}

namespace detail {

CaughtError::CaughtError(std::exception_ptr error) noexcept : first_(std::move(error)) {
  if (!first_) return;
  auto found = find_remembered(first_);
  if (found == remembered().end()) return;
  others_ = found->others_;
  share(*others_);
}

OtherErrors CaughtError::others() const {
  OtherErrors result;
  if (!others_) return result;
  result.count = others_->count;
  result.kept.assign(others_->kept.begin(),
                     others_->kept.begin() + static_cast<std::ptrdiff_t>(others_->kept_count()));
  return result;
}

void CaughtError::add(const CaughtError& later) noexcept {
  if (!later) return;
  if (!first_) {
    *this = later;
    return;
  }
  try {
    OtherErrorSet& all = writable();
    all.add(later.first_);
    if (!later.others_) return;
    for (std::size_t i = 0; i < later.others_->kept_count(); ++i) all.add(later.others_->kept[i]);
    all.count += later.others_->count - later.others_->kept_count();
  } catch (const std::bad_alloc&) {
    report_unread_error(later);
  }
}

void CaughtError::share(OtherErrorSet& set) noexcept { set.references.fetch_add(1, relaxed); }

// acq_rel: the last one sees what the others did to the set before they let go of it.
void CaughtError::release(OtherErrorSet* set) noexcept {
  if (set->references.fetch_sub(1, acq_rel) == 1) delete set;
}

OtherErrorSet& CaughtError::writable() {
  if (!others_) {
    others_ = new OtherErrorSet;
  } else if (others_->references.load(acquire) != 1) {  // [pairs with release()]
    auto copy = std::make_unique<OtherErrorSet>();
    copy->count = others_->count;
    copy->kept = others_->kept;
    release(std::exchange(others_, copy.release()));
  }
  return *others_;
}

void CaughtError::remember_others() const noexcept {
  Remembered& all = remembered();
  auto place = find_remembered(first_);
  if (place == all.end()) --place;  // the oldest makes room
  std::rotate(all.begin(), place, place + 1);
  all.front() = *this;
}

void report_unread_error(const CaughtError& error) noexcept {
  try {
    OtherErrors others = error.others();
    std::string text = "a task failed and nobody read its outcome: " + describe(error.first());
    for (const std::exception_ptr& other : others.kept) text += "; " + describe(other);
    if (others.count > others.kept.size()) {
      text += "; and " + std::to_string(others.count - others.kept.size()) + " more";
    }
    log(LogLevel::error, text);
  } catch (...) {
    log(LogLevel::error, "a task failed and nobody read its outcome");
  }
}

}  // namespace detail

}  // namespace weft::inline v0
