// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Combinator: several branches at once. What all_of, any_of, most_of and with() share.
//
// Branches are started in order. What ends the race (the first result, the first error, depending
// on the kind) cancels the rest, and the combinator is over when all of them are: no branch is left
// behind.
#include <cstddef>
#include <cstdint>

#include "weft/core/branch.h"

namespace weft::inline v0::detail {

class Combinator : private BranchOwner {
 public:
  using native_awaiter = void;
  Combinator(const Combinator&) = delete;
  Combinator& operator=(const Combinator&) = delete;

  enum class Kind : std::uint8_t {
    all,    // needs every value; an error or a lost branch cancels the rest
    any,    // the first result cancels the rest
    most,   // waits for all; an error cancels the rest; keeps what there is when cancelled
    until,  // until the last branch has a result; that cancels the rest
  };
  // What a branch produced. A std::expected without a value is a failure carried as a value.
  enum class Collected : std::uint8_t { value, failed_value, error };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

 protected:
  explicit Combinator(Kind kind) noexcept : kind_(kind) {}
  ~Combinator() = default;

  // Returns: true if it stays suspended.
  bool start(Continuation waiter, bool cancelled) noexcept;
  // Returns: true if the wait is over, with nothing to deliver.
  bool cancel() noexcept;
  [[nodiscard]] bool deliverable() const noexcept;
  // Throws the first error, and the others are remembered; TaskCancelled if there is no result.
  void check_errors();
  // The branch whose failed value is the result, or kNone.
  [[nodiscard]] std::size_t first_failed() const noexcept { return first_failed_; }
  // The branch that had a value first; 0 if there is none.
  [[nodiscard]] std::size_t winner() const noexcept { return winner_; }

  [[nodiscard]] virtual std::size_t count() const noexcept = 0;
  [[nodiscard]] virtual BranchBase& at(std::size_t index) noexcept = 0;
  // Fetches the branch's result.
  virtual Collected collect(std::size_t index) noexcept = 0;
  [[nodiscard]] virtual CaughtError error_at(std::size_t index) noexcept = 0;

 private:
  [[nodiscard]] Strand* waiting() const noexcept final { return waiter_.strand(); }
  [[nodiscard]] Strand* needing() const noexcept final {
    return kind_ == Kind::all || kind_ == Kind::most ? waiter_.needing() : nullptr;
  }
  void over(BranchBase& branch) noexcept final;
  void branch_over(std::size_t index) noexcept;
  void cancel_rest() noexcept;
  // All branches are over. Returns: true if the waiter is to stay suspended: it was cancelled.
  bool finish() noexcept;
  [[nodiscard]] bool last_has_result() const noexcept;

  Continuation waiter_;
  std::size_t pending_ = 0;
  std::size_t values_ = 0;
  std::size_t winner_ = 0;  // of those
  std::size_t first_error_ = kNone;
  std::size_t first_failed_ = kNone;
  const CancelReason* unasked_ = nullptr;  // why a branch ended as cancelled, unasked
  Kind kind_;
  bool asked_ = false;    // the waiter was cancelled
  bool settled_ = false;  // the rest is to be cancelled
  bool starting_ = false;
  bool cancelling_ = false;  // cancel_rest() is on the stack
  bool gave_up_ = false;     // finish() cancelled the waiter
};

}  // namespace weft::inline v0::detail
