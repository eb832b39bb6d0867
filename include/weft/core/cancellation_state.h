// SPDX-License-Identifier: MIT
#pragma once
// weft::CancellationState: the one word of a strand that every thread may touch.
//
// It answers three questions that race with each other: is this strand cancelled, does the
// canceller have to tell its home loop (owe it a kick), and who frees the memory. Flags and the
// reference count share one atomic, so that each question is settled by a single read-modify-write.
//
// Threads        request_cancel(), add_ref(), drop_ref(), is_*(): any thread that holds a
//                reference, a lease of one of the strand's scopes, or the strand as a child.
//                Everything else: the strand's home loop.
//
// Invariants
//   W1  CANCELLED, CLOSED and HOMED are never cleared.
//   W2  a kick is owed by exactly one caller: the one whose fetch_or(CANCELLED) found HOMED, not
//       CANCELLED, not CLOSED.
//   W3  KICKED is set by the home loop alone: when the kick arrived, or when the strand was already
//       CANCELLED as it got its home (then W2 says that no kick is owed).
//   W4  a strand that closes with CANCELLED and without KICKED is a husk: its reference passes to
//       the kick under way.
//   W5  whoever drops the last reference sees everything that the others did before they dropped
//       theirs.
//   W6  whoever sees CANCELLED through a member that says so sees the reason.
//   W7  SHARED is set before anyone can reach the word from another thread without a reference: who
//       holds a lease of a scope of the strand, and a parent or waiter that lives on another loop,
//       or that the strand moves away from.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/base/assert.h"

namespace weft::inline v0 {

class CancellationState {
 public:
  using Word = std::uint32_t;
  static constexpr Word CANCELLED = 1u << 31;
  static constexpr Word CLOSED = 1u << 30;   // the strand ended; its outcome is in place
  static constexpr Word HOMED = 1u << 29;    // the strand has a home loop: a canceller must tell it
  static constexpr Word IGNORED = 1u << 28;  // an ignore_cancellation() guard is in force
  static constexpr Word KICKED = 1u << 27;   // the home loop knows of CANCELLED
  static constexpr Word HANDLE = 1u << 26;   // a StartedTask exists: errors are owed to it
  static constexpr Word SHARED = 1u << 25;   // others reach the word without a reference (W7)
  static constexpr Word REF_MASK = (1u << 24) - 1;
  // Handles of one strand, in the whole process. Half of what there is room for: threads that count
  // up at the same time stay within the field until the first of them has said so.
  static constexpr Word kReferencesMax = REF_MASK / 2;

  CancellationState() = default;
  explicit CancellationState(Word initial) noexcept : word_(initial) {}

  // acquire: W6. [pairs with C]
  [[nodiscard]] Word load() const noexcept { return word_.load(detail::acquire); }
  [[nodiscard]] bool is_cancelled() const noexcept { return load() & CANCELLED; }
  [[nodiscard]] bool is_effectively_cancelled() const noexcept {
    return (load() & (CANCELLED | IGNORED)) == CANCELLED;
  }

  // Returns: true if the caller now owes the home loop a kick (W2).
  // acq_rel: releases the reason to whoever sees CANCELLED; acquires the home that set_homed()
  // released. [pairs with H]
  [[nodiscard]] bool request_cancel() noexcept {
    Word before = word_.fetch_or(CANCELLED, detail::acq_rel);  // C
    return (before & (HOMED | CANCELLED | CLOSED)) == HOMED;
  }

  // The same, and SHARED is taken back. Requires: nobody else can reach the word (W7).
  void set_homed_private() noexcept {
    Word word = (word_.load(detail::relaxed) & ~SHARED) | HOMED;
    word_.store(word & CANCELLED ? word | KICKED : word, detail::relaxed);
  }

  // The home was stored before. Returns: true if the strand was cancelled before it had one.
  // release: the home, to the canceller that finds HOMED. The reason (W6) is acquired where
  // set_kicked() looks at the word. [pairs with C]
  bool set_homed() noexcept {
    Word before = word_.fetch_or(HOMED, detail::release);  // H
    if (before & CANCELLED) set_kicked();
    return before & CANCELLED;
  }

  // Returns: the word before. relaxed: the kick's own arrival brought the reason with it.
  Word set_kicked() noexcept { return set(KICKED); }

  // Returns: the word before. relaxed: it settles who kicks and who frees, and publishes nothing;
  // readers of the outcome ask WaiterSlot.
  Word close() noexcept { return set(CLOSED); }
  [[nodiscard]] static bool leaves_husk(Word before_close) noexcept {
    return (before_close & (CANCELLED | KICKED)) == CANCELLED;
  }

  // Returns: false if cancellation came first, and then nothing was changed.
  // relaxed on success: IGNORED concerns the home loop alone; others only poll it. acquire where
  // CANCELLED is seen: W6. [pairs with C]
  [[nodiscard]] bool try_set_ignored() noexcept {
    Word seen = word_.load(detail::acquire);
    do {
      if (seen & CANCELLED) return false;
    } while (!word_.compare_exchange_weak(seen, seen | IGNORED, detail::relaxed, detail::acquire));
    return true;
  }
  // Returns: true if cancellation was asked for meanwhile: the deferred walk is due.
  // acquire: W6. [pairs with C]
  [[nodiscard]] bool clear_ignored() noexcept {
    return word_.fetch_and(~IGNORED, detail::acquire) & CANCELLED;
  }

  // Returns: the word before. relaxed: one bit is all that it tells; drop_ref() follows it.
  Word clear_handle() noexcept { return word_.fetch_and(~HANDLE, detail::relaxed); }

  void add_ref() noexcept {
    Word before = word_.fetch_add(1, detail::relaxed);
    WEFT_ASSERT((before & REF_MASK) < kReferencesMax,
                "L15: a task has at most CancellationState::kReferencesMax handles");
  }
  // Requires: the strand has ended, or this is not its own reference.
  // Returns: true if that was the last one. acq_rel, and acquire where the caller's is the only one
  // and needs no taking off: W5.
  [[nodiscard]] bool drop_ref() noexcept {
    return (word_.load(detail::acquire) & REF_MASK) == 1 ||
           (word_.fetch_sub(1, detail::acq_rel) & REF_MASK) == 1;
  }

  void set_shared() noexcept {
    if (!(peek() & SHARED)) word_.fetch_or(SHARED, detail::relaxed);
  }
  // The home loop. Returns: true if nobody else can reach the word; then there is no need to lock
  // the bus for it.
  [[nodiscard]] bool is_private() const noexcept {
    return (word_.load(detail::acquire) & (REF_MASK | SHARED)) == 1;
  }
  // The same as request_cancel(). Requires: is_private(), HOMED.
  [[nodiscard]] bool request_cancel_private() noexcept {
    return !(set_private(CANCELLED) & (CANCELLED | CLOSED));
  }

  [[nodiscard]] Word peek() const noexcept { return word_.load(detail::relaxed); }
  void reset(Word initial) noexcept { word_.store(initial, detail::relaxed); }

 private:
  // The home loop. Returns: the word before.
  Word set(Word flag) noexcept {
    return is_private() ? set_private(flag) : word_.fetch_or(flag, detail::relaxed);
  }
  Word set_private(Word flag) noexcept {
    Word before = peek();
    word_.store(before | flag, detail::relaxed);
    return before;
  }

  detail::Atomic<Word> word_;
};

}  // namespace weft::inline v0
