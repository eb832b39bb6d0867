// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::WaiterSlot: where the end of a strand and the one who waits for it meet, from any
// two threads.
//
// Invariants
//   S1  the slot is empty, holds the one waiter, or is done; done is final.
//   S2  publish() is called once, after the outcome is in place; whoever sees done sees the
//       outcome.
//   S3  a waiter is woken by publish() exactly if attach() answered waiting and withdraw() did not.
#include <cstdint>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

template <class Waiter>
class WaiterSlot {
 public:
  enum class Attached { waiting, already_done, taken };

  // release: publishes the waiter to publish(). [pairs with P] acquire on failure: the outcome, if
  // it is there. [pairs with P]
  Attached attach(Waiter& waiter) noexcept {
    std::uintptr_t expected = kEmpty;
    if (slot_.compare_exchange_strong(expected, bits(waiter), release, acquire))
      return Attached::waiting;
    return expected == kDone ? Attached::already_done : Attached::taken;
  }

  // Returns: false if publish() came first: the wake-up is under way and must be waited for.
  // relaxed: a waiter that was withdrawn is touched by nobody, and one that was not learns the
  // outcome from its wake-up.
  [[nodiscard]] bool withdraw(Waiter& waiter) noexcept {
    std::uintptr_t expected = bits(waiter);
    return slot_.compare_exchange_strong(expected, kEmpty, relaxed, relaxed);
  }

  // Returns: the waiter to wake, if any.
  // release: the outcome, to attach() and done(); acquire: the waiter, from attach().
  [[nodiscard]] Waiter* publish() noexcept {
    std::uintptr_t before = slot_.exchange(kDone, acq_rel);  // P
    return reinterpret_cast<Waiter*>(before);
  }

  [[nodiscard]] bool done() const noexcept { return slot_.load(acquire) == kDone; }

  // Before the strand is shared, or when nobody else can reach it.
  void reset(Waiter* waiter) noexcept {
    slot_.store(reinterpret_cast<std::uintptr_t>(waiter), relaxed);
  }
  [[nodiscard]] bool attached() const noexcept { return slot_.load(relaxed) != kEmpty; }
  // Requires: the slot was last written by reset(), or by this thread.
  [[nodiscard]] Waiter* peek() const noexcept {
    return reinterpret_cast<Waiter*>(slot_.load(relaxed));
  }

 private:
  static constexpr std::uintptr_t kEmpty = 0;
  static constexpr std::uintptr_t kDone = 1;
  static std::uintptr_t bits(Waiter& waiter) noexcept {
    return reinterpret_cast<std::uintptr_t>(&waiter);
  }

  Atomic<std::uintptr_t> slot_{kEmpty};
};

}  // namespace weft::inline v0::detail
