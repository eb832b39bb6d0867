// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Inbox: what other threads send a loop, and whether that loop must be woken for it.
//
// Many producers, one consumer. Entries are intrusive and carry their kind in the low bits of the
// link, so that an entry costs one pointer wherever it lives. One atomic word holds the newest
// entry or says "asleep" or "closed": a producer that finds "asleep" has, by the same exchange that
// adds its entry, won the duty to wake the loop. There is no second flag, and so no pair of
// operations to order against another pair.
//
// Invariants
//   I1  head_ is kEmpty, kAsleep, kClosed, or the newest entry; links lead to older ones and end in
//       kEmpty.
//   I2  the loop sleeps only after it changed kEmpty to kAsleep; exactly one producer changes that
//       back.
//   I3  after kClosed nothing is ever added, until reopen().
//   I4  an entry belongs to the loop from the moment its push returned true: the producer touches
//       it no more.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

// What an entry is. The node is a member of the object that it stands for.
enum class PostKind : std::uintptr_t {
  runnable = 0,           // Runnable: call it
  kick = 1,               // Strand::kick: look at what it awaits
  link = 2,               // ParentLink: a child of a scope of this loop, started elsewhere
  ended = 3,              // Strand::link: such a child has ended
  ready = 4,              // Strand::link: enter it
  moved = 5,              // Strand::link: its home is this loop from now on
  moved_with_errors = 6,  // MovedErrors: the same, with errors of its children that have ended
};

struct PostNode {
  std::uintptr_t next;  // an entry: address and kind
};

class PostEntry {
 public:
  static constexpr std::uintptr_t kKindMask = 7;
  PostEntry() = default;
  explicit PostEntry(std::uintptr_t bits) noexcept : bits_(bits) {}
  PostEntry(PostNode& node, PostKind kind) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(&node) | static_cast<std::uintptr_t>(kind)) {}

  explicit operator bool() const noexcept { return bits_ != 0; }
  [[nodiscard]] std::uintptr_t bits() const noexcept { return bits_; }
  [[nodiscard]] PostKind kind() const noexcept { return static_cast<PostKind>(bits_ & kKindMask); }
  [[nodiscard]] PostNode& node() const noexcept {
    return *reinterpret_cast<PostNode*>(bits_ & ~kKindMask);
  }

 private:
  std::uintptr_t bits_ = 0;
};

// A first-in, first-out chain of entries, owned by one thread.
class PostChain {
 public:
  PostChain() = default;
  // Requires: the links lead from head to tail and end there.
  PostChain(PostEntry head, PostNode& tail) noexcept : head_{head.bits()}, tail_(&tail) {}
  PostChain(PostChain&& other) noexcept { append(std::move(other)); }
  PostChain& operator=(PostChain&& other) noexcept {
    clear();
    append(std::move(other));
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return head_.next == 0; }
  void push(PostEntry entry) noexcept {
    entry.node().next = 0;
    tail_->next = entry.bits();
    tail_ = &entry.node();
  }
  // Requires: !empty().
  PostEntry pop() noexcept {
    PostEntry entry(head_.next);
    head_.next = entry.node().next;
    if (empty()) tail_ = &head_;
    return entry;
  }
  [[nodiscard]] PostEntry front() const noexcept { return PostEntry(head_.next); }
  // Forgets what stands before `entry`, which is one of the chain's.
  void begin_at(PostEntry entry) noexcept { head_.next = entry.bits(); }
  // Takes out the n-th entry, counted from 0. Requires: there are that many.
  PostEntry pop_at(std::size_t n) noexcept {
    PostNode* before = &head_;
    while (n-- > 0) before = &PostEntry(before->next).node();
    PostEntry entry(before->next);
    before->next = entry.node().next;
    if (tail_ == &entry.node()) tail_ = before;
    return entry;
  }
  void append(PostChain&& other) noexcept {
    if (other.empty()) return;
    tail_->next = other.head_.next;
    tail_ = other.tail_;
    other.clear();
  }
  // Returns: how many entries there are, or `most` if there are more. O(most).
  [[nodiscard]] std::size_t count_to(std::size_t most) const noexcept {
    std::size_t count = 0;
    for (PostEntry at(head_.next); at && count < most; at = PostEntry(at.node().next)) ++count;
    return count;
  }

 private:
  void clear() noexcept {
    head_.next = 0;
    tail_ = &head_;
  }

  PostNode head_{0};         // its link is the first entry
  PostNode* tail_ = &head_;  // the last entry, or head_: a push need not ask which
};

// Entries for one inbox, newest first, as the inbox itself keeps them. Owned by one thread.
class PostStack {
 public:
  [[nodiscard]] bool empty() const noexcept { return newest_ == 0; }
  void push(PostEntry entry) noexcept {
    entry.node().next = newest_;
    if (newest_ == 0) oldest_ = &entry.node();
    newest_ = entry.bits();
  }

 private:
  friend class Inbox;
  std::uintptr_t newest_ = 0;
  PostNode* oldest_ = nullptr;
};

class Inbox {
 public:
  enum class Pushed { quietly, wake_it, closed };

  // Any thread. Returns: wake_it: the caller must wake the loop, once (I2); closed: the entry was
  // not taken.
  Pushed push(PostEntry entry) noexcept { return push(entry.bits(), entry.node()); }
  // All of them, in the order in which they were stacked. Requires: !entries.empty().
  Pushed push(PostStack& entries) noexcept {
    PostNode* oldest = std::exchange(entries.oldest_, nullptr);
    return push(std::exchange(entries.newest_, 0), *oldest);
  }

  // The loop: a look at no cost.
  [[nodiscard]] bool empty() const noexcept { return head_.load(relaxed) == kEmpty; }

  // The loop. Returns: everything sent so far, oldest first. Ends a sleep.
  PostChain take_all() noexcept {
    std::uintptr_t head = head_.load(relaxed);
    if (head == kEmpty || head == kClosed) return {};
    return in_order(head_.exchange(kEmpty, acquire));  // T
  }

  // The loop. Returns: false if there is something to do instead. relaxed: what was sent is taken,
  // and thereby acquired, by take_all().
  [[nodiscard]] bool try_sleep() noexcept {
    std::uintptr_t expected = kEmpty;
    return head_.compare_exchange_strong(expected, kAsleep, relaxed, relaxed);
  }

  // Returns: whether something was sent and not taken. A glance: relaxed, because take_all() looks.
  [[nodiscard]] bool has_entries() const noexcept {
    std::uintptr_t head = head_.load(relaxed);
    return head != kEmpty && head != kAsleep && head != kClosed;
  }
  // The loop. Returns: false if something was sent and not taken; then it stays open. relaxed: there
  // is nothing to take.
  [[nodiscard]] bool try_close() noexcept {
    std::uintptr_t seen = head_.load(relaxed);
    while (seen == kEmpty || seen == kAsleep) {
      if (head_.compare_exchange_weak(seen, kClosed, relaxed, relaxed)) return true;
    }
    return seen == kClosed;
  }
  // The loop. Returns: what was sent before the end.
  PostChain close() noexcept { return in_order(head_.exchange(kClosed, acquire)); }  // T
  // The next owner. relaxed: producers look at nothing but the word, and what wakes the owner has
  // its own lock.
  void reopen() noexcept { head_.store(kEmpty, relaxed); }

 private:
  static constexpr std::uintptr_t kEmpty = 0;
  static constexpr std::uintptr_t kAsleep = ~std::uintptr_t{7};
  static constexpr std::uintptr_t kClosed = ~std::uintptr_t{15};

  Pushed push(std::uintptr_t newest, PostNode& oldest) noexcept {
    std::uintptr_t head = head_.load(relaxed);
    for (;;) {
      if (head == kClosed) return Pushed::closed;
      oldest.next = head == kAsleep ? kEmpty : head;
      // release: publishes the entries and what they stand for. [pairs with T]
      // relaxed on failure: older entries are linked to, not looked at; kClosed tells nothing more.
      if (head_.compare_exchange_weak(head, newest, release, relaxed)) break;
    }
    return head == kAsleep ? Pushed::wake_it : Pushed::quietly;
  }

  static PostChain in_order(std::uintptr_t newest) noexcept {
    if (newest == kEmpty || newest == kAsleep || newest == kClosed) return {};
    PostEntry tail(newest);
    std::uintptr_t oldest = kEmpty;
    while (newest != kEmpty) {
      PostEntry entry(newest);
      newest = entry.node().next;
      entry.node().next = oldest;
      oldest = entry.bits();
    }
    return PostChain(PostEntry(oldest), tail.node());
  }

  Atomic<std::uintptr_t> head_{kEmpty};
};

}  // namespace weft::inline v0::detail
