// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Waiter: the awaiting side of everything in sync/: a WaitNode, and the way back to
// the loop that it waits on.
//
// Whoever takes a Waiter out of a list calls notify(), on any thread, after it has left the lock.
// That posts the waiter to its home, or, at home, puts it behind what is ready; when its turn has
// come the task goes on. Until then it is notified, not resumed, and a cancel finds it so (seed
// 000).
//
// SyncAwaiter<Wait> is the awaiter around one. A Wait is a Waiter with
//
//     bool take()              at once, without waiting: true if it has what it wants
//     bool take_or_wait()      the same, but else it is now in a list (N1)
//     Withdrawn withdraw()     the wait is cancelled
//     Result result()          takes what it was given
//     void give_back()         what it was given is not wanted: the result of a branch was dropped
//     static constexpr const char* kWhat    "Mutex::lock()"
#include <memory>
#include <utility>

#include "weft/base/assert.h"
#include "weft/core/continuation.h"
#include "weft/core/executor.h"
#include "weft/core/thread_state.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class Waiter : public WaitNode, private Runnable {
 public:
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  static Waiter& from(WaitNode& node) noexcept { return static_cast<Waiter&>(node); }

  // N1. From here on it is its home loop's.
  void notify() noexcept;
  // Each of those that were taken out together, in order. A node may be gone after its notify(), so
  // it leaves the list first.
  static void notify_all(WaitList& taken) noexcept {
    while (WaitNode* node = taken.pop_front()) from(*node).notify();
  }

  [[nodiscard]] Strand* strand() const noexcept { return continuation_.strand(); }

 protected:
  using Posted = Runnable;  // of what is posted, a derived class knows no more
  using OnArrival = void (*)(Posted&) noexcept;
  // on_arrival: what the notify() does at home; it ends with arrived().
  explicit Waiter(OnArrival on_arrival = &arrived) noexcept : Runnable(on_arrival) {}
  ~Waiter() {
    WEFT_DEBUG_ASSERT(state != WaitState::waiting && state != WaitState::notified,
                      "L12: a frame is destroyed after its wait has ended");
  }

  static Waiter& from_posted(Posted& work) noexcept { return static_cast<Waiter&>(work); }
  static void arrived(Posted& work) noexcept;

  void begin_wait(Continuation waiter) noexcept { std::construct_at(&continuation_, waiter); }
  // The strand that cannot go on without it; null if there is none.
  [[nodiscard]] Strand* needing() const noexcept { return continuation_.needing(); }
  // Sets home. Throws UsageError off any loop.
  void require_loop(const char* what) {
    Executor* here = thread_state().executor;
    home = (here ? *here : Executor::current(what)).home();
  }

 private:
  union {
    Continuation continuation_;  // once it waits: most are served at once
  };
};

template <class Wait>
class SyncAwaiter final : private Wait {
 public:
  using native_awaiter = void;
  template <class... Args>
  explicit SyncAwaiter(Args&&... args) noexcept : Wait(std::forward<Args>(args)...) {}
  ~SyncAwaiter() {
    if (this->state == WaitState::resumed) this->give_back();
  }

  bool await_ready() {
    this->require_loop(Wait::kWhat);
    return has(this->take());
  }
  bool await_suspend(Continuation waiter) noexcept {
    this->begin_wait(waiter);
    return !has(this->take_or_wait());
  }
  bool await_cancel(Continuation) noexcept {
    switch (this->withdraw()) {
      case Withdrawn::unlinked:
        this->state = WaitState::cancelled;
        return true;
      case Withdrawn::passed_on:
        this->state = WaitState::cancelled;
        break;
      case Withdrawn::kept:
        break;
    }
    return false;  // N3: the notify() arrives
  }
  [[nodiscard]] bool await_must_resume() const noexcept {
    return this->state != WaitState::cancelled;
  }
  decltype(auto) await_resume() {
    this->state = WaitState::idle;
    return this->result();
  }
  void await_introspect(auto& tree) { this->introspect(tree); }

 private:
  bool has(bool taken) noexcept {
    if (taken) this->state = WaitState::resumed;
    return taken;
  }
};

}  // namespace weft::inline v0::detail
