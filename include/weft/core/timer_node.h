// SPDX-License-Identifier: MIT
#pragma once
// A timer, as its owner sees it: a node in the awaiting frame, lent to a loop until it fires or is
// disarmed.
//
// Threads        the home loop only.
// Allocation     none: the node is the timer.
//
// Invariants
//   I1  prev and next are both null, or both point into the wheel that the node is armed in.
//   I2  fire() is called at most once per arming, on the loop, after the node was unlinked: it may
//       arm the node again, and it may end the node's life.
#include <cstdint>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

struct TimerNode {
  // Declared, so that this is no aggregate: g++ 12 destroys those twice in a co_await expression.
  TimerNode() noexcept = default;
  // A node may be copied, or moved, before it is armed; the copy is not armed.
  TimerNode(const TimerNode& other) noexcept : fire(other.fire) {
    WEFT_DEBUG_ASSERT(!other.armed(), "an armed timer stays where it is");
  }
  TimerNode& operator=(const TimerNode&) = delete;

  [[nodiscard]] bool armed() const noexcept { return next != nullptr; }

  TimerNode* prev = nullptr;
  TimerNode* next = nullptr;
  std::int64_t deadline_ns = 0;
  void (*fire)(TimerNode&) noexcept = nullptr;
};

}  // namespace weft::inline v0::detail
