// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::LeaseCount: how many leases keep a scope open, and whether the scope waits for the
// last of them.
//
// Children of a scope are listed plainly, on its home loop. A lease is a child that has no place in
// that list, because it may be dropped on any thread; it is only counted.
//
// Invariants
//   C1  the count is raised by the home loop, or by a thread that holds a lease already.
//   C2  WAITING is set by the home loop when the scope has no listed children left and leases
//       remain.
//   C3  the dropper whose fetch_sub found WAITING with count 1 owes the home loop one post; every
//       other dropper touches the scope no more after its fetch_sub.
//   C4  the scope stays until that post has arrived.
//   C5  WAITING with count 0, or POSTED, says just that: the post is under way. The home loop never
//       leaves that state itself.
//   C6  one post at most is under way. A lease made by the home loop meanwhile turns WAITING into
//       POSTED, with which nobody owes a post: the arrival looks at the count again anyway.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/base/assert.h"

namespace weft::inline v0::detail {

class LeaseCount {
 public:
  static constexpr std::uint32_t WAITING = 1u << 30;
  static constexpr std::uint32_t POSTED = 1u << 31;
  static constexpr std::uint32_t COUNT_MASK = WAITING - 1;
  // Leases of one scope. Half of what there is room for, as CancellationState::kReferencesMax.
  static constexpr std::uint32_t kLeasesMax = COUNT_MASK / 2;

  LeaseCount() = default;
  explicit LeaseCount(std::uint32_t leases) noexcept : state_(leases) {}

  // By C1. The count was 0 with WAITING only if this is the home loop, and then nobody else can
  // reach the count before the new lease is handed out.
  void add() noexcept {
    std::uint32_t before = state_.fetch_add(1, relaxed);
    WEFT_ASSERT((before & COUNT_MASK) < kLeasesMax,
                "L15: a scope has at most LeaseCount::kLeasesMax leases");
    if (before == WAITING) state_.fetch_add(POSTED - WAITING, relaxed);  // C6
  }

  // Any thread. Returns: true if the caller owes the post of C3.
  // release: what was done under the lease is visible to the scope that ends after it. [pairs with
  // settled() and W] acquire: the scope's node is free for the post. [pairs with W]
  [[nodiscard]] bool drop() noexcept { return state_.fetch_sub(1, acq_rel) == (WAITING | 1); }

  // Home loop: a lease has become a listed child, or ended there. No post is owed, and so C5 must
  // not look owed. relaxed: the scope goes on; settled() or wait() acquires before it ends.
  void drop_at_home() noexcept {
    std::uint32_t seen = state_.load(relaxed);
    while (!state_.compare_exchange_weak(seen, seen == (WAITING | 1) ? 0 : seen - 1, relaxed,
                                         relaxed)) {
    }
  }

  // Home loop. Returns: true if there are no leases and no post of C3 is under way.
  [[nodiscard]] bool settled() const noexcept { return state_.load(acquire) == 0; }

  // Home loop. Returns: false if there is nothing to wait for (any more).
  // acquire where 0 is seen: what was done under the leases. release: hands the scope's node to the
  // last dropper. [both pair with drop()]
  [[nodiscard]] bool wait() noexcept {
    std::uint32_t seen = state_.load(acquire);
    do {
      if (seen == 0) return false;
    } while (!state_.compare_exchange_weak(seen, seen | WAITING, release, acquire));  // W
    return true;
  }

  // Home loop: the post of C3 has arrived. relaxed: wait() follows, and acquires.
  void post_arrived() noexcept { state_.fetch_and(~(WAITING | POSTED), relaxed); }

 private:
  Atomic<std::uint32_t> state_{0};
};

}  // namespace weft::inline v0::detail
