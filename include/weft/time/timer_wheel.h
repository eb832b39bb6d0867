// SPDX-License-Identifier: MIT
#pragma once
// TimerWheel: all timers of one loop, exact to the nanosecond.
//
// A hierarchical wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987) over
// the whole 64-bit nanosecond clock, in ticks of 2^16 ns: a timer's level is the highest digit, of ten
// bits, in which the tick of its deadline differs from that of the wheel's time. So nothing wraps
// around, a lower level is always earlier than a higher one, and bitmaps find the earliest slot. The
// timers of the tick that is now are one list, sorted when it is looked at: a tick is short enough for
// that list to lie in the cache, and long enough for a timer to move down rarely. Each move is a cache
// miss; hence the wide digits, for which a wheel takes 40 KiB.
//
// Threads        one at a time; owned by a loop.
// Order          fire_due() fires by deadline; equal deadlines in the order of their arming.
// Allocation     none: timers are nodes of their owners (core/timer_node.h).
// Cost           arm, disarm: O(1). A timer moves down at most once per level in its life (one of
//                a second: twice); a slot moves down in one go, O(timers in it). The timers of one tick
//                are sorted, O(n log n) once, if they were not armed in order.
//
// Invariants
//   I1  an armed node's deadline is >= time(); an earlier one counts as time() when it is armed.
//   I2  a node is in the slot (level, digit) that its deadline and time() give, or in now_ if they
//       have the same tick: no node remembers its slot, and equal deadlines share one.
//   I3  within a slot, equal deadlines are in arming order. Moving a slot down keeps this: the
//       slots below are empty then, and the nodes are appended in list order.
//   I4  a bit is set exactly when its slot, or its level, has a node.
//   I5  a slot whose bit in ordered_ is set is sorted by deadline; so is now_, if now_ordered_.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weft/core/timer_node.h"

namespace weft::inline v0::detail {

class TimerWheel {
 public:
  explicit TimerWheel(std::int64_t now_ns) noexcept;
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // Sets node.deadline_ns. A node that is armed is disarmed first, and so counts as armed last.
  // A deadline in the past is due at the next fire_due(), behind what is due at time() already.
  // Requires: node.fire is set; the node stays where it is until it fires or is disarmed.
  void arm(TimerNode& node, std::int64_t deadline_ns) noexcept;

  // Nothing of the node stays behind. Without effect if it is not armed.
  void disarm(TimerNode& node) noexcept;

  // Returns: the earliest deadline, or nothing if no timer is armed. Where more than kScanMax timers
  // were armed out of order for that time and around it, a time that is a little earlier: they are
  // put in order only when it has come.
  static constexpr int kScanMax = 64;
  [[nodiscard]] std::optional<std::int64_t> next_deadline() noexcept;

  // Fires what is due at now_ns, up to `budget` timers. fire() may arm and disarm any node, also
  // those that are due: what it arms for now_ns or earlier fires in this call, in its place, while
  // the budget lasts. It must not call fire_due(). Returns: how many fired; budget means that more
  // may be due.
  std::size_t fire_due(std::int64_t now_ns, std::size_t budget) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // The latest now_ns up to which everything has fired; while fire() runs, the deadline that it is
  // fired for.
  [[nodiscard]] std::int64_t time() const noexcept;

 private:
  static constexpr int kTickBits = 16;
  static constexpr int kDigitBits = 10;
  static constexpr int kSlots = 1 << kDigitBits;
  static constexpr int kLevels = (64 - kTickBits + kDigitBits - 1) / kDigitBits;
  static constexpr int kInsertMax = 8;  // steps from the end of now_, to keep it in order

  struct Place {
    int level;  // -1: now_
    int slot;
  };

  Place place_of(std::uint64_t deadline) const noexcept;
  Place earliest_place() const noexcept;
  std::uint64_t start_of(Place place) const noexcept;
  void append(TimerNode& node) noexcept;
  void append_now(TimerNode& node) noexcept;
  void unlink(TimerNode& node, Place place) noexcept;
  void mark_empty(Place place) noexcept;
  void move_down(Place place) noexcept;
  // Requires: there is one.
  TimerNode& first_of_now() noexcept;
  static TimerNode* sorted(TimerNode* first) noexcept;

  std::uint64_t
      time_;  // as all times inside: the sign bit flipped, so that unsigned order is time order
  std::uint32_t levels_used_ = 0;
  bool firing_ = false;
  std::size_t size_ = 0;
  // One bit per slot.
  class Bits {
   public:
    void set(int slot) noexcept { words_[slot / 64] |= std::uint64_t{1} << (slot % 64); }
    void clear(int slot) noexcept { words_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64)); }
    [[nodiscard]] bool has(int slot) const noexcept { return words_[slot / 64] >> (slot % 64) & 1; }
    // Returns: the first, or kSlots.
    [[nodiscard]] int first() const noexcept;

   private:
    std::array<std::uint64_t, kSlots / 64> words_{};
  };
  std::array<Bits, kLevels> slots_used_{};
  std::array<Bits, kLevels> ordered_{};
  // Circular lists: first->prev is the last.
  std::array<std::array<TimerNode*, kSlots>, kLevels> first_{};
  TimerNode* now_ = nullptr;
  bool now_ordered_ = true;
};

}  // namespace weft::inline v0::detail
