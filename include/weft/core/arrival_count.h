// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ArrivalCount: how many strands are under way to a loop, and whether it takes more.
//
// A loop ends when it has no strands. One that is being sent to it must count, too, or it would
// arrive where nobody is. So the sender announces it here, before anything else.
//
// Threads        announce() and refuse(): any thread. Everything else: the loop's own.
// Memory order   accept() releases, and an announce() that succeeds acquires: whoever may send sees
//                the inbox open. Otherwise relaxed: one word settles who may send, and what is sent
//                is published by the inbox.
//
// Invariants
//   A1  the count is the number of strands announced and not arrived.
//   A2  once the loop refuses, the count only falls; a loop that refuses, with count 0, can end.
//   A3  a strand that was announced is posted, and that post finds the loop open.
#include <cstdint>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

class ArrivalCount {
 public:
  // Returns: false if the loop refuses. True: the caller owes one post of a strand (A3).
  [[nodiscard]] bool announce() noexcept { return announce_unless(kRefuses); }
  // The same from a loop that is stopped together with this one: refused only when it has closed.
  [[nodiscard]] bool announce_within_group() noexcept { return announce_unless(kClosed); }
  void refuse() noexcept { word_.fetch_or(kRefuses, relaxed); }

  // The post has come.
  void arrived() noexcept { word_.fetch_sub(1, relaxed); }
  [[nodiscard]] bool none() const noexcept { return (word_.load(relaxed) & ~kFlags) == 0; }
  [[nodiscard]] bool refuses() const noexcept { return word_.load(relaxed) & kRefuses; }
  // Returns: false if strands are under way; then nothing was changed (A2). Otherwise it refuses
  // everyone.
  [[nodiscard]] bool close_if_none() noexcept {
    std::uint32_t seen = word_.load(relaxed);
    do {
      if ((seen & ~kFlags) != 0) return false;
    } while (!word_.compare_exchange_weak(seen, kFlags, relaxed, relaxed));
    return true;
  }
  void accept() noexcept { word_.fetch_and(~kFlags, release); }  // [pairs with A]
  // Not closed any more; who was refused before is refused still.
  void reopen() noexcept { word_.fetch_and(~kClosed, release); }  // [pairs with A]

 private:
  static constexpr std::uint32_t kRefuses = 1u << 31;
  static constexpr std::uint32_t kClosed = 1u << 30;
  static constexpr std::uint32_t kFlags = kRefuses | kClosed;

  bool announce_unless(std::uint32_t flag) noexcept {
    std::uint32_t seen = word_.load(relaxed);
    do {
      if (seen & flag) return false;
    } while (!word_.compare_exchange_weak(seen, seen + 1, acquire, relaxed));  // A
    return true;
  }

  Atomic<std::uint32_t> word_{0};
};

}  // namespace weft::inline v0::detail
