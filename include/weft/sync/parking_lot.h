// SPDX-License-Identifier: MIT
#pragma once
// weft::ParkingLot: a bare queue of waiting tasks, to build other things from.
//
//     while (queue.empty()) co_await lot.park();
//     …
//     queue.push_back(item);
//     lot.unpark_one();
//
// It remembers nothing: an unpark when nobody is parked is lost. On one loop nothing comes between
// a check and the park() behind it, so a loop as above misses nothing. Across loops something may:
// use Event, AutoEvent or Semaphore there.
//
// Threads        park(): on a loop. Everything else: any thread.
// Cancellation   a park() that waits is unlinked. One that was unparked alone and has not gone on
//                yet passes that on to the next, if there is one, and ends cancelled; so
//                unpark_one() wakes one that goes on, if there is any.
// Resumption     on the loop that awaited, first in, first out there, through its ready ring; never
//                inside of an unpark.
// Memory order   what happens before an unpark is visible to those that it wakes.
// Errors         park() off any loop: UsageError.
// Allocation     none.
// Cost           one exchange and one store for each call. unpark_all() is O(tasks that it wakes).
#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/parking_lot_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class ParkingLot {
  class Park;

 public:
  ParkingLot() = default;
  // The name is shown in the task tree and in messages. Requires: it outlives the ParkingLot.
  explicit ParkingLot(const char* name) noexcept : name_(name) {}
  ParkingLot(const ParkingLot&) = delete;
  ParkingLot& operator=(const ParkingLot&) = delete;
  // Requires: nobody is parked, nor was unparked and has not gone on yet. Ends the process if
  // somebody is parked.
  ~ParkingLot();

  // Returns: an awaitable of nothing. It always waits.
  [[nodiscard]] auto park() noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Park>, ParkingLot&>(*this);
  }
  // Wakes who has been parked longest. Returns: false if nobody was.
  bool unpark_one() noexcept { return notify(core_.unpark_one()); }
  // Wakes those who are parked now.
  void unpark_all() noexcept {
    detail::WaitList woken;
    core_.unpark_all(woken);
    detail::Waiter::notify_all(woken);
  }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  static bool notify(detail::WaitNode* next) noexcept {
    if (next) detail::Waiter::from(*next).notify();
    return next != nullptr;
  }
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::ParkingLotCore core_;
  const char* name_ = nullptr;
};

class ParkingLot::Park : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "ParkingLot::park()";

 protected:
  explicit Park(ParkingLot& lot) noexcept : lot_(lot) {}

  static constexpr bool take() noexcept { return false; }
  bool take_or_wait() noexcept {
    lot_.core_.park(*this);
    return false;
  }
  detail::Withdrawn withdraw() noexcept {
    const auto [how, next] = lot_.core_.withdraw(*this);
    ParkingLot::notify(next);
    return how;
  }
  static constexpr void give_back() noexcept {}
  static constexpr void result() noexcept {}
  void introspect(TaskTreeCollector& tree) { lot_.describe_wait(tree, *this); }

 private:
  ParkingLot& lot_;
};

}  // namespace weft::inline v0
