// SPDX-License-Identifier: MIT
#pragma once
// weft::inspect::detail::WaitGraph: who waits for whose lock, as numbers; no loops, no tasks.
//
// A node is a wait for a lock, and one of those who hold that. It blocks some tasks: the one that waits, and
// those that wait for that one to end. From a wait there is an edge to every other that blocks the holder.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::inline v0::inspect::detail {

using TaskName = const void*;  // an address that nobody looks into

struct Wait {
  std::uint32_t home = 0;      // whose wait it is
  const void* lock = nullptr;  // these three name it
  std::uint32_t ticket = 0;
  TaskName holder = nullptr;      // of the lock; never null
  std::uint32_t holder_home = 0;  // 0: it may be anywhere
  struct Blocked {
    TaskName task;
    std::uint32_t home;
  };
  std::vector<Blocked> blocked;  // the one that waits first
};

// Whether the holder of `wait`'s lock cannot go on before `next` has ended.
[[nodiscard]] bool leads_to(const Wait& wait, const Wait& next);

// Circles, as indices, each leading to the next; no wait is in two of them. There is one if there is
// any. O(waits and edges).
[[nodiscard]] std::vector<std::vector<std::size_t>> find_circles(const std::vector<Wait>& waits);

}  // namespace weft::inline v0::inspect::detail
