// SPDX-License-Identifier: MIT
#pragma once
// weft::EventLoopTraits<L>: how weft runs on an event loop that is not its own.
//
//     template <>
//     struct weft::EventLoopTraits<QApplication> {
//       static void run(QApplication& app) { app.exec(); }
//       static void stop(QApplication& app) { app.exit(); }
//       static bool is_running(QApplication&) noexcept { return false; }
//       static EventLoopID event_loop_id(QApplication& app) { return EventLoopID(&app); }
//       // optional; with both, the loop is a full home
//       static void post(QApplication&, void (*fn)(void*), void* context);             // any thread
//       static void call_at(QApplication&, std::chrono::steady_clock::time_point when,
//                           void (*fn)(void*), void* context);
//       // optional, see below
//       static void take_back(QApplication&, void* call) noexcept;
//       static void restart(QApplication&);
//       class Session;
//     };
//     int main(int argc, char** argv) { QApplication app(argc, argv); return run(app, async_main()); }
//
// With post, whatever a callback of that loop makes ready runs in a callback of its own, soon after.
//
// The first four suffice. weft then never learns when a callback ends, so:
//
//   - A callback that resumes a task (a coroutine handle that weft gave out, or a callback of
//     until_callback()) has it run there and then: on the callback's stack, before the resume
//     returns, with all that becomes ready by it. The callback should have nothing left to do.
//   - If that happens inside of a task, in a nested event loop for instance, the resume only makes
//     ready. The outermost resume runs it later: tasks do not run inside tasks (L2).
//   - A callback that starts or cancels tasks, without resuming one, has weft stop() the loop, and
//     run() it again when the outermost callback has ended; in between, the work is done.
//   - What needs more fails with a message: other threads, or other loops, cannot resume or cancel
//     a task of that loop, nor can tasks come from there or go there (core/moving.h); that wants
//     post. Sleeping wants call_at.
//
// An outstanding call may outlive the run(); it then does nothing. But it must come, or its record
// on the heap leaks: a loop that ends calls what it was given.
//
// take_back    call_at then returns a void*, and a timer that is not needed any more (a timeout that
//              did not run out) leaves the loop at once: after take_back(call) it is not called.
// restart      someone else has stopped the loop, or run() has thrown: makes it fit for one more
//              run(). weft then cancels the tasks and runs the loop until they have ended, so that
//              they may wait for its callbacks in their end (L12). Without it they must end with
//              what can run at once, or the process does.
// Session      what weft needs on this loop for the time of one run(). Built from an L&; the other
//              functions then take a Session&, but for is_running() and event_loop_id().
//
// Errors         what Traits::run() throws (a callback of the loop has thrown) cancels the tasks,
//                and is rethrown when they have ended.
//
// is_running() and event_loop_id() serve to refuse a run() inside a run() of the same loop. A run()
// of another loop inside is allowed: it blocks the outer one.
#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "weft/core/run.h"

namespace weft::inline v0 {

// Tells event loops apart.
class EventLoopID {
 public:
  explicit EventLoopID(const void* loop) noexcept : id_(loop) {}
  friend bool operator==(EventLoopID, EventLoopID) = default;

 private:
  const void* id_;
};

template <class L>
struct EventLoopTraits;

namespace detail {

template <class L>
struct SeatOf {
  using type = L&;
};
template <class L>
  requires requires { typename EventLoopTraits<L>::Session; }
struct SeatOf<L> {
  using type = typename EventLoopTraits<L>::Session;
};
// What the functions of the traits take: the loop, or the session of this run().
template <class L>
using Seat = typename SeatOf<L>::type;

template <class L>
concept HasPost = requires(Seat<L>& loop, void (*fn)(void*), void* context) {
  EventLoopTraits<L>::post(loop, fn, context);
};
template <class L>
concept HasCallAt =
    requires(Seat<L>& loop, std::chrono::steady_clock::time_point when, void (*fn)(void*),
             void* context) { EventLoopTraits<L>::call_at(loop, when, fn, context); };
template <class L>
concept HasTakeBack =
    requires(Seat<L>& loop, void* call) { EventLoopTraits<L>::take_back(loop, call); };
template <class L>
concept HasRestart = requires(Seat<L>& loop) { EventLoopTraits<L>::restart(loop); };

}  // namespace detail

template <class L>
concept ForeignEventLoop = requires(L& loop, detail::Seat<L>& seat) {
  EventLoopTraits<L>::run(seat);
  EventLoopTraits<L>::stop(seat);
  { EventLoopTraits<L>::is_running(loop) } -> std::convertible_to<bool>;
  { EventLoopTraits<L>::event_loop_id(loop) } -> std::same_as<EventLoopID>;
};

namespace detail {

// An Executor whose turns are driven by callbacks of some other loop.
class ForeignExecutor : public Loop {
 public:
  ForeignExecutor(const ForeignExecutor&) = delete;
  ForeignExecutor& operator=(const ForeignExecutor&) = delete;

  [[nodiscard]] std::int64_t now_ns() const override;
  // One small record on the heap per timer, because the loop may be unable to take it back.
  void arm_timer(TimerNode& timer, std::int64_t deadline_ns) override;
  void disarm_timer(TimerNode& timer) noexcept override;
  void drive(RootWaiter& root) final;

 protected:
  using Callback = void (*)(void*);

  ForeignExecutor(EventLoopID id, bool takes_posts);
  ~ForeignExecutor() override;

  virtual void run_loop() = 0;
  virtual void stop_loop() = 0;
  // Has the loop call fn(context) soon; any thread. Returns: false if it cannot.
  virtual bool call_soon(Callback fn, void* context) = 0;
  // Has the loop call fn(context) at a time. Returns: false if it cannot; `call` is what
  // take_back() wants.
  virtual bool call_at(std::int64_t when_ns, Callback fn, void* context, void*& call) = 0;
  // Returns: true if it will not be called.
  virtual bool take_back(void* call) noexcept = 0;
  // The loop was stopped from outside. Returns: false if it cannot run again.
  virtual bool restart_loop() = 0;

 private:
  class Attached;
  struct Link;       // from a callback under way to the executor, which may have gone
  struct TimerCall;  // the same for a timer

  // Something was posted while the loop had nothing to do.
  void woken() noexcept;
  void work_came() noexcept override;
  // Returns: false if the loop cannot be asked.
  bool drain_soon();
  // The loop has ended before the tasks. Returns: when they have, too.
  void end_tasks();
  // Runs what can run now.
  void drain();
  [[nodiscard]] bool over() noexcept;
  static void drain_called(void* context);
  static void timer_called(void* context);

  EventLoopID id_;
  ForeignExecutor* outer_;  // the run() around this one, in this thread
  std::shared_ptr<Link> link_;
  RootWaiter* root_ = nullptr;
  bool draining_ = false;
  bool interrupted_ = false;  // the loop was stopped to come back here, and runs again
  bool ending_ = false;       // someone else stopped the loop: it calls back no more
};

template <class L>
class ForeignExecutorOf final : public ForeignExecutor {
  using Traits = EventLoopTraits<L>;

 public:
  explicit ForeignExecutorOf(L& loop)
      : ForeignExecutor(Traits::event_loop_id(loop), HasPost<L>), loop_(loop) {}

 private:
  void run_loop() override { Traits::run(loop_); }
  void stop_loop() override { Traits::stop(loop_); }
  bool call_soon([[maybe_unused]] Callback fn, [[maybe_unused]] void* context) override {
    if constexpr (HasPost<L>) Traits::post(loop_, fn, context);
    return HasPost<L>;
  }
  bool call_at([[maybe_unused]] std::int64_t when_ns, [[maybe_unused]] Callback fn,
               [[maybe_unused]] void* context, [[maybe_unused]] void*& call) override {
    if constexpr (HasCallAt<L>) {
      std::chrono::steady_clock::time_point when{std::chrono::nanoseconds(when_ns)};
      if constexpr (HasTakeBack<L>) {
        call = Traits::call_at(loop_, when, fn, context);
      } else {
        Traits::call_at(loop_, when, fn, context);
      }
    }
    return HasCallAt<L>;
  }
  bool take_back([[maybe_unused]] void* call) noexcept override {
    if constexpr (HasTakeBack<L>) Traits::take_back(loop_, call);
    return HasTakeBack<L>;
  }
  bool restart_loop() override {
    if constexpr (HasRestart<L>) Traits::restart(loop_);
    return HasRestart<L>;
  }

  Seat<L> loop_;
};

}  // namespace detail

template <class L, class A>
  requires(ForeignEventLoop<L> && Awaitable<A>)
AwaitResult<A> run(L& loop, A&& awaitable) {
  if (EventLoopTraits<L>::is_running(loop)) {
    detail::throw_usage_error(
        "this event loop runs already: inside a task, await instead of calling run() on it");
  }
  detail::ForeignExecutorOf<L> executor(loop);
  return run(static_cast<Loop&>(executor), std::forward<A>(awaitable));
}

}  // namespace weft::inline v0
