// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Branch: one awaiter, driven through the protocol by another awaiter that contains it.
//
// Everything that wraps or combines awaitables is made of these: the wrapper says start() and
// cancel() and hears when the branch is over; the branch keeps the rules of seed 002. A branch that
// is a Task is a strand of its own; any other has no strand, and its hooks are called directly.
//
// Threads        the home loop of the awaiting task.
//
// Invariants
//   B1  over() is told once per start(), and not from inside start() or cancel(): those return it.
//   B2  an awaiter's await_resume() is called at most once, and only if the branch has_result().
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/core/concepts.h"
#include "weft/core/errors.h"
#include "weft/core/foreign_awaiter.h"
#include "weft/core/tree.h"

namespace weft::inline v0::detail {

class BranchBase;

class BranchOwner {
 public:
  virtual void over(BranchBase& branch) noexcept = 0;
  // The strand that awaits the whole.
  [[nodiscard]] virtual Strand* waiting() const noexcept = 0;
  // The same, if it needs each of the branches that run: Waker::needing().
  [[nodiscard]] virtual Strand* needing() const noexcept { return nullptr; }

 protected:
  ~BranchOwner() = default;
};

class BranchBase : protected Waker {
 public:
  BranchBase(const BranchBase&) = delete;
  BranchBase& operator=(const BranchBase&) = delete;

  // Begins it, cancelled from the start if so asked. Returns: true if it is over already.
  bool start(BranchOwner& owner, bool cancelled, std::size_t index = 0) noexcept;
  // Asks it to stop; nothing if it is over or was asked before. Returns: true if that ended it now.
  bool cancel() noexcept;

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] bool is_running() const noexcept {
    return state_ == State::running || state_ == State::cancelling;
  }
  [[nodiscard]] bool has_result() const noexcept { return state_ == State::result; }
  [[nodiscard]] bool is_cancelled() const noexcept { return state_ == State::cancelled; }
  // It ended as cancelled although nobody here asked; why.
  [[nodiscard]] const CancelReason* unasked() const noexcept { return unasked_; }

 protected:
  BranchBase() = default;
  ~BranchBase() = default;

  virtual bool early_cancel() noexcept = 0;
  virtual bool ready() = 0;
  virtual bool suspend() = 0;
  [[nodiscard]] virtual bool can_cancel() const noexcept = 0;
  virtual bool ask() noexcept = 0;
  virtual bool must_resume() noexcept = 0;

  // What start() itself threw; the result is that error.
  std::exception_ptr start_error_;

 private:
  enum class State : std::uint8_t { idle, running, cancelling, result, cancelled };

  void wake() noexcept final;
  bool cancel_with(const CancelReason& reason) noexcept final;
  [[nodiscard]] Strand* waiting() const noexcept final { return owner_->waiting(); }
  [[nodiscard]] Strand* needing() const noexcept final { return owner_->needing(); }
  void settle() noexcept;

  BranchOwner* owner_ = nullptr;
  const CancelReason* unasked_ = nullptr;
  std::size_t index_ = 0;  // its place among the owner's branches
  State state_ = State::idle;
  bool inside_ = false;  // start() or cancel() is on the stack (B1)
};

template <class A>
class Branch final : public BranchBase {
 public:
  using Aw = std::remove_reference_t<Hosted<A>>;
  using Result = decltype(std::declval<Aw&>().await_resume());

  explicit Branch(A&& awaitable) : awaiter_(host(std::forward<A>(awaitable))) {}

  // Requires: has_result(), or unasked(), which throws TaskCancelled.
  Result take() {
    if (start_error_) std::rethrow_exception(std::exchange(start_error_, nullptr));
    if (!has_result()) throw TaskCancelled(unasked() ? *unasked() : reasons::requested);
    return awaiter_.await_resume();
  }
  Aw& awaiter() noexcept { return awaiter_; }

 private:
  bool early_cancel() noexcept override { return call_early_cancel<Aw>(awaiter_); }
  bool ready() override { return awaiter_.await_ready(); }
  bool suspend() override {
    if constexpr (HasSetExecutor<Aw>) awaiter_.await_set_executor(Executor::current_or_null());
    Continuation here(static_cast<Waker&>(*this));
    if constexpr (std::is_void_v<decltype(awaiter_.await_suspend(here))>) {
      awaiter_.await_suspend(here);
      return true;
    } else {
      return awaiter_.await_suspend(here);
    }
  }
  [[nodiscard]] bool can_cancel() const noexcept override { return HasCancel<Aw>; }
  bool ask() noexcept override {
    return call_cancel<Aw>(awaiter_, Continuation(static_cast<Waker&>(*this)));
  }
  bool must_resume() noexcept override { return call_must_resume<Aw>(awaiter_); }

  Hosted<A> awaiter_;
};

// A branch that is built in place, later.
template <class A>
class LaterBranch {
 public:
  LaterBranch() noexcept {}
  LaterBranch(const LaterBranch&) = delete;
  LaterBranch& operator=(const LaterBranch&) = delete;
  ~LaterBranch() {
    if (!built_) return;
    std::destroy_at(&branch_);
    std::destroy_at(&made_);
  }
  // make() returns the awaitable. It is kept: an awaitable that is its own awaiter stays where the
  // branch drives it.
  template <class Make>
  void emplace(Make&& make) {
    auto* made = new (&made_) Kept(make);
    try {
      std::construct_at(&branch_, static_cast<A&&>(made->awaitable));
    } catch (...) {
      std::destroy_at(made);
      throw;
    }
    built_ = true;
  }
  explicit operator bool() const noexcept { return built_; }
  Branch<A>& operator*() noexcept { return branch_; }
  Branch<A>* operator->() noexcept { return &branch_; }
  const Branch<A>* operator->() const noexcept { return &branch_; }

 private:
  struct Kept {
    explicit Kept(auto&& make) : awaitable(make()) {}
    A awaitable;
  };
  union {
    Kept made_;
  };
  union {
    Branch<A> branch_;
  };
  bool built_ = false;
};

// The hooks' static answers of an awaitable, as weft drives it.
template <class A>
inline constexpr bool kBranchSkippable = kSkippable<Hosted<A>>;
template <class A>
inline constexpr bool kBranchAbortable = kAbortable<Hosted<A>>;

// A result as a value that can be stored: void as std::monostate, references as pointers.
template <class T>
using Storable = std::conditional_t<
    std::is_void_v<T>, std::monostate,
    std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<T>, std::remove_cv_t<T>>>;

template <class T>
Storable<T> store(auto&& make) {
  if constexpr (std::is_void_v<T>) {
    make();
    return {};
  } else if constexpr (std::is_reference_v<T>) {
    auto&& reference = make();
    return std::addressof(reference);
  } else {
    return make();
  }
}

}  // namespace weft::inline v0::detail
