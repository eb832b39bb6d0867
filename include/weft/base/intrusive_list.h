// SPDX-License-Identifier: MIT
#pragma once
// IntrusiveList: a doubly linked list of objects that bring their own links.
//
// For what is in at most one list per tag, leaves from the middle, and must not allocate. A type
// that is in two lists at once derives from two ListNodes with different tags.
//
//   struct Child : ListNode<> {};
//   IntrusiveList<Child> children;   children.push_back(child);   child.unlink();
//
// Threads        none: owned by one thread at a time.
// Allocation     none. A node stays where it is while it is linked. Cost           everything O(1),
//                but iteration; there is no size().
//
// Invariants
//   I1  the list is a circle through its own head; an empty list is the head alone.
//   I2  for every member, next->prev and prev->next are the member.
//   I3  a node that is in no list has both pointers null.
#include <concepts>
#include <cstddef>
#include <iterator>
#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0 {

template <class T, class Tag>
class IntrusiveList;

namespace detail {

// What the list really links; without a tag, so that the code is made once.
class ListLinks {
 public:
  constexpr ListLinks() noexcept = default;
  // A node may be copied or moved while it is in no list; the copy is in none.
  constexpr ListLinks(const ListLinks& other) noexcept { other.require_unlinked(); }
  constexpr ListLinks& operator=(const ListLinks& other) noexcept {
    require_unlinked();
    other.require_unlinked();
    return *this;
  }

  [[nodiscard]] constexpr bool linked() const noexcept { return next_ != nullptr; }

  // Leaves its list, whichever that is. Requires: linked().
  constexpr void unlink() noexcept {
    WEFT_DEBUG_ASSERT(linked(), "a node that leaves a list is in one");
    WEFT_DEBUG_ASSERT(next_->prev_ == this && prev_->next_ == this, "list links agree");  // I2
    prev_->next_ = next_;
    next_->prev_ = prev_;
    prev_ = next_ = nullptr;
  }

 protected:
  constexpr ~ListLinks() = default;

 private:
  template <class, class>
  friend class ::weft::v0::IntrusiveList;

  constexpr void require_unlinked() const noexcept {
    WEFT_DEBUG_ASSERT(!linked(), "a node that is in a list stays where it is");
  }

  ListLinks* prev_ = nullptr;
  ListLinks* next_ = nullptr;
};

}  // namespace detail

template <class Tag = void>
struct ListNode : detail::ListLinks {};

template <class T, class Tag = void>
class IntrusiveList {
  using Links = detail::ListLinks;

 public:
  class iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;

    iterator() noexcept = default;
    T& operator*() const noexcept { return item(*at_); }
    T* operator->() const noexcept { return &item(*at_); }
    iterator& operator++() noexcept { return at_ = at_->next_, *this; }
    iterator& operator--() noexcept { return at_ = at_->prev_, *this; }
    iterator operator++(int) noexcept { return iterator(std::exchange(at_, at_->next_)); }
    iterator operator--(int) noexcept { return iterator(std::exchange(at_, at_->prev_)); }
    friend bool operator==(iterator, iterator) noexcept = default;

   private:
    friend IntrusiveList;
    explicit iterator(Links* at) noexcept : at_(at) {}
    Links* at_ = nullptr;
  };

  IntrusiveList() noexcept { reset(); }
  // Requires: empty. A list does not own its members, and they may not outlive it linked.
  ~IntrusiveList() { WEFT_DEBUG_ASSERT(empty(), "a list is empty when it ends"); }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  [[nodiscard]] bool empty() const noexcept { return head_.next_ == &head_; }

  // Requires: !empty().
  [[nodiscard]] T& front() noexcept { return item(*require_some().next_); }
  [[nodiscard]] T& back() noexcept { return item(*require_some().prev_); }

  // Requires: the node is in no list of this tag.
  void push_back(T& node) noexcept { link_before(head_, links(node)); }
  void push_front(T& node) noexcept { link_before(*head_.next_, links(node)); }
  void insert_before(T& place, T& node) noexcept { link_before(links(place), links(node)); }

  // Returns: the first, now in no list; nullptr if there is none.
  [[nodiscard]] T* pop_front() noexcept {
    if (empty()) return nullptr;
    T& node = front();
    links(node).unlink();
    return &node;
  }

  // Requires: the node is in this list. (Only that it is in some list can be checked.)
  static void erase(T& node) noexcept { links(node).unlink(); }

  // Moves all of `other`, in order, to the end of this list.
  void splice_back(IntrusiveList& other) noexcept {
    WEFT_DEBUG_ASSERT(&other != this, "a list is not spliced into itself");
    if (other.empty()) return;
    Links* first = other.head_.next_;
    Links* last = other.head_.prev_;
    other.reset();
    first->prev_ = head_.prev_;
    last->next_ = &head_;
    head_.prev_->next_ = first;
    head_.prev_ = last;
  }

  // The current member may be unlinked once the iterator has moved on.
  [[nodiscard]] iterator begin() noexcept { return iterator(head_.next_); }
  [[nodiscard]] iterator end() noexcept { return iterator(&head_); }

 private:
  struct Head : Links {};

  static Links& links(T& node) noexcept {
    static_assert(std::derived_from<T, ListNode<Tag>>, "a member derives from ListNode<Tag>");
    return static_cast<ListNode<Tag>&>(node);
  }
  static T& item(Links& node) noexcept {
    return static_cast<T&>(static_cast<ListNode<Tag>&>(node));
  }

  static void link_before(Links& place, Links& node) noexcept {
    WEFT_DEBUG_ASSERT(!node.linked(), "a node is in one list at a time");
    WEFT_DEBUG_ASSERT(place.linked(), "a node is inserted before one that is in a list");
    node.prev_ = place.prev_;
    node.next_ = &place;
    place.prev_->next_ = &node;
    place.prev_ = &node;
  }

  Links& require_some() noexcept {
    WEFT_DEBUG_ASSERT(!empty(), "the front of a list is asked for only if there is one");
    return head_;
  }

  void reset() noexcept { head_.prev_ = head_.next_ = &head_; }

  Head head_;
};

}  // namespace weft::inline v0
