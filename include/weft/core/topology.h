// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Topology: what a scope must reach when it is cancelled, and wait for when it ends.
//
// A doubly linked ring of intrusive members, owned by the scope's home loop: every operation is
// O(1) and plain. Nodes (hooks of users and of weft) stand first, newest first; children stand
// behind them, in start order. That order makes "are there children?" one look at the last member,
// without a count.
//
// Invariants
//   R1  first_ is null or the first member; the ring closes through it.
//   R2  every node stands before every child.
#include "weft/base/assert.h"
#include "weft/core/strand.h"

namespace weft::inline v0::detail {

class Topology {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] bool has_children() const noexcept { return first_ && first_->prev->is_child(); }
  [[nodiscard]] ParentLink* first() const noexcept { return first_; }

  void add_child(ParentLink& link) noexcept { insert(link); }
  void add_node(ParentLink& link) noexcept {
    insert(link);
    first_ = &link;
  }

  void remove(ParentLink& link) noexcept {
    WEFT_DEBUG_ASSERT(first_ && link.next && link.prev,
                      "only a member of a topology can be removed from it");
    if (link.next == &link) {
      first_ = nullptr;
    } else {
      link.prev->next = link.next;
      link.next->prev = link.prev;
      if (first_ == &link) first_ = link.next;
    }
    link.prev = link.next = nullptr;
  }

  // Requires: fn removes nothing and adds nothing.
  template <class Fn>
  void for_each_child(Fn&& fn) const {
    if (!has_children()) return;
    ParentLink* child = first_;
    while (!child->is_child()) child = child->next;  // R2
    for (;; child = child->next) {
      fn(Strand::from_parent_link(*child));
      if (child == first_->prev) return;
    }
  }

 private:
  void insert(ParentLink& link) noexcept {
    if (!first_) {
      link.prev = link.next = &link;
      first_ = &link;
      return;
    }
    link.next = first_;
    link.prev = first_->prev;
    link.prev->next = &link;
    first_->prev = &link;
  }

  ParentLink* first_ = nullptr;
};

}  // namespace weft::inline v0::detail
