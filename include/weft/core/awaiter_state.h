// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::AwaiterStateMachine: the awaiter protocol, made explicit and checked at run time.
//
// With WEFT_AWAITABLE_STATE_DEBUG every awaiter that weft drives, its own and everyone else's, is
// wrapped in a CheckedAwaiter that follows seed 002's diagram; docs/guide/04 draws it. A call that
// the diagram does not allow, or an answer that breaks a promise, ends the process with a message
// that names the awaiter's type, its state and what happened.
#include <cstdint>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "weft/core/concepts.h"
#include "weft/core/layout.h"

namespace weft::inline v0::detail {

enum class AwaiterState : std::uint8_t {
  initial,
  not_ready,
  ready_immediately,
  initial_cancel_pending,
  cancel_pending,
  running,
  cancelling,
  ready_after_cancel,
  ready,
  done,
  cancelled,
};
[[nodiscard]] const char* name_of(AwaiterState state) noexcept;

class AwaiterStateMachine {
 public:
  explicit AwaiterStateMachine(const std::type_info& awaiter) noexcept : awaiter_(&awaiter) {}
  // Destroying an awaiter is allowed before it was touched and after it ended.
  ~AwaiterStateMachine();
  AwaiterStateMachine(const AwaiterStateMachine&) = delete;
  AwaiterStateMachine& operator=(const AwaiterStateMachine&) = delete;

  void ready_answered(bool ready) noexcept;
  void early_cancel_answered(bool cancelled) noexcept;
  void suspending() noexcept;
  void not_suspended() noexcept { resumed(); }
  void resumed() noexcept;
  void cancelling() noexcept;
  void cancel_answered(bool cancelled) noexcept;
  void must_resume_answered(bool must) noexcept;
  void resuming() noexcept;
  // A hook threw, and the awaiter is over by that.
  void threw() noexcept { state_ = AwaiterState::done; }

  [[nodiscard]] AwaiterState state() const noexcept { return state_; }

 private:
  [[noreturn]] void broken(const char* event) const noexcept;

  const std::type_info* awaiter_;
  AwaiterState state_ = AwaiterState::initial;
};

template <bool cancels_at_once>
struct CheckedTraits {};
template <>
struct CheckedTraits<true> {
  using cancels_at_once = void;
};

// Inner: the awaiter, by value or by reference.
template <class Inner>
class CheckedAwaiter final : public CheckedTraits<CancelsAtOnce<Inner>>, private Waker {
  using Aw = std::remove_reference_t<Inner>;

 public:
  using native_awaiter = void;

  template <class Make>
  CheckedAwaiter(std::in_place_t, Make&& make) : awaiter_(make()), machine_(typeid(Aw)) {}

  bool await_ready() {
    bool ready = guarded([&] { return static_cast<bool>(awaiter_.await_ready()); });
    machine_.ready_answered(ready);
    return ready;
  }
  bool await_suspend(Continuation waiter) {
    waiter_ = waiter;
    machine_.suspending();
    Continuation here(static_cast<Waker&>(*this));
    bool suspended = guarded([&] {
      if constexpr (std::is_void_v<decltype(awaiter_.await_suspend(here))>) {
        awaiter_.await_suspend(here);
        return true;
      } else {
        return awaiter_.await_suspend(here);
      }
    });
    if (!suspended) machine_.not_suspended();
    return suspended;
  }
  decltype(auto) await_resume() {
    machine_.resuming();
    return awaiter_.await_resume();
  }

  EarlyCancelType<Aw> await_early_cancel() noexcept {
    bool cancelled = call_early_cancel<Aw>(awaiter_);
    machine_.early_cancel_answered(cancelled);
    if constexpr (std::is_same_v<EarlyCancelType<Aw>, bool>) {
      return cancelled;
    } else {
      return {};
    }
  }
  CancelType<Aw> await_cancel(Continuation) noexcept
    requires HasCancel<Aw>
  {
    machine_.cancelling();
    bool cancelled = call_cancel<Aw>(awaiter_, Continuation(static_cast<Waker&>(*this)));
    machine_.cancel_answered(cancelled);
    if constexpr (std::is_same_v<CancelType<Aw>, bool>) {
      return cancelled;
    } else {
      return {};
    }
  }
  [[nodiscard]] MustResumeType<Aw> await_must_resume() const noexcept
    requires HasMustResume<Aw>
  {
    bool must = call_must_resume<Aw>(awaiter_);
    machine_.must_resume_answered(must);
    if constexpr (std::is_same_v<MustResumeType<Aw>, bool>) {
      return must;
    } else {
      return {};
    }
  }
  void await_set_executor(Executor* executor) noexcept {
    if constexpr (HasSetExecutor<Aw>) awaiter_.await_set_executor(executor);
  }
  void await_introspect(auto& tree) noexcept {
    if constexpr (requires { awaiter_.await_introspect(tree); }) {
      awaiter_.await_introspect(tree);
    } else {
      tree.type(typeid(Aw));
    }
  }

 private:
  template <class Fn>
  bool guarded(Fn&& fn) {
    try {
      return fn();
    } catch (...) {
      machine_.threw();
      throw;
    }
  }
  void wake() noexcept override {
    machine_.resumed();
    waiter_.wake();
  }
  void enter() noexcept override {
    machine_.resumed();
    waiter_.enter();
  }
  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }
  [[nodiscard]] Strand* needing() const noexcept override { return waiter_.needing(); }
  bool cancel_with(const CancelReason& reason) noexcept override {
    return waiter_.cancel_with(reason);
  }

  Inner awaiter_;
  mutable AwaiterStateMachine machine_;
  Continuation waiter_;
};

}  // namespace weft::inline v0::detail
