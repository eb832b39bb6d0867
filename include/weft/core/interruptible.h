// SPDX-License-Identifier: MIT
#pragma once
// detail::Interruptible<A, Error>: what timeout() and with_stop_token() have in common, the wait for
// A that something besides the caller's cancellation may end.
//
// interrupt() cancels A, and the wait ends when A has: with Error, or with A's result if it has one
// after all. That is not the caller's cancellation, which only the caller's own canceller brings
// about; nor is it A ending cancelled by itself, which is passed on.
#include <expected>
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/core/branch.h"

namespace weft::inline v0::detail {

template <class A, class Error>
class Interruptible : protected BranchOwner {
  using Inner = typename Branch<A>::Result;

 public:
  using native_awaiter = void;
  using Result = std::expected<
      std::conditional_t<std::is_reference_v<Inner>, std::add_pointer_t<Inner>, Inner>, Error>;

  static constexpr bool await_ready() noexcept { return false; }
  std::conditional_t<kBranchSkippable<A>, std::true_type, std::false_type>
  await_early_cancel() noexcept {
    cancelled_ = true;
    return {};
  }
  [[nodiscard]] bool await_must_resume() const noexcept { return branch_.has_result(); }
  Result await_resume() {
    if (branch_.is_cancelled() && interrupted_) return std::unexpected(Error{});
    if constexpr (std::is_void_v<Inner>) {
      branch_.take();
      return {};
    } else if constexpr (std::is_reference_v<Inner>) {
      return std::addressof(branch_.take());
    } else {
      return branch_.take();
    }
  }

 protected:
  explicit Interruptible(A&& awaitable) : branch_(std::forward<A>(awaitable)) {}

  [[nodiscard]] bool start() { return branch_.start(*this, cancelled_); }
  // Returns: true if A has ended.
  [[nodiscard]] bool interrupt(const CancelReason& why) noexcept {
    interrupted_ = true;
    AmbientCancelReason reason(why);
    return branch_.cancel();
  }
  // As interrupt(), before A has begun.
  [[nodiscard]] bool start_interrupted(const CancelReason& why) {
    interrupted_ = true;
    AmbientCancelReason reason(why);
    return branch_.start(*this, true);
  }
  // A has ended. Returns: true if it did so cancelled although nobody had asked; so does the waiter.
  [[nodiscard]] bool gives_up() noexcept {
    if (branch_.has_result() || cancelled_ || interrupted_ || !branch_.unasked()) return false;
    gave_up_ = true;
    return waiter_.cancel_with(*branch_.unasked());
  }
  void end() noexcept {
    if (!gives_up()) waiter_.wake();
  }
  // The caller's cancellation has ended A. Returns: what await_cancel() does.
  [[nodiscard]] bool end_cancelled() noexcept {
    if (!await_must_resume()) return true;
    waiter_.wake();
    return false;
  }

  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }

  Branch<A> branch_;
  Continuation waiter_;
  bool cancelled_ = false;
  bool interrupted_ = false;
  bool gave_up_ = false;
};

}  // namespace weft::inline v0::detail
