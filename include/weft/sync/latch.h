// SPDX-License-Identifier: MIT
#pragma once
// weft::Latch: counts down to zero, once; who waits goes on then.
//
//     Latch started(workers.size(), "workers");
//     started.count_down();        // in each, when it is up; on any thread
//     co_await started.wait();     // until all are
//
// For tasks that one started oneself, a Nursery is enough: it waits for their ends. For something
// that happens again and again use Barrier; for something that is taken back, Event.
//
// Who returns from wait() may destroy the latch, if nobody else uses it: count_down() does not
// touch it any more then.
//
// Threads        wait(), arrive_and_wait(): on a loop. Everything else: any thread. Tasks of many
//                loops may share one.
// Cancellation   a cancelled wait takes nothing, and ends cancelled even if it was woken and has
//                not gone on yet. An arrive_and_wait() that is cancelled while it waits has arrived:
//                what is counted is not taken back. A task that was cancelled before has not.
// Resumption     on the loop that awaited, in arrival order there, through its ready ring; never
//                inside of count_down().
// Memory order   what happens before a count_down() is visible after wait() returns.
// Errors         UsageError: counting down more than is left; waiting off any loop.
// Allocation     none.
// Cost           one exchange and one store for each call. The last count_down() is O(tasks that it
//                wakes).
#include <cstdint>

#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/latch_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class Latch {
  class Wait;
  class ArriveAndWait;

 public:
  using Count = detail::LatchCore::Count;

  // The name is shown in the task tree and in messages. Requires: it outlives the Latch.
  explicit Latch(Count count, const char* name = nullptr) noexcept : core_(count), name_(name) {}
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;
  // Requires: nobody waits for it, nor was woken and has not gone on yet. Ends the process if
  // somebody waits.
  ~Latch();

  void count_down(Count by = 1) {
    detail::WaitList woken;
    if (!core_.count_down(by, woken)) [[unlikely]]
      refuse(by);
    detail::Waiter::notify_all(woken);  // A2: *this may be gone
  }
  // Returns: an awaitable of nothing.
  [[nodiscard]] auto wait() noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Wait>, Latch&>(*this);
  }
  // count_down(), then wait(). It arrives when it is awaited.
  [[nodiscard]] auto arrive_and_wait() noexcept {
    return AwaiterDescription<detail::SyncAwaiter<ArriveAndWait>, Latch&>(*this);
  }
  // What is left.
  [[nodiscard]] Count count() noexcept { return core_.count(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  [[noreturn]] void refuse(Count by);
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::LatchCore core_;
  const char* name_;
};

class Latch::Wait : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "Latch::wait()";

 protected:
  explicit Wait(Latch& latch) noexcept : latch_(latch) {}

  // Looking twice would cost as much as waiting does.
  static constexpr bool take() noexcept { return false; }
  bool take_or_wait() noexcept { return latch_.core_.look_or_wait(*this); }
  detail::Withdrawn withdraw() noexcept { return latch_.core_.withdraw(*this); }
  static constexpr void give_back() noexcept {}
  static constexpr void result() noexcept {}
  void introspect(TaskTreeCollector& tree) { latch_.describe_wait(tree, *this); }

  Latch& latch_;
};

class Latch::ArriveAndWait : public Wait {
 public:
  static constexpr const char* kWhat = "Latch::arrive_and_wait()";

 protected:
  using Wait::Wait;
  bool take() {
    latch_.count_down();
    return false;
  }
};

}  // namespace weft::inline v0
