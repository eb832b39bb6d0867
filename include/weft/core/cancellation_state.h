// SPDX-License-Identifier: MIT
#pragma once
// weft::CancellationState: the one word of a strand that every thread may touch.
//
// It answers three questions that race with each other: is this strand cancelled, does the
// canceller have to tell its home loop (owe it a kick), and who frees the memory. Flags and the
// reference count share one atomic, so that each question is settled by a single read-modify-write.
//
// Threads        request_cancel(), add_ref(), drop_ref(), is_*(): any thread that holds a
//                reference. everything else: the strand's home loop.
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
#include <cstdint>

#include "weft/atomic/atomic.h"

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
  static constexpr Word LEASED = 1u << 25;   // leases were made: their holders may cancel
  static constexpr Word REF_MASK = (1u << 24) - 1;

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

  // The home was stored before. Returns: true if the strand was cancelled before it had one.
  // acq_rel: releases the home to the canceller that finds HOMED; acquires the reason (W6). [pairs
  // with C]
  bool set_homed() noexcept {
    Word before = word_.fetch_or(HOMED, detail::acq_rel);  // H
    if (before & CANCELLED) set_kicked();
    return before & CANCELLED;
  }

  void set_kicked() noexcept { word_.fetch_or(KICKED, detail::relaxed); }

  // Returns: the word before. relaxed: it settles who kicks and who frees, and publishes nothing;
  // readers of the outcome ask WaiterSlot.
  Word close() noexcept { return word_.fetch_or(CLOSED, detail::relaxed); }
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

  // Home loop, before the first lease of any frame of the strand is handed out.
  void set_leased() noexcept { word_.fetch_or(LEASED, detail::relaxed); }

  void add_ref() noexcept { word_.fetch_add(1, detail::relaxed); }
  // Returns: true if that was the last one.
  // acq_rel: W5; release to the last one, acquire by it. [pairs with itself and is_private()]
  [[nodiscard]] bool drop_ref() noexcept {
    return (word_.fetch_sub(1, detail::acq_rel) & REF_MASK) == 1;
  }

  // With one reference, held by the home loop, and never a lease, nobody else can write the word:
  // no need to lock the bus for it.
  // acquire: W5; set_private() ends the chain of read-modify-writes by which drop_ref() would see
  // what the others did.
  [[nodiscard]] bool is_private() const noexcept {
    return (word_.load(detail::acquire) & (REF_MASK | LEASED)) == 1;
  }
  void set_private(Word flags) noexcept {
    word_.store(word_.load(detail::relaxed) | flags, detail::relaxed);
  }

  [[nodiscard]] Word peek() const noexcept { return word_.load(detail::relaxed); }
  void reset(Word initial) noexcept { word_.store(initial, detail::relaxed); }

 private:
  detail::Atomic<Word> word_;
};

}  // namespace weft::inline v0
