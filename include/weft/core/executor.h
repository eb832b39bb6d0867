// SPDX-License-Identifier: MIT
#pragma once
// weft::Executor: runs the strands of one event loop. Every loop owns one; a strand's home is an
// Executor.
//
// It has no thread and does not wait for anything: a loop calls turn() whenever it may have work,
// and sleeps by its own means. A turn is: what other threads sent, then every kick, then the ready
// ring, with kicks going first whenever there are some (so every await_cancel of one cancel runs
// before any task does).
//
// Strands come from other loops, too (core/moving.h), and end there or go on. Those that belong to
// the tree of another loop are this loop's guests; it keeps a list of them, so that it can end.
//
// Threads        post(), home() and takes_posts(): any thread. Everything else: the thread that
//                drives the loop.
// Allocation     none; a table of guests grows with their number, by doubling.
//
// Writing a loop: derive, say what time it is, arm timers (or leave them refused), and have `wake`
// called when another thread sent something. See testing/virtual_loop.h and testing/thread_loop.h.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weft/core/held_lock.h"
#include "weft/core/inbox.h"
#include "weft/core/loop_port.h"
#include "weft/core/strand.h"
#include "weft/core/timer_node.h"

namespace weft::inline v0 {

class BlockingPool;
class EventLoop;
class Executor;
class IOContext;
class PlatformIO;

namespace detail {
class ErrorBook;
class GuestBook;
}  // namespace detail

// What a loop offers beside tasks and timers. The rooms io/ and run/ know what these are.
struct LoopServices {
  PlatformIO* io = nullptr;          // null: no I/O on this loop
  BlockingPool* blocking = nullptr;  // null: the process's own
  IOContext* context = nullptr;      // null: the loop is nobody's worker
  EventLoop* event_loop = nullptr;   // null: another kind
  // Takes a fresh strand for any worker to start. Null: the loop is nobody's worker.
  void (*schedule)(Executor& from, detail::Strand& fresh) noexcept = nullptr;
};

// Work for a loop: intrusive, no allocation. Stays alive until run was called.
struct Runnable : detail::PostNode {
  explicit Runnable(void (*fn)(Runnable&) noexcept) noexcept : run(fn) {}
  void (*run)(Runnable&) noexcept;
};

class Executor {
 public:
  static constexpr std::size_t kTurnBudget =
      1024;  // ready entries per turn, so that I/O and timers get theirs

  // takes_posts: other threads can wake it. Without that, no strand comes from another loop or goes
  // to one.
  explicit Executor(bool takes_posts = true);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor();

  // The executor whose loop this thread drives now.
  [[nodiscard]] static Executor* current_or_null() noexcept;
  // The same, or UsageError with `what` ("sleep_for()") and the way out.
  [[nodiscard]] static Executor& current(const char* what);

  // Any thread. Returns: false if the loop is closed, because it has ended or its run() has; then
  // the runnable was not taken.
  bool post(Runnable& work) noexcept;
  // The same for the thread that drives the loop, behind what is ready: no atomic operation.
  void post_here(Runnable& work) noexcept {
    ready_.push(detail::PostEntry(work, detail::PostKind::runnable));
    if (tells_) [[unlikely]]
      told_of_work();
  }
  [[nodiscard]] bool takes_posts() const noexcept { return takes_posts_; }

  [[nodiscard]] detail::HomeIndex home() const noexcept { return home_; }
  [[nodiscard]] bool is_current() const noexcept { return current_or_null() == this; }

  // Runs fn and, before it returns, everything that fn made ready: also in the middle of another
  // task's step. Seed 002's way out, and one of the two stated exceptions to L2. If fn throws, that
  // waits for its turn like anything else, and so does the calling task itself, if it is made ready.
  template <class Fn>
  void capture(Fn&& fn) {
    take_inbox();  // what was sent before is not fn's
    detail::PostChain outer = std::exchange(ready_, {});
    try {
      fn();
    } catch (...) {
      put_back(outer);
      throw;
    }
    run_captured(outer);
  }

  // The loop's clock, in nanoseconds. Its origin is the loop's own.
  [[nodiscard]] virtual std::int64_t now_ns() const = 0;
  // The time, asked for at most once a turn: what a loop stamps on events.
  [[nodiscard]] std::int64_t turn_ns() {
    if (turn_ns_ == kNotAsked) turn_ns_ = now_ns();
    return turn_ns_;
  }
  // The same clock, some milliseconds late, where that is cheaper: to say how long something takes.
  [[nodiscard]] virtual std::int64_t coarse_ns() const { return now_ns(); }
  [[nodiscard]] std::int64_t coarse_turn_ns() {
    if (coarse_turn_ns_ == kNotAsked) coarse_turn_ns_ = coarse_ns();
    return coarse_turn_ns_;
  }
  // Requires: `timer` is not armed. The default refuses: this loop has no timers.
  virtual void arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns);
  virtual void disarm_timer(detail::TimerNode& timer) noexcept;

  [[nodiscard]] const LoopServices& services() const noexcept { return services_; }

  // Strands whose home is this loop, husks included. The loop may end when there are none.
  [[nodiscard]] std::size_t strand_count() const noexcept { return strands_; }
  // None here, and none under way to here.
  [[nodiscard]] bool has_no_strands() const noexcept {
    return strands_ == 0 && port_->arrivals.none();
  }

#ifdef WEFT_AWAITABLE_STATE_DEBUG
  [[nodiscard]] detail::HeldLocks& held_locks() noexcept { return held_locks_; }
#endif

  // Ready entries run since the loop was made.
  [[nodiscard]] std::uint64_t entries_run() const noexcept { return entries_run_; }

  // One turn: at most `budget` entries, in batches of what is ready at once, with what other threads
  // sent between them. Returns: true if ready entries are left.
  bool turn(std::size_t budget = kTurnBudget);
  [[nodiscard]] bool has_ready() const noexcept { return !ready_.empty() || !kicks_.empty(); }
  [[nodiscard]] detail::LoopPort& port() noexcept { return *port_; }

  // Picks the next ready entry among the first kShuffleWindow, by this generator's state. 0: first
  // in, first out.
  static constexpr unsigned kShuffleWindow = 16;
  void shuffle(std::uint64_t seed) noexcept { shuffle_ = seed; }

 protected:
  // A loop that has something to look at between two batches (armed timers, I/O) says so, and a
  // turn is then one batch: so a task that yields lets them through (L2). Without, a turn goes on
  // until its budget is used up.
  void interleave(bool wanted) noexcept { interleave_ = wanted; }

  // Cancels every strand that belongs to a tree of another loop.
  void cancel_guests(const CancelReason& reason) noexcept;
  // From now on posts return false. What was sent before is run; kicks that are not for this loop
  // any more go on to where they are.
  void close_inbox() noexcept;

  void offer(const LoopServices& services) noexcept { services_ = services; }

  // For loops whose turns are called by someone else: from tell_of_work(true) to the next turn,
  // work_came() is called once if something is made ready on this thread, outside of any turn: a
  // callback has started or cancelled a task. It must not run anything on the spot (L2).
  void tell_of_work(bool yes) noexcept { tells_ = yes; }
  virtual void work_came() noexcept {}

 private:
  friend struct CancellationRuntime;

  // Posts an entry to another loop, which does not end before it has come: at the end of this turn,
  // with all others that go there, or at once outside of one.
  void post_soon(detail::HomeIndex home, detail::PostEntry entry) noexcept;
  void flush_posts() noexcept;

  void told_of_work() noexcept {
    tells_ = false;
    work_came();
  }
  // A task whose step calls capture().
  struct Capturing {
    detail::Strand* strand;
    Capturing* outer;
  };

  void take_inbox() noexcept;
  void run_kicks() noexcept;
  void run_entry(detail::PostEntry entry) noexcept;
  std::size_t run_batch(std::size_t left) noexcept;
  std::size_t run_shuffled(std::size_t left) noexcept;
  detail::PostEntry pop_ready() noexcept;
  void run_captured(detail::PostChain& outer);
  [[nodiscard]] bool is_on_the_stack(detail::PostEntry entry) const noexcept;
  // Ahead of what is ready now.
  void put_back(detail::PostChain& outer) noexcept;

  detail::PostChain ready_;
  detail::PostChain kicks_;
  bool tells_ = false;  // tell_of_work()
  bool in_turn_ = false;
  detail::HomeIndex soon_home_ = 0;  // post_soon(): for whom
  detail::PostStack soon_;
  std::size_t strands_ = 0;
  std::uint64_t entries_run_ = 0;
  static constexpr std::int64_t kNotAsked = INT64_MIN;
  std::int64_t turn_ns_ = kNotAsked;
  std::int64_t coarse_turn_ns_ = kNotAsked;
  std::uint64_t shuffle_ = 0;
  bool interleave_ = true;
  Capturing* capturing_ = nullptr;
  detail::HomeIndex home_ = 0;
  detail::LoopPort* port_ = nullptr;           // its home's
  std::unique_ptr<detail::ErrorBook> errors_;  // of scopes of this loop whose children failed
  std::unique_ptr<detail::GuestBook> guests_;
  LoopServices services_;
#ifdef WEFT_AWAITABLE_STATE_DEBUG
  detail::HeldLocks held_locks_;
#endif
  const bool takes_posts_;
};

namespace detail {

// Makes an executor current while a loop drives it.
class DrivingScope {
 public:
  explicit DrivingScope(Executor& executor) noexcept;
  ~DrivingScope();
  DrivingScope(const DrivingScope&) = delete;
  DrivingScope& operator=(const DrivingScope&) = delete;

 private:
  Executor* outer_;
  Strand* outer_running_;
};

}  // namespace detail

}  // namespace weft::inline v0
