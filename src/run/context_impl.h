// SPDX-License-Identifier: MIT
#pragma once
// weft::IOContext::Impl: what the workers share.
//
// Threads        what the workers and posters touch is atomic, or has its lock; the rest belongs to
//                the thread that calls run().
//
// Invariants
//   C1  live_ counts the tasks that were given to schedule() and have not ended; one that has may be
//       counted until its worker's turn is over.
//   C2  a run() asks its workers to leave when main has ended, the scope is completed and live_ is 0,
//       which becomes kLeaving by the same step: then nothing of this context's own is left that
//       could schedule, start or send anything, and what others schedule waits for the next run().
//   C3  who makes live_ 0 after main has ended wakes worker 0: winding_down_ and live_ are written by
//       the one and read by the other, in opposite order, seq_cst.
#include <sched.h>

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "root_nursery.h"
#include "signal_registry.h"
#include "weft/core/caught_error.h"
#include "weft/run/idle_workers.h"
#include "weft/run/io_context.h"
#include "worker.h"

namespace weft::inline v0 {

class IOContext::Impl {
 public:
  Impl(IOContext& context, IOContextOptions given);
  ~Impl();

  // --- Any thread ---------------------------------------------------------------------------------

  // Takes a root: a task without a parent.
  void schedule_root(detail::Strand& fresh);
  // From a task of the worker `from`: into its own queue.
  static void schedule_child(Executor& from, detail::Strand& fresh) noexcept;
  // A task was added to a queue.
  void notify();
  [[nodiscard]] bool any_fresh() const noexcept;
  void roots_ended(std::uint64_t count) noexcept;
  // Whether roots that are in a queue now are for the next run(). relaxed: whoever was given such a
  // root was given this with it, by the queue.
  [[nodiscard]] bool is_leaving() const noexcept { return live_.load(detail::relaxed) & kLeaving; }
  static void root_failed(void* self, const detail::CaughtError& error) noexcept;
  void stop() noexcept;
  [[nodiscard]] PromiseChildLease lease();

  // --- run() --------------------------------------------------------------------------------------

  void run(detail::Frame& main, detail::RootWaiter& root);
  [[nodiscard]] detail::CaughtError take_errors() noexcept;
  [[nodiscard]] bool was_stopped() const noexcept { return was_stopped_; }

  const IOContextOptions options;
  std::vector<std::unique_ptr<detail::Worker>> workers;
  detail::IdleWorkers idle;
  TaskQueue next_run;                     // roots that came while a run() ended (C2)
  detail::Strand* main_strand = nullptr;  // worker 0

 private:
  void place_elsewhere(detail::FreshNode& node);
  void open_threads(const cpu_set_t& processors);
  void drive_first(detail::RootWaiter& root);
  // What run() has to decide now: done here, on worker 0, between two turns.
  [[nodiscard]] bool has_to_decide(detail::RootWaiter& root) noexcept;
  void decide(detail::RootWaiter& root) noexcept;
  [[nodiscard]] bool has_to_stop() const noexcept {
    return !stopping_ && (stop_asked_.load(detail::acquire) || signals_->asked());
  }
  void begin_stop(const CancelReason& reason) noexcept;
  void leave() noexcept;

  struct WarnTimer : detail::TimerNode {
    Impl* context = nullptr;
  };
  void warn() noexcept;

  static constexpr std::int64_t kLeaving = std::int64_t{1} << 62;

  BlockingPool blocking_;
  detail::Atomic<std::int64_t> live_{0};
  detail::Atomic<bool> winding_down_{false};
  detail::Atomic<bool> stop_asked_{false};
  detail::Atomic<unsigned> next_worker_{0};

  std::mutex errors_mutex_;
  detail::CaughtError errors_;

  std::mutex scope_mutex_;  // lease() against the opening and closing of scope_
  std::optional<detail::RootNursery> scope_;
  std::optional<PromiseChildLease> scope_lease_;

  const detail::StopSignals* signals_ = nullptr;  // of this run()
  std::vector<std::thread> threads_;
  bool stopping_ = false;
  bool was_stopped_ = false;  // stop() was answered by this run()
  bool scope_released_ = false;
  bool left_ = false;
  WarnTimer warn_timer_;
};

}  // namespace weft::inline v0
