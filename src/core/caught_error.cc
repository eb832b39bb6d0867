// SPDX-License-Identifier: MIT
#include "weft/core/caught_error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "this_thread.h"
#include "weft/atomic/atomic.h"
#include "weft/base/log.h"
#include "weft/core/frame.h"

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
using detail::Frame;

// The errors with others that were thrown last on this thread, newest first: enough for the catch
// blocks that can be open at once. An error that waits lies where it waits, with its others.
constexpr std::size_t kErrorsRemembered = 8;
struct Remembered {
  CaughtError error;
  const Frame* frame = nullptr;  // into which it was thrown; null: outside of all
};
using AllRemembered = std::array<Remembered, kErrorsRemembered>;

AllRemembered& remembered() {
  thread_local AllRemembered here;
  return here;
}

// Returns: null if there is none.
Remembered* find_remembered(const std::exception_ptr& first) noexcept {
  auto found = std::ranges::find_if(
      remembered(), [&](const Remembered& each) { return each.error.first() == first; });
  return found == remembered().end() ? nullptr : &*found;
}

// O2. Nobody looks into a frame that is gone: `frame` is the one that asks.
bool is_for(const Remembered& entry, const Frame* frame) noexcept {
  return entry.frame == frame && (!frame || frame->was_thrown_into());
}

// O2: from now on it asks, so what a frame before it has left must go.
void mark_thrown_into(Frame& frame) noexcept {
  if (frame.was_thrown_into()) return;
  for (Remembered& each : remembered()) {
    if (each.frame == &frame) each = {};
  }
  frame.mark_thrown_into();
}

Frame* running_frame() noexcept {
  detail::Strand* running = detail::this_thread().running;
  return running ? running->top : nullptr;
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
  if (!current) return {};
  Remembered* found = find_remembered(current);
  return found && is_for(*found, running_frame()) ? found->error.others() : OtherErrors();
}

namespace detail {

CaughtError CaughtError::current() noexcept {
  return taken_for(std::current_exception(), running_frame());
}

CaughtError CaughtError::taken(std::exception_ptr error, Frame& frame) noexcept {
  return taken_for(std::move(error), &frame);
}

CaughtError CaughtError::taken_for(std::exception_ptr error, const Frame* frame) noexcept {
  if (Remembered* found = error ? find_remembered(error) : nullptr) {
    Remembered entry = std::exchange(*found, {});
    if (is_for(entry, frame)) return std::move(entry.error);
  }
  return alone(std::move(error));
}

void CaughtError::rethrow() const {
  remember_for(running_frame());
  std::rethrow_exception(first_);
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
    // The same set is the same failures: they are here already.
    const OtherErrorSet* more = later.others_ == others_ ? nullptr : later.others_;
    OtherErrorSet& all = writable();
    all.add(later.first_);
    if (!more) return;
    for (std::size_t i = 0; i < more->kept_count(); ++i) all.add(more->kept[i]);
    all.count += more->count - more->kept_count();
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

void CaughtError::remember_for(Frame* frame) const noexcept {
  AllRemembered& all = remembered();
  Remembered* place = find_remembered(first_);
  if (!others_) {  // O1
    if (place) *place = {};
    return;
  }
  if (frame) mark_thrown_into(*frame);
  if (!place) place = &all.back();  // the oldest makes room
  std::rotate(all.data(), place, place + 1);
  all.front() = {*this, frame};
}

void hand_remembered_errors_to(Frame& frame) noexcept {
  mark_thrown_into(frame);
  for (Remembered& each : remembered()) {
    if (each.error && !each.frame) each.frame = &frame;
  }
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
