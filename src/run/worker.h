// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Worker: one event loop of an IOContext: its queue of fresh tasks, the scope that they
// become children of, and what it does when it has nothing to do.
//
// Threads        queue, and what says so: any. Everything else: the thread that drives the loop.
//
// Invariants
//   W1  searching_ exactly while it is counted so in IdleWorkers.
//   W2  it is on the list of the parked only inside of idle().
//   W3  wake_ is under way from the moment somebody took it off that list until it has run; so it is
//       posted once at a time.
#include <cstdint>
#include <future>
#include <optional>
#include <string>

#include "root_nursery.h"
#include "weft/run/event_loop.h"
#include "weft/run/idle_workers.h"
#include "weft/run/io_context.h"
#include "weft/run/task_queue.h"

namespace weft::inline v0::detail {

class Worker : public IdleWorker {
 public:
  Worker(IOContext& context, unsigned index, const EventLoopOptions& options);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  EventLoop loop;
  TaskQueue queue;

  // --- Any thread ---------------------------------------------------------------------------------

  // Somebody took it off the list of the parked (W3).
  void wake_to_search() noexcept;
  // Posts a request that this worker stops its scope, or that it leaves when it has nothing left.
  // Each at most once per run().
  void ask_to_stop() noexcept;
  void ask_to_leave() noexcept;
  void ask_for_tree() noexcept;

  // --- Its own thread -----------------------------------------------------------------------------

  void expect_opening() noexcept { opening_ = true; }  // before the RunGuard
  void open();                                         // begins a run()
  void drive();                                        // until asked to leave, and all is gone
  void closed() noexcept;                              // ends it
  // All of that, on a thread of its own. Others may send here when it has opened; it sends to others
  // when all have.
  void run(std::promise<void>& opened, std::shared_future<void> all_opened);

  // Fresh tasks of its own queue become strands: one, or a few where others are ready before them.
  // Returns: whether there were any.
  bool take_own();
  // Those that have ended since are told to the context.
  void count_ended() noexcept;
  // Nothing is ready: searches, or sleeps.
  void idle();
  void stop_here() noexcept;
  void leave_here() noexcept;
  // It is about to be driven by its context.
  [[nodiscard]] bool is_opening() const noexcept { return opening_; }
  // It has other things to do: somebody else may search.
  void is_busy() {
    if (searching_) found_work();
  }
  // Nothing holds it any more; not even a wake-up that is under way (W3).
  [[nodiscard]] bool has_left() noexcept {
    return leaving_ && root_->completed() && !wake_under_way_;
  }
  [[nodiscard]] std::string tree();
  void log_tree() noexcept;

  // --- Once, before all that ----------------------------------------------------------------------

  void belong_to(const void* group, const LoopServices& services);
  // Destroys tasks that nobody will run.
  static void discard(TaskQueue& queue);
  [[nodiscard]] IOContext& context() noexcept { return context_; }

  [[nodiscard]] IOContext::WorkerStatistics statistics();

 private:
  struct Request : Runnable {
    Request(Worker& of, void (*fn)(Runnable&) noexcept) noexcept : Runnable(fn), worker(&of) {}
    Worker* worker;
  };

  static constexpr std::size_t kFreshPerTurn = 64;
  static constexpr std::size_t kStolenAtOnce = 32;
  // A task that crosses to another core costs about this, there and back: one that its worker takes
  // sooner is not worth stealing.
  static constexpr std::int64_t kWorthStealingNs = 100;
  enum class Search { found, nothing, not_worth_it };

  void adopt(FreshNode& node) noexcept;
  Search search();
  [[nodiscard]] static bool serves_itself(const TaskQueue& queue) noexcept;
  void found_work();
  [[nodiscard]] bool sleep();

  IOContext& context_;
  const unsigned index_;
  bool searching_ = false;
  bool wake_under_way_ = false;
  bool leaving_ = false;
  bool opening_ = false;
  bool has_stolen_ = false;  // and not run it yet
  std::uint32_t random_;
  Request wake_, stop_, leave_, draw_;
  std::optional<RootNursery> root_;
  std::uint64_t entered_ = 0;  // fresh tasks that became strands here
  std::uint64_t stolen_ = 0;
  std::uint64_t roots_ = 0;    // of those entered in this run(): children of root_
  std::uint64_t counted_ = 0;  // of those: ended, and the context knows
};

}  // namespace weft::inline v0::detail
