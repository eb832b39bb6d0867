// SPDX-License-Identifier: MIT
#pragma once
// weft::testing::Sequencer: makes steps of different tasks happen in a stated order.
//
//     Sequencer seq;
//     Task<> a() {
//       { auto turn = co_await seq.step(1); begin(); }
//       { auto turn = co_await seq.step(3); end(); }
//     }
//     Task<> b() { auto turn = co_await seq.step(2); poke(); }
//
// step(n) waits until step n - 1 has been passed; a step is passed when the turn that it returned
// dies. Steps begin at 1, and each is used once.
//
// Threads        step() from any loop, concurrently: the tasks may live on different threads.
// Cancellation   step() is a cancel point on every call; a cancelled step is not passed, so those
//                behind it wait for ever (on a VirtualLoop, run() says so).
// Memory order   what happens in a turn is visible in the next.
// Allocation     none: the waiter lives in the awaiting frame.
//
// Invariants
//   Q1  next_ is the first step that has not been passed.
//   Q2  a waiter is listed from its await_suspend() until the step before it is passed or it is
//       cancelled; whoever takes it off the list owes the one post (L6).
#include <functional>
#include <mutex>
#include <utility>

#include "weft/core/continuation.h"
#include "weft/core/executor.h"
#include "weft/core/make_awaitable.h"

namespace weft::inline v0::testing {

class Sequencer {
 public:
  Sequencer() = default;
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;
  ~Sequencer();

  class Step;
  class Turn;
  [[nodiscard]] AwaiterDescription<Step, Sequencer&, unsigned> step(unsigned number) noexcept;
  // The last step that was passed; 0: none.
  [[nodiscard]] unsigned passed() const;

 private:
  void pass(unsigned number) noexcept;

  mutable std::mutex mutex_;  // guards what follows, for a few instructions
  unsigned next_ = 1;
  Step* waiting_ = nullptr;  // in no order; tests have few
};

// While it lives, it is this step's turn.
class [[nodiscard("the step is passed when its turn dies")]] Sequencer::Turn {
 public:
  Turn(Turn&& other) noexcept
      : sequencer_(std::exchange(other.sequencer_, nullptr)), number_(other.number_) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (sequencer_) sequencer_->pass(number_);
  }

 private:
  friend class Step;
  Turn(Sequencer& of, unsigned number) noexcept : sequencer_(&of), number_(number) {}
  Sequencer* sequencer_;
  unsigned number_;
};

class Sequencer::Step : private Runnable {
 public:
  using native_awaiter = void;
  Step(Sequencer& of, unsigned number) noexcept
      : Runnable(&arrived), sequencer_(of), number_(number) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  static constexpr bool await_ready() noexcept { return false; }
  // UsageError if the step was passed before.
  bool await_suspend(detail::Continuation waiter);
  Turn await_resume() noexcept { return Turn(sequencer_, number_); }
  bool await_cancel(detail::Continuation) noexcept;
  // Its turn came, but it has not passed yet: nothing is lost.
  static constexpr std::false_type await_must_resume() noexcept { return {}; }
  void await_introspect(auto& tree) noexcept { tree.node("step"); }

 private:
  friend class Sequencer;
  static void arrived(Runnable& work) noexcept;

  Sequencer& sequencer_;
  unsigned number_;
  detail::HomeIndex home_ = 0;
  detail::Continuation waiter_;
  Step* next_waiting_ = nullptr;
};

inline AwaiterDescription<Sequencer::Step, Sequencer&, unsigned> Sequencer::step(
    unsigned number) noexcept {
  return make_awaitable<Step>(std::ref(*this), number);
}

}  // namespace weft::inline v0::testing
