// SPDX-License-Identifier: MIT
#pragma once
// TimerWheel: all timers of one loop, exact to the nanosecond.
//
// A 64-ary hierarchical wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP
// 1987) over the whole 64-bit nanosecond clock: a timer's level is the highest base-64 digit in
// which its deadline differs from the wheel's time. So nothing wraps around, a lower level is
// always earlier than a higher one, and two bitmaps find the earliest slot.
//
// Threads        one at a time; owned by a loop.
// Order          fire_due() fires by deadline; equal deadlines in the order of their arming.
// Allocation     none: timers are nodes of their owners (core/timer_node.h).
// Cost           arm, disarm: O(1). A timer moves down at most once per level in its life; a slot
//                moves down in one go, O(timers in it). next_deadline(): O(1), but if the timers of
//                the earliest slot were armed out of order it first sorts them, O(n log n) once.
//
// Invariants
//   I1  an armed node's deadline is >= time(); an earlier one counts as time() when it is armed.
//   I2  a node is in the slot (level, digit) that its deadline and time() give: no node remembers
//       its slot, and equal deadlines share one.
//   I3  within a slot, equal deadlines are in arming order. Moving a slot down keeps this: the
//       slots below are empty then, and the nodes are appended in list order.
//   I4  a bit is set exactly when its slot, or its level, has a node.
//   I5  a slot whose bit in ordered_ is set is sorted by deadline. At level 0 every slot is: it
//       has one deadline.
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

  // Returns: the earliest deadline, exactly, or nothing if no timer is armed.
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
  static constexpr int kDigitBits = 6;
  static constexpr int kSlots = 1 << kDigitBits;
  static constexpr int kLevels = (64 + kDigitBits - 1) / kDigitBits;

  struct Place {
    int level;
    int slot;
  };

  Place place_of(std::uint64_t deadline) const noexcept;
  Place earliest_place() const noexcept;
  std::uint64_t start_of(Place place) const noexcept;
  void append(TimerNode& node) noexcept;
  void unlink(TimerNode& node, Place place) noexcept;
  void move_down(Place place) noexcept;
  static TimerNode* sorted(TimerNode* first) noexcept;

  std::uint64_t
      time_;  // as all times inside: the sign bit flipped, so that unsigned order is time order
  std::uint32_t levels_used_ = 0;
  bool firing_ = false;
  std::size_t size_ = 0;
  std::array<std::uint64_t, kLevels> slots_used_{};
  std::array<std::uint64_t, kLevels> ordered_{};
  std::array<std::array<TimerNode*, kSlots>, kLevels>
      first_{};  // circular lists: first->prev is the last
};

}  // namespace weft::inline v0::detail
