// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::AwaitAdapter: drives one awaiter through the protocol, for the frame that awaits
// it.
//
// What a Task's `co_await x` becomes when x is no Task. It decides before the start (a cancelled
// strand asks await_early_cancel() first), parks the strand, and answers kicks. docs/guide/04 draws
// the states.
#include <coroutine>
#include <type_traits>
#include <utility>

#include "weft/core/adapter.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/foreign_awaiter.h"
#include "weft/core/tree.h"

namespace weft::inline v0::detail {

// An awaiter without state takes no room in the frame.
template <class Aw,
          bool Stateless = std::is_empty_v<Aw> && std::is_trivially_default_constructible_v<Aw>>
class AwaiterBox {
 public:
  template <class A>
  explicit AwaiterBox(A&& awaitable) : awaiter_(host(std::forward<A>(awaitable))) {}
  auto& get() noexcept { return awaiter_; }

 private:
  Aw awaiter_;
};
template <class Aw>
class AwaiterBox<Aw, true> {
 public:
  template <class A>
  explicit AwaiterBox(A&&) {}
  Aw get() const noexcept { return Aw(); }
};

template <class A>
class AwaitAdapter final : public Adapter {
  using Aw = std::remove_reference_t<Hosted<A>>;

 public:
  explicit AwaitAdapter(A&& awaitable) : box_(std::forward<A>(awaitable)) {}

  // All in await_suspend(), where the frame is at hand: the adapter need not carry a pointer to it.
  static constexpr bool await_ready() noexcept { return false; }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    Frame& frame = handle.promise();
    Strand& strand = frame.strand();
    if (strand.is_effectively_cancelled()) [[unlikely]]
      return begin_cancelled(frame, strand);
    if (box_.get().await_ready()) return false;
    return park(frame, strand, false);
  }

  decltype(auto) await_resume() { return box_.get().await_resume(); }

  Answer cancel() noexcept override {
    if constexpr (HasCancel<Aw>) {
      decltype(auto) awaiter = box_.get();
      return call_cancel<Aw>(awaiter, Continuation()) ? Answer::over : Answer::later;
    } else {
      return Answer::unsupported;
    }
  }
  bool must_resume() noexcept override {
    decltype(auto) awaiter = box_.get();
    return call_must_resume<Aw>(awaiter);
  }
  void introspect(TaskTreeCollector& tree) noexcept override {
    decltype(auto) awaiter = box_.get();
    tree.child(awaiter);
  }

 private:
  // Returns: true if the coroutine stays suspended.
  bool begin_cancelled(Frame& frame, Strand& strand) {
    decltype(auto) awaiter = box_.get();
    AmbientCancelReason ambient(strand.why());
    if (call_early_cancel<Aw>(awaiter)) return end_cancelled(frame);
    if constexpr (!kSkippable<Aw>) {
      if (!awaiter.await_ready()) return park(frame, strand, true);
      return call_must_resume<Aw>(awaiter) ? false : end_cancelled(frame);
    }
    __builtin_unreachable();
  }

  bool park(Frame& frame, Strand& strand, bool cancelling) {
    decltype(auto) awaiter = box_.get();
    CancellationRuntime::set_parked(frame, strand, *this, cancelling, CancelsAtOnce<Aw>);
    try {
      if constexpr (HasSetExecutor<Aw>) awaiter.await_set_executor(Executor::current_or_null());
      if constexpr (std::is_void_v<decltype(awaiter.await_suspend(Continuation(strand)))>) {
        awaiter.await_suspend(Continuation(strand));
        return true;
      } else {
        if (awaiter.await_suspend(Continuation(strand))) return true;
      }
    } catch (...) {
      CancellationRuntime::set_running(frame);
      throw;
    }
    CancellationRuntime::set_running(frame);
    if (cancelling && !call_must_resume<Aw>(awaiter)) return end_cancelled(frame);
    return false;
  }

  static bool end_cancelled(Frame& frame) noexcept {
    CancellationRuntime::set_unwinding(
        frame);  // the loop unwinds when the coroutine's stack is left
    return true;
  }

  [[no_unique_address]] AwaiterBox<Hosted<A>> box_;
};

}  // namespace weft::inline v0::detail
