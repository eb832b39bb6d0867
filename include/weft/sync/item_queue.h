// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ItemQueue<T>: the values inside of a Channel, first in, first out; in one chunk that is
// made at once, or in chunks that are made as it grows.
//
// The chunks form a circle: from the head's, over the tail's and those that are free, back to the
// head's. One chunk that is its own next is a ring.
//
// It has two ends with a lock each, far apart in memory, and each end remembers what it last saw of the
// other: so a loop that pushes and one that pops share no cache line while there is room and there are
// values, but for the values themselves and one counter now and then (as Lamport's queue with cached
// indices: Lee, Bu and Chandranmenon, "MCRingBuffer", 2010).
//
// Two loops that run side by side would still meet at every item, as the faster one looks again as soon as
// there is one. So an end that finds few, of another loop's, pauses for a microsecond and then
// finds many; as long as that helps (bench: channel_two_loops, 33 ns an item without, 8 with).
//
// Threads        try_push() takes the tail's lock, try_pop() the head's; everything else: whoever calls holds
//                both (ItemQueue::Both). make_chunk() and the freeing of chunks are done without.
//
// Invariants
//   Q1  head_.at is the place of the first value; an empty queue's head and tail are in one chunk.
//   Q2  tail_.at is the place behind the last value, and may be the end of its chunk: only a push goes on.
//   Q3  a growing queue keeps one free chunk: what leaves behind it is retired.
//   Q4  a growing queue's capacity is whole chunks, so at capacity head and tail stand equally far in
//       theirs. A full queue that must not grow can then replace its first by a new last for ever.
//   Q5  tail_.until: as long as fewer were pushed, there is room in tail_.chunk and nobody bars the way; so
//       for head_.until, pops and values, but for a growing queue's last, and last of a chunk: who takes
//       the last begins the chunk anew. The other end only makes it more, and who bars the way sets it
//       back.
//   Q6  chunks are linked, left and entered under both locks, but for a ring's only one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/atomic/pause.h"
#include "weft/base/assert.h"
#include "weft/sync/sharing.h"

namespace weft::inline v0::detail {

template <class T, class Sharing = BetweenLoops>
class ItemQueue {
  static_assert(
      std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
      "values are moved under a lock, also on behalf of other tasks, so nobody could catch "
      "what a move throws: send a std::unique_ptr of such a type");
  using Lock = typename Sharing::Lock;
  using Home = std::uint32_t;

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
      : ItemQueue(rounded_up(how.capacity_max, how.step), how.step, how.capacity_max > 0) {}
  ItemQueue(const ItemQueue&) = delete;
  ItemQueue& operator=(const ItemQueue&) = delete;
  ~ItemQueue() {
    Chunks retired;
    while (!empty()) {
      std::destroy_at(&front());
      drop_head(retired);
    }
    if (!tail_.chunk) return;
    retired.reset(std::exchange(tail_.chunk->next, nullptr));
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  // --- One end ----------------------------------------------------------------------------------

  // `home` is the loop that calls, or 0.
  // Returns: false if that needs a look at the whole: full, a chunk to enter, or barred.
  [[nodiscard]] bool try_push(T&& value, Home home) noexcept {
    Lock lock(tail_.mu);
    const std::size_t pushed = tail_.count.load(relaxed);
    if (pushed == tail_.until && !may_push(pushed, home)) [[unlikely]]
      return false;
    std::construct_at(tail_.at++, std::move(value));
    // release: the value, to whoever pops it. [pairs with P]
    tail_.count.store(pushed + 1, release);
    return true;
  }
  // Returns: false if that needs a look at the whole: empty, a chunk to leave, or barred.
  [[nodiscard]] bool try_pop(std::optional<T>& into, Home home) noexcept {
    Lock lock(head_.mu);
    const std::size_t popped = head_.count.load(relaxed);
    if (popped == head_.until && !may_pop(popped, home)) [[unlikely]]
      return false;
    into.emplace(std::move(*head_.at));
    std::destroy_at(head_.at++);
    // release: the slot is free; what its value was is read. [pairs with R]
    head_.count.store(popped + 1, release);
    return true;
  }

  // --- Both ends --------------------------------------------------------------------------------

  // Holds both locks.
  class Both {
   public:
    explicit Both(const ItemQueue& queue) noexcept : tail_(queue.tail_.mu), head_(queue.head_.mu) {}

   private:
    Lock tail_;
    Lock head_;
  };

  // From now on try_push(), or try_pop(), says false.
  void bar(bool pushes, bool pops) noexcept {
    if ((tail_.barred = pushes)) tail_.until = tail_.count.load(relaxed);
    if ((head_.barred = pops)) head_.until = head_.count.load(relaxed);
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return tail_.count.load(relaxed) - head_.count.load(relaxed);
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] bool full() const noexcept { return size() == capacity_; }

  // The next push() needs a chunk first, or would if the queue were not full.
  [[nodiscard]] bool must_grow() const noexcept {
    return tail_.at == tail_.end && grows_ && tail_.chunk->next == head_.chunk;
  }
  // Null if there is no memory.
  [[nodiscard]] Chunks make_chunk() const noexcept {
    if (chunk_items_ > kChunkItemsMax) return nullptr;
    void* block = ::operator new(kSlots + chunk_items_ * sizeof(T), kAlign, std::nothrow);
    return Chunks(block ? ::new (block) Chunk(nullptr) : nullptr);
  }
  // Requires: must_grow().
  void grow(Chunks fresh) noexcept {
    fresh->next = tail_.chunk->next;
    tail_.chunk->next = fresh.release();
  }

  // Requires: !must_grow(), !full().
  void push(T&& value) noexcept {
    WEFT_DEBUG_ASSERT(!must_grow() && !full(), "Q4: a value is pushed where there is room");
    if (tail_.at == tail_.end) enter(tail_, tail_.chunk->next);
    std::construct_at(tail_.at++, std::move(value));
    count_one(tail_);
  }

  // Requires: !empty().
  [[nodiscard]] T& front() noexcept {
    if (head_.at == head_.end) enter(head_, head_.chunk);  // a ring's
    return *head_.at;
  }
  // Destroys it. A chunk that is not needed any more is added to `retired`.
  void pop(Chunks& retired) noexcept {
    std::destroy_at(head_.at);
    drop_head(retired);
  }

 private:
  static constexpr std::size_t kFew = 256;
  static constexpr int kPauses = 32;
  static constexpr std::size_t kAlignOf = std::max(alignof(T), alignof(Chunk));
  static constexpr std::align_val_t kAlign{kAlignOf};
  static constexpr std::size_t kSlots = (sizeof(Chunk) + alignof(T) - 1) / alignof(T) * alignof(T);
  static constexpr std::size_t kBytesMax = std::numeric_limits<std::ptrdiff_t>::max();
  static constexpr std::size_t kChunkItemsMax = (kBytesMax - kSlots) / sizeof(T);

  // The largest multiple that there is, if there is none above.
  static constexpr std::size_t rounded_up(std::size_t count, std::size_t step) noexcept {
    const std::size_t less = step - 1;
    return (std::min(count, std::numeric_limits<std::size_t>::max() - less) + less) / step * step;
  }

  struct End {
    [[no_unique_address]] mutable typename Sharing::Mutex mu;
    bool barred = false;
    bool hopes = false;                             // a pause will bring more
    typename Sharing::template Word<Home> home{0};  // whose loop looked last
    Chunk* chunk = nullptr;
    T* at = nullptr;
    T* end = nullptr;       // of its chunk
    std::size_t until = 0;  // Q5
    // Of all pushes, or pops; from zero to zero.
    typename Sharing::template Word<std::size_t> count{0};
  };

  ItemQueue(std::size_t capacity, std::size_t chunk_items, bool grows)
      : capacity_(capacity),
        chunk_items_(chunk_items),
        few_(std::min(kFew, capacity / 4)),
        grows_(grows) {
    if (capacity == 0) return;
    Chunks first = make_chunk();
    if (!first) throw std::bad_alloc();
    Chunk* chunk = first.release();
    chunk->next = chunk;
    enter(head_, chunk);
    enter(tail_, chunk);
  }

  static T* start_of(Chunk* chunk) noexcept {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(chunk) + kSlots);
  }
  void enter(End& end, Chunk* chunk) const noexcept {
    end.chunk = chunk;
    end.at = start_of(chunk);
    end.end = end.at + chunk_items_;
  }

  [[nodiscard, gnu::noinline]] bool may_push(std::size_t pushed, Home home) noexcept {
    if (tail_.barred) return false;
    // acquire: the slots are free. [R]
    auto room_for = [&] { return capacity_ - (pushed - head_.count.load(acquire)); };
    const std::size_t room = look(tail_, head_, home, room_for);
    if (room == 0) return false;
    if (tail_.at == tail_.end) {
      if (grows_) return false;
      enter(tail_, tail_.chunk);
    }
    tail_.until = pushed + std::min(room, left_in(tail_));
    return true;
  }
  [[nodiscard, gnu::noinline]] bool may_pop(std::size_t popped, Home home) noexcept {
    if (head_.barred) return false;
    // acquire: the values. [P]
    auto are_ready = [&] { return tail_.count.load(acquire) - popped; };
    const std::size_t ready = look(head_, tail_, home, are_ready);
    if (ready == 0) return false;
    if (head_.at == head_.end) enter(head_, head_.chunk);  // a ring's
    head_.until = popped + std::min(ready, left_in(head_)) - (grows_ ? 1 : 0);
    return popped != head_.until;
  }
  // Returns: how many there are now, by what the other end says. Leaves word for that end, who looks.
  template <class Count>
  std::size_t look(End& mine, const End& other, Home home, Count count) const noexcept {
    const std::size_t found = count();
    if constexpr (!Sharing::kIsLocal) {
      mine.home.store(home, relaxed);
      if (found < few_ && other.home.load(relaxed) != home) {
        if (found > 1) mine.hopes = true;
        if (!mine.hopes) return found;
        for (int i = 0; i < kPauses; ++i) pause_processor();
        const std::size_t more = count();
        mine.hopes = more != found;
        return more;
      }
    }
    return found;
  }
  [[nodiscard]] static std::size_t left_in(const End& end) noexcept {
    return static_cast<std::size_t>(end.end - end.at);
  }
  // Under both locks, which carry all that the count stands for.
  static void count_one(End& end) noexcept {
    end.count.store(end.count.load(relaxed) + 1, relaxed);
    end.until = end.count.load(relaxed);  // Q5: the next one looks
  }

  // Q1: who empties it stays in the chunk, even at its end.
  void drop_head(Chunks& retired) noexcept {
    ++head_.at;
    count_one(head_);
    if (empty()) {
      head_.at = tail_.at = start_of(head_.chunk);
      tail_.until = tail_.count.load(relaxed);
      return;
    }
    if (head_.at != head_.end) return;
    Chunk* left = head_.chunk;
    enter(head_, left->next);
    if (Chunk* spare = tail_.chunk->next; spare != left) {  // Q3
      spare->next = left->next;
      left->next = retired.release();
      retired.reset(left);
    }
  }

  End tail_;
  [[no_unique_address]] typename Sharing::Gap after_tail_;
  End head_;
  [[no_unique_address]] typename Sharing::Gap after_head_;
  const std::size_t capacity_;
  const std::size_t chunk_items_;
  const std::size_t few_;
  const bool grows_;
};

}  // namespace weft::inline v0::detail
