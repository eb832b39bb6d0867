// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::GuestBook: the strands of a loop that belong to trees of other loops.
//
// stop() must reach them, and nothing else on their loop does. Guests without a parent are linked
// through the parent_link that they do not use; the others stand in a hash set, open addressing,
// which grows by doubling: one word per guest and slot, and no allocation while their number stays
// below what it once was.
//
// Threads        the loop's own.
//
// Invariants
//   G1  at most half of the slots are taken, so that a search ends.
//   G2  no empty slot lies between a strand's own slot and the one that it is found in.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/core/strand.h"
#include "weft/core/topology.h"

namespace weft::inline v0::detail {

class GuestBook {
 public:
  // Throws std::bad_alloc, and then it is not listed.
  void add(Strand& guest) {
    if (!guest.parent_link.parent()) {
      parentless_.add_child(guest.parent_link);
      return;
    }
    if ((count_ + 1) * 2 > slots_.size()) grow();
    put(&guest);
    ++count_;
  }

  // Nothing if it is not listed.
  void remove(Strand& strand) noexcept {
    if (!strand.parent_link.parent()) {
      if (strand.parent_link.next) parentless_.remove(strand.parent_link);
      return;
    }
    if (count_ == 0) return;
    std::size_t at = find(strand);
    if (!slots_[at]) return;
    slots_[at] = nullptr;
    --count_;
    close_gap(at);
  }

  // Requires: fn adds and removes nothing.
  template <class Fn>
  void for_each(Fn&& fn) const {
    parentless_.for_each_child(fn);
    for (Strand* guest : slots_) {
      if (guest) fn(*guest);
    }
  }

 private:
  static constexpr std::size_t kSlotsMin = 16;  // a power of two, as every size

  [[nodiscard]] std::size_t own_slot(const Strand* strand) const noexcept {
    // Fibonacci hashing: strands are 16-aligned and lie close together.
    auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(strand));
    return (bits * 0x9e3779b97f4a7c15u) >> (64 - std::countr_zero(slots_.size()));
  }
  [[nodiscard]] std::size_t after(std::size_t at) const noexcept {
    return (at + 1) & (slots_.size() - 1);
  }
  // Returns: where it is, or the empty slot where the search ended.
  [[nodiscard]] std::size_t find(const Strand& strand) const noexcept {
    std::size_t at = own_slot(&strand);
    while (slots_[at] && slots_[at] != &strand) at = after(at);
    return at;
  }
  void put(Strand* guest) noexcept { slots_[find(*guest)] = guest; }

  // Whoever was pushed past the gap moves up (G2).
  void close_gap(std::size_t gap) noexcept {
    for (std::size_t at = after(gap); slots_[at]; at = after(at)) {
      put(std::exchange(slots_[at], nullptr));
    }
  }
  void grow() {
    std::vector<Strand*> before(slots_.empty() ? kSlotsMin : slots_.size() * 2);
    before.swap(slots_);
    for (Strand* guest : before) {
      if (guest) put(guest);
    }
  }

  Topology parentless_;
  std::vector<Strand*> slots_;
  std::size_t count_ = 0;
};

}  // namespace weft::inline v0::detail
