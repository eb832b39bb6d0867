// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ItemQueue<T>: the values inside of a Channel, first in, first out; in one chunk that is
// made at once, or in chunks that are made as it grows.
//
// The chunks form a circle: from the head's, over the tail's and those that are free, back to the
// head's. One chunk that is its own next is a ring.
//
// Threads        none: whoever calls holds the channel's lock. make_chunk() and the freeing of
//                chunks are done without it.
//
// Invariants
//   Q1  head_ is the place of the first value; in an empty queue both places are the start of one chunk.
//   Q2  tail_ is the place behind the last value, and may be the end of its chunk: only push() goes on.
//   Q3  a growing queue keeps one free chunk: what leaves behind it is retired.
//   Q4  a growing queue's capacity is whole chunks, so at capacity head and tail stand equally far in
//       theirs. A full queue that must not grow can then replace its first by a new last for ever.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

template <class T>
class ItemQueue {
  static_assert(
      std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
      "values are moved under a lock, also on behalf of other tasks, so nobody could catch "
      "what a move throws: send a std::unique_ptr of such a type");

 public:
  struct Chunk {
    Chunk* next;
  };
  struct FreeChunks {
    void operator()(Chunk* chunk) const noexcept {
      while (chunk) {
        Chunk* next = chunk->next;
        ::operator delete(chunk, kAlign);
        chunk = next;
      }
    }
  };
  // One, or several that end with a null.
  using Chunks = std::unique_ptr<Chunk, FreeChunks>;

  // All at once. Throws std::bad_alloc.
  explicit ItemQueue(std::size_t capacity) : ItemQueue(capacity, capacity, false) {}
  // By chunks of `step`; the capacity is rounded up to a multiple.
  struct Growing {
    std::size_t capacity_max;
    std::size_t step;
  };
  explicit ItemQueue(Growing how)
      : ItemQueue((how.capacity_max + how.step - 1) / how.step * how.step, how.step, true) {}
  ItemQueue(const ItemQueue&) = delete;
  ItemQueue& operator=(const ItemQueue&) = delete;
  ~ItemQueue() {
    Chunks retired;
    while (!empty()) {
      std::destroy_at(head_);
      drop_head(retired);
    }
    if (!tail_chunk_) return;
    retired.reset(std::exchange(tail_chunk_->next, nullptr));
  }

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool full() const noexcept { return count_ == capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  // The next push() needs a chunk first, or would if the queue were not full.
  [[nodiscard]] bool must_grow() const noexcept {
    return tail_ == tail_end_ && grows_ && tail_chunk_->next == head_chunk_;
  }
  // Null if there is no memory.
  [[nodiscard]] Chunks make_chunk() const noexcept {
    void* block = ::operator new(kSlots + chunk_items_ * sizeof(T), kAlign, std::nothrow);
    return Chunks(block ? ::new (block) Chunk(nullptr) : nullptr);
  }
  // Requires: must_grow().
  void grow(Chunks fresh) noexcept {
    fresh->next = tail_chunk_->next;
    tail_chunk_->next = fresh.release();
  }

  // Requires: !must_grow(), !full().
  void push(T&& value) noexcept {
    WEFT_DEBUG_ASSERT(!must_grow() && !full(), "Q4: a value is pushed where there is room");
    if (tail_ == tail_end_) {
      tail_chunk_ = tail_chunk_->next;
      tail_ = start_of(tail_chunk_);
      tail_end_ = tail_ + chunk_items_;
    }
    std::construct_at(tail_++, std::move(value));
    ++count_;
  }

  // Requires: !empty().
  [[nodiscard]] T& front() noexcept { return *head_; }
  // Destroys it. A chunk that is not needed any more is added to `retired`.
  void pop(Chunks& retired) noexcept {
    std::destroy_at(head_);
    drop_head(retired);
  }

 private:
  static constexpr std::size_t kAlignOf = std::max(alignof(T), alignof(Chunk));
  static constexpr std::align_val_t kAlign{kAlignOf};
  static constexpr std::size_t kSlots = (sizeof(Chunk) + alignof(T) - 1) / alignof(T) * alignof(T);

  ItemQueue(std::size_t capacity, std::size_t chunk_items, bool grows)
      : capacity_(capacity), chunk_items_(chunk_items), grows_(grows) {
    if (capacity == 0) return;
    Chunks first = make_chunk();
    if (!first) throw std::bad_alloc();
    head_chunk_ = tail_chunk_ = first.release();
    head_chunk_->next = head_chunk_;
    head_ = tail_ = start_of(head_chunk_);
    head_end_ = tail_end_ = head_ + chunk_items_;
  }

  static T* start_of(Chunk* chunk) noexcept {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(chunk) + kSlots);
  }

  void drop_head(Chunks& retired) noexcept {
    ++head_;
    if (--count_ == 0) {  // Q1
      head_ = tail_ = start_of(head_chunk_);
      return;
    }
    if (head_ != head_end_) return;
    Chunk* left = std::exchange(head_chunk_, head_chunk_->next);
    head_ = start_of(head_chunk_);
    head_end_ = head_ + chunk_items_;
    if (Chunk* spare = tail_chunk_->next; spare != left) {  // Q3
      spare->next = left->next;
      left->next = retired.release();
      retired.reset(left);
    }
  }

  Chunk* head_chunk_ = nullptr;
  Chunk* tail_chunk_ = nullptr;
  T* head_ = nullptr;
  T* head_end_ = nullptr;  // of its chunk
  T* tail_ = nullptr;
  T* tail_end_ = nullptr;
  std::size_t count_ = 0;
  const std::size_t capacity_;
  const std::size_t chunk_items_;
  const bool grows_;
};

}  // namespace weft::inline v0::detail
