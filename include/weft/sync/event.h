// SPDX-License-Identifier: MIT
#pragma once
// weft::Event: many coroutines wait; one set() wakes them all, and lets everybody through until
// reset().
//
//     Event ready("configuration");
//     co_await ready.wait();     // in any number of tasks
//     ready.set();               // anywhere, on any thread
//
// To let one through per set() use AutoEvent; for permits, Semaphore; for values, Channel.
//
// A set() wakes those who wait at that moment, also if a reset() follows before they have gone on.
// Who returns from wait() may destroy the event, if nobody else uses it: set() does not touch it
// any more then.
//
// Threads        wait(): on a loop. Everything else: any thread. Tasks of many loops may share one.
// Cancellation   wait() is a cancel point on every call, also while the event is set; a cancelled
//                wait takes nothing, and ends cancelled even if it was woken and has not gone on
//                yet.
// Resumption     on the loop that awaited, in arrival order there, through its ready ring; never
//                inside of set().
// Memory order   what happens before set() is visible after wait() returns, and after is_set() is
//                true.
// Errors         wait() off any loop: UsageError.
// Allocation     none.
// Cost           wait() on a set one, set() and reset(): one exchange and one store or two. set()
//                is O(tasks that it wakes).
#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/event_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class Event {
  class Wait;

 public:
  Event() = default;
  // The name is shown in the task tree and in messages. Requires: it outlives the Event.
  explicit Event(const char* name) noexcept : name_(name) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  // Requires: nobody waits for it, nor was woken and has not gone on yet. Ends the process if
  // somebody waits.
  ~Event();

  // Returns: an awaitable of nothing.
  [[nodiscard]] auto wait() noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Wait>, Event&>(*this);
  }
  // Without effect if it is set.
  void set() noexcept {
    detail::WaitList woken;
    core_.set(woken);
    detail::Waiter::notify_all(woken);  // V2: *this may be gone
  }
  // From now on wait() waits.
  void reset() noexcept { core_.reset(); }
  [[nodiscard]] bool is_set() const noexcept { return core_.is_set(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::EventCore core_;
  const char* name_ = nullptr;
};

class Event::Wait : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "Event::wait()";

 protected:
  explicit Wait(Event& event) noexcept : event_(event) {}

  // Looking twice would cost as much as waiting does.
  static constexpr bool take() noexcept { return false; }
  bool take_or_wait() noexcept { return event_.core_.look_or_wait(*this); }
  detail::Withdrawn withdraw() noexcept { return event_.core_.withdraw(*this); }
  static constexpr void give_back() noexcept {}
  static constexpr void result() noexcept {}
  void introspect(TaskTreeCollector& tree) { event_.describe_wait(tree, *this); }

 private:
  Event& event_;
};

}  // namespace weft::inline v0
