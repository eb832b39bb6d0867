// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::WaitNode: one wait for something of sync/, as the thing waited for sees it.
//
// It lies in the awaiting frame. The states are those of seed 000:
//
//     idle ──> waiting ──> notified ──> resumed
//                 │            │
//                 └─> cancelled <┘
//
// Invariants
//   N1  waiting: it is in the list of what it waits for. That list, and the step from waiting to
//       notified, are guarded by that thing's StateMutex; whoever makes the step has unlinked the
//       node and owes exactly one Waiter::notify() (L6).
//   N2  every other step is made on the waiter's home loop.
//   N3  between notified and the arrival of the notify() the node stays where it is, cancelled or
//       not: the post cannot be withdrawn (L12).
#include <cstddef>
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/base/intrusive_list.h"

namespace weft::inline v0::detail {

enum class WaitState : std::uint8_t { idle, waiting, notified, resumed, cancelled };

struct WaitNode : ListNode<> {
  std::uint32_t home = 0;             // the loop that it waits on (HomeIndex)
  Guarded<std::uint32_t> amount = 0;  // what it wants or was given; the thing waited for says which
  Guarded<WaitState> state = WaitState::idle;
};

using WaitList = IntrusiveList<WaitNode>;

// Where a node stands in the list that it waits in.
struct WaitPlace {
  unsigned place;  // from 1; 0 if it does not wait any more
  unsigned of;
};
// Requires: the lock that guards the list.
inline WaitPlace place_in(WaitList& list, const WaitNode& node) noexcept {
  WaitPlace found{0, 0};
  for (WaitNode& each : list) {
    ++found.of;
    if (&each == &node) found.place = found.of;
  }
  return found;
}

// Those in the list that wait on one loop: as many as there are in the first `room` of `nodes`, in order.
// Requires: as place_in(). Returns: how many there are.
inline std::size_t waiting_on(WaitList& list, std::uint32_t home, WaitNode** nodes,
                              std::size_t room) noexcept {
  std::size_t count = 0;
  for (WaitNode& each : list) {
    if (each.home != home) continue;
    if (count < room) nodes[count] = &each;
    ++count;
  }
  return count;
}

// N1 for the first of the list. Requires: the lock that guards it, and that it is not empty.
inline WaitNode& take_first(WaitList& list) noexcept {
  WaitNode& first = list.front();
  first.unlink();
  first.state = WaitState::notified;
  return first;
}
// The same for all; they go to the end of `taken`.
inline void take_all(WaitList& list, WaitList& taken) noexcept {
  for (WaitNode& each : list) each.state = WaitState::notified;
  taken.splice_back(list);
}

// What became of a wait that is cancelled.
enum class Withdrawn : std::uint8_t {
  unlinked,   // it had been given nothing
  passed_on,  // it had, and that is another's now; the notify() is still to arrive
  kept,       // it had, and keeps it: the wait ends with its result (L5)
};

}  // namespace weft::inline v0::detail
