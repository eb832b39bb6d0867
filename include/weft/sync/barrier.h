// SPDX-License-Identifier: MIT
#pragma once
// weft::Barrier: so many parties go from phase to phase together.
//
//     Barrier step(4, "simulation");
//     for (;;) {
//       compute(my_part);
//       if (co_await step.arrive_and_wait()) publish(frame);   // one of them, once per phase
//       co_await step.arrive_and_wait();
//     }
//
// arrive_and_wait() returns when all parties have arrived: true for the one that came last, false
// for the others. arrive_and_drop() is a party's last word: it counts for this phase, and is not
// expected in the next. If that ends the phase, nobody gets true.
//
// Threads        arrive_and_wait(): on a loop. Everything else: any thread. Tasks of many loops may
//                share one.
// Cancellation   a cancelled wait takes its arrival back: the others wait for somebody in its
//                place. Once the phase is over there is nothing to take back, as the others have
//                gone on: then the wait ends with its result, and cancellation strikes at the next
//                await. A party that leaves for good calls arrive_and_drop() as it unwinds.
// Resumption     on the loop that awaited, in arrival order there, through its ready ring; never
//                inside of another's arrival.
// Memory order   what happens before any arrival of a phase is visible after its waits return.
// Errors         UsageError: no parties; arriving when all have dropped; waiting off any loop.
// Allocation     none.
// Cost           two exchanges and two stores. The last arrival is O(parties).
#include <cstdint>

#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/barrier_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class Barrier {
  class Arrive;

 public:
  using Count = detail::BarrierCore::Count;

  // The name is shown in the task tree and in messages. Requires: it outlives the Barrier.
  // UsageError if there are no parties.
  explicit Barrier(Count parties, const char* name = nullptr);
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  // Requires: nobody waits at it, nor was woken and has not gone on yet. Ends the process if
  // somebody waits.
  ~Barrier();

  // Returns: an awaitable of a bool. It arrives when it is awaited.
  [[nodiscard]] auto arrive_and_wait() noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Arrive>, Barrier&>(*this);
  }
  void arrive_and_drop() {
    detail::WaitList woken;
    if (!core_.drop(woken)) [[unlikely]]
      refuse();
    detail::Waiter::notify_all(woken);
  }
  // How many take part, from the next phase on.
  [[nodiscard]] Count parties() noexcept { return core_.parties(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  [[noreturn]] void refuse() const;
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::BarrierCore core_;
  const char* name_;
};

class Barrier::Arrive : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "Barrier::arrive_and_wait()";

 protected:
  explicit Arrive(Barrier& barrier) noexcept : barrier_(barrier) {}

  // To arrive is for take_or_wait(), which cannot throw.
  bool take() {
    if (barrier_.parties() == 0) [[unlikely]]
      barrier_.refuse();
    return false;
  }
  bool take_or_wait() noexcept {
    detail::WaitList woken;
    last_ = barrier_.core_.arrive_or_wait(*this, woken);
    notify_all(woken);
    return last_;
  }
  detail::Withdrawn withdraw() noexcept { return barrier_.core_.withdraw(*this); }
  static constexpr void give_back() noexcept {}
  bool result() const noexcept { return last_; }
  void introspect(TaskTreeCollector& tree) { barrier_.describe_wait(tree, *this); }

 private:
  Barrier& barrier_;
  bool last_ = false;
};

}  // namespace weft::inline v0
