// SPDX-License-Identifier: MIT
#pragma once
// weft::AutoEvent: each set() lets exactly one coroutine through: the one that has waited longest,
// or else the next that comes.
//
//     AutoEvent work("work");
//     for (;;) {
//       co_await work.wait();    // one set(), one round
//       drain(queue);
//     }
//     work.set();                // anywhere, on any thread
//
// It remembers one signal: set() while it is set already is lost. To count them use Semaphore; to
// let everybody through, Event.
//
// Threads        wait(): on a loop. Everything else: any thread. Tasks of many loops may share one.
// Cancellation   a wait() that waits is unlinked and takes nothing. One that has just been let
//                through and has not gone on yet passes its signal on, to the next or to the event,
//                and ends cancelled. As a branch of a combinator it has used its signal up, also if
//                another branch fails.
// Resumption     on the loop that awaited, through its ready ring; never inside of set().
// Memory order   what happens before set() is visible to the one that it lets through.
// Errors         wait() off any loop: UsageError.
// Allocation     none.
// Cost           one exchange and one store or two for each call.
#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/event_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class AutoEvent {
  class Wait;

 public:
  AutoEvent() = default;
  // The name is shown in the task tree and in messages. Requires: it outlives the AutoEvent.
  explicit AutoEvent(const char* name) noexcept : name_(name) {}
  AutoEvent(const AutoEvent&) = delete;
  AutoEvent& operator=(const AutoEvent&) = delete;
  // Requires: nobody waits for it, nor was let through and has not gone on yet. Ends the process if
  // somebody waits.
  ~AutoEvent();

  // Returns: an awaitable of nothing.
  [[nodiscard]] auto wait() noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Wait>, AutoEvent&>(*this);
  }
  // Returns: true if it was set: that signal is the caller's.
  [[nodiscard]] bool try_wait() noexcept { return core_.try_take(); }
  void set() noexcept { notify(core_.set()); }
  // Forgets a signal that nobody has taken.
  void reset() noexcept { core_.reset(); }
  [[nodiscard]] bool is_set() const noexcept { return core_.is_set(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  static void notify(detail::WaitNode* next) noexcept {
    if (next) detail::Waiter::from(*next).notify();
  }
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::AutoEventCore core_;
  const char* name_ = nullptr;
};

class AutoEvent::Wait : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "AutoEvent::wait()";

 protected:
  explicit Wait(AutoEvent& event) noexcept : event_(event) {}

  // Looking twice would cost as much as waiting does.
  static constexpr bool take() noexcept { return false; }
  bool take_or_wait() noexcept { return event_.core_.take_or_wait(*this); }
  detail::Withdrawn withdraw() noexcept {
    const auto [how, next] = event_.core_.withdraw(*this);
    AutoEvent::notify(next);
    return how;
  }
  void give_back() noexcept { event_.set(); }
  static constexpr void result() noexcept {}
  void introspect(TaskTreeCollector& tree) { event_.describe_wait(tree, *this); }

 private:
  AutoEvent& event_;
};

}  // namespace weft::inline v0
