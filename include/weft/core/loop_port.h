// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::LoopPort: the part of a loop that other threads touch.
//
// Ports live in a process-wide slab. They are recycled and never freed, so a poster that is late,
// because the loop it aims at has ended meanwhile, reads a closed inbox or wakes the port's next
// owner for nothing; it never touches freed memory. A strand names its home by the port's index.
//
// Invariants
//   P1  a port belongs to one Executor from acquire_port() to release_port().
//   P2  wake() is called once for each Inbox::Pushed::wake_it, and under the port's mutex (but for
//       the owner's own thread, which cannot go away meanwhile), so that the owner may go away as
//       soon as release_port() returned.
#include <condition_variable>
#include <mutex>

#include "weft/core/arrival_count.h"
#include "weft/core/inbox.h"
#include "weft/core/strand.h"

namespace weft::inline v0 {
class Executor;
}

namespace weft::inline v0::detail {

inline constexpr HomeIndex kLoopsMax = 1024;  // loops that exist at one time in a process

struct LoopPort {
  // Each on a cache line of its own: a loop that waits for the one should not be disturbed by the
  // other.
  alignas(64) Inbox inbox;
  alignas(64) ArrivalCount arrivals;
  Executor* executor = nullptr;  // read by its own thread only, or under mutex

  std::mutex mutex;  // guards what follows
  bool woken = false;
  std::condition_variable wake_up;         // for loops that sleep in the port itself
  void (*wake)(void*) noexcept = nullptr;  // for loops that sleep elsewhere
  void* wake_context = nullptr;

  // Loops that are stopped together, and so are no strangers to each other. Written before the loop
  // has strands.
  const void* group = nullptr;

  // Any thread. Returns: false if the loop has ended; the entry was not taken.
  bool post(PostEntry entry) noexcept { return pushed(inbox.push(entry)); }
  bool post(PostStack& entries) noexcept { return pushed(inbox.push(entries)); }
  void wake_owner() noexcept;

 private:
  bool pushed(Inbox::Pushed how) noexcept {
    switch (how) {
      case Inbox::Pushed::quietly:
        return true;
      case Inbox::Pushed::closed:
        return false;
      case Inbox::Pushed::wake_it:
        break;
    }
    wake_owner();
    return true;
  }
};

[[nodiscard]] LoopPort& port_at(HomeIndex index) noexcept;
// Throws UsageError when kLoopsMax loops exist.
[[nodiscard]] HomeIndex acquire_port(Executor& owner);
void release_port(HomeIndex index) noexcept;

}  // namespace weft::inline v0::detail
