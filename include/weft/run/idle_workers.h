// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::IdleWorkers: which workers of an IOContext sleep, how many look for work, and whom to
// wake.
//
// The rule: adding a task wakes at most one worker, and none if one is looking for work already: it
// will find this task, too, and, when it has found something and was the last to look, it wakes the
// next. So a burst wakes as many as it can feed, one after the other, and a trickle only one.
//
// Threads        every member, any thread; `worker` is the caller itself.
// Allocation     none.
//
// Invariants
//   K1  hint_ is searching_ and parked_, as they were when mutex_ was last left.
//   K2  a worker is running, searching or parked; parked: it is on the list that ends in last_.
//   K3  whoever takes a worker off that list, but itself, makes it searching and owes it one wake-up.
//   K4  no task is forgotten: a push that found a searching worker precedes, in the one order of all
//       seq_cst operations, that worker's end of searching; and who ends searching without work, or
//       parks, looks at every queue after it said so.
#include <cstddef>
#include <cstdint>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

// A worker, as long as it is one.
struct IdleWorker {
  IdleWorker* prev = nullptr;
  IdleWorker* next = nullptr;
  bool parked = false;
};

class IdleWorkers {
 public:
  // A task was added. Returns: whom the caller has to wake (K3), or null.
  [[nodiscard]] IdleWorker* notify() {
    // seq_cst: after the push. [with publish(): K4]
    if (!should_wake(hint_.load(seq_cst))) return nullptr;
    StateLock lock(mutex_);
    if (searching_ > 0 || !last_) return nullptr;
    IdleWorker* woken = last_;  // the one that slept last: its caches are warm
    remove(*woken);
    ++searching_;
    publish();
    return woken;
  }

  // A worker has run out of work. Returns: false if enough are looking already: half of them would
  // only be in each other's way.
  [[nodiscard]] bool begin_search(std::size_t workers) {
    StateLock lock(mutex_);
    if (2 * std::size_t{searching_} >= workers) return false;
    ++searching_;
    publish();
    return true;
  }
  // It has found something. Returns: true if it was the last that looked: the caller wakes another,
  // if there is more.
  [[nodiscard]] bool end_search() {
    StateLock lock(mutex_);
    --searching_;
    publish();
    return searching_ == 0;
  }

  // It has found nothing. It looks at every queue once more after this, and sleeps then.
  void park(IdleWorker& worker, bool was_searching) {
    StateLock lock(mutex_);
    if (was_searching) --searching_;
    worker.parked = true;
    worker.prev = last_;
    worker.next = nullptr;
    if (last_) last_->next = &worker;
    last_ = &worker;
    ++parked_;
    publish();
  }
  // It is awake. Returns: true: by itself, and it is running; false: somebody has taken it, and it is
  // searching; the wake-up comes, or came.
  [[nodiscard]] bool unpark(IdleWorker& worker) {
    StateLock lock(mutex_);
    if (!worker.parked) return false;
    remove(worker);
    publish();
    return true;
  }

 private:
  static bool should_wake(std::uint64_t hint) noexcept {
    return (hint >> 32) == 0 && static_cast<std::uint32_t>(hint) > 0;
  }
  void remove(IdleWorker& worker) noexcept {
    if (worker.prev) worker.prev->next = worker.next;
    (worker.next ? worker.next->prev : last_) = worker.prev;
    worker.parked = false;
    --parked_;
  }
  // K1. seq_cst: before the look at the queues. [with push() and notify(): K4]
  void publish() { hint_.store(std::uint64_t{searching_} << 32 | parked_, seq_cst); }

  Atomic<std::uint64_t> hint_{0};
  StateMutex mutex_;  // guards what follows, and every IdleWorker
  std::uint32_t searching_ = 0;
  std::uint32_t parked_ = 0;
  IdleWorker* last_ = nullptr;
};

}  // namespace weft::inline v0::detail
