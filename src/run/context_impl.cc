// SPDX-License-Identifier: MIT
#include "context_impl.h"

#include <pthread.h>

#include <csignal>
#include <future>
#include <string>
#include <utility>

#include "affinity.h"
#include "step.h"
#include "weft/base/assert.h"
#include "weft/base/log.h"

namespace weft::inline v0 {

using detail::CaughtError;
using detail::Frame;
using detail::FreshNode;
using detail::RootWaiter;
using detail::Strand;
using detail::Worker;

namespace {

IOContextOptions checked(IOContextOptions options) {
  if (options.workers == 0) options.workers = detail::processors_allowed();
  if (options.workers > IOContext::kWorkersMax) {
    throw UsageError("an IOContext has at most kWorkersMax workers, and " +
                     std::to_string(options.workers) + " were asked for");
  }
  return options;
}

}  // namespace

IOContext::Impl::Impl(IOContext& context, IOContextOptions given)
    : options(checked(std::move(given))), blocking_(options.blocking) {
  Driver driver = choose_driver(options.driver);
  for (unsigned i = 0; i < options.workers; ++i) {
    workers.push_back(std::make_unique<Worker>(
        context, i, EventLoopOptions{.driver = driver, .spin = options.spin}));
    Worker& worker = *workers.back();
    worker.belong_to(this, {.blocking = &blocking_,
                            .context = &context,
                            .event_loop = &worker.loop,
                            .schedule = &schedule_child});
  }
  warn_timer_.context = this;
  warn_timer_.fire = [](detail::TimerNode& timer) noexcept {
    static_cast<WarnTimer&>(timer).context->warn();
  };
}

IOContext::Impl::~Impl() {
  workers.clear();
  Worker::discard(next_run);
}

// --- Scheduling ---------------------------------------------------------------------------------

void IOContext::Impl::schedule_root(Strand& fresh) {
  live_.fetch_add(1, detail::relaxed);  // C1; whoever ends it comes after, by way of the queue
  Executor* here = Executor::current_or_null();
  if (here && here->port().group == this) {
    schedule_child(*here, fresh);
  } else {
    place_elsewhere(fresh.fresh);
  }
}

void IOContext::Impl::schedule_child(Executor& from, Strand& fresh) noexcept {
  Worker& worker = *static_cast<EventLoop&>(from).worker_;
  worker.queue.push(fresh.fresh);
  worker.context().impl_->notify();
}

// To a worker that sleeps, or else to each in turn.
void IOContext::Impl::place_elsewhere(FreshNode& node) {
  if (detail::IdleWorker* parked = idle.notify()) {
    auto& worker = static_cast<Worker&>(*parked);
    worker.queue.push(node);
    worker.wake_to_search();
    return;
  }
  unsigned turn = next_worker_.fetch_add(1, detail::relaxed);
  workers[turn % workers.size()]->queue.push(node);
  notify();
}

void IOContext::Impl::notify() {
  if (detail::IdleWorker* parked = idle.notify()) static_cast<Worker*>(parked)->wake_to_search();
}

bool IOContext::Impl::any_fresh() const noexcept {
  for (auto& worker : workers) {
    if (!worker->queue.looks_empty()) return true;
  }
  return false;
}

void IOContext::Impl::roots_ended(std::uint64_t count) noexcept {
  auto ended = static_cast<std::int64_t>(count);
  if (live_.fetch_sub(ended, detail::seq_cst) == ended && winding_down_.load(detail::seq_cst)) {
    workers.front()->loop.wake();  // C3
  }
}

void IOContext::Impl::root_failed(void* self, const CaughtError& error) noexcept {
  auto& impl = *static_cast<Impl*>(self);
  CaughtError kept = error;
  if (impl.options.on_error) {
    try {
      impl.options.on_error(error.first());
      return;
    } catch (...) {
      kept = CaughtError::alone(std::current_exception());
    }
  }
  {
    std::lock_guard lock(impl.errors_mutex_);
    impl.errors_.add(kept);
  }
  impl.stop();
}

CaughtError IOContext::Impl::take_errors() noexcept {
  std::lock_guard lock(errors_mutex_);
  return std::exchange(errors_, {});
}

// Also in a signal handler: two lock-free operations and a write().
void IOContext::Impl::stop() noexcept {
  stop_asked_.store(true, detail::release);
  workers.front()->loop.wake();
}

PromiseChildLease IOContext::Impl::lease() {
  std::lock_guard lock(scope_mutex_);
  if (!scope_lease_) {
    detail::throw_usage_error(
        "IOContext::lease(): the context does not run, or its main task has ended; schedule() "
        "works "
        "at any time");
  }
  return *scope_lease_;
}

// --- run() --------------------------------------------------------------------------------------

void IOContext::Impl::run(Frame& main, RootWaiter& root) {
  Worker& first = *workers.front();
  struct Owned {  // until it is a strand
    Frame* frame;
    ~Owned() {
      if (frame) frame->handle().destroy();
    }
  } owned{&main};
  first.expect_opening();
  RunGuard guard(first.loop);
  detail::DrivingScope driving(first.loop);
  stopping_ = was_stopped_ = scope_released_ = left_ = false;
  winding_down_.store(false, detail::relaxed);
  live_.fetch_and(~kLeaving, detail::relaxed);
  // What came while the last run() ended. One place will do: they are taken from there.
  auto requeue = [&](FreshNode& node) { first.queue.push(node); };
  while (next_run.take(SIZE_MAX, requeue) == TaskQueue::Taken::some) {
  }
  detail::StopSignals signals(options.stop_on_signals, first.loop.wake_fd_.get());
  signals_ = &signals;
  first.open();
  cpu_set_t processors = detail::processors_of_this_thread();
  try {
    open_threads(processors);
  } catch (...) {
    first.leave_here();
    first.drive();
    throw;
  }
  detail::Pinned pinned(options.pin_threads, 0, processors);  // last: threads inherit it
  {
    std::lock_guard lock(scope_mutex_);
    scope_.emplace(&root_failed, this);
    scope_->open_here();
    scope_lease_ = scope_->lease();
  }
  owned.frame = nullptr;
  bool doomed = stop_asked_.load(detail::acquire);
  root.strand = main_strand = &CancellationRuntime::start_here(
      main, nullptr, {.waiter = &root, .cancelled = doomed ? &reasons::context_stopped : nullptr});
  drive_first(root);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  main_strand = nullptr;
  scope_.reset();
  stop_asked_.store(false, detail::relaxed);  // this run() has answered it
}

void IOContext::Impl::open_threads(const cpu_set_t& processors) {
  sigset_t all, before;
  sigfillset(&all);
  std::vector<std::future<void>> opened;
  std::promise<void> all_opened;
  std::shared_future<void> wait_for_all = all_opened.get_future().share();
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::exception_ptr failed;
  try {
    for (std::size_t i = 1; i < workers.size(); ++i) {
      std::promise<void> promise;
      opened.push_back(promise.get_future());
      threads_.emplace_back(
          [this, i, wait_for_all, processors, promise = std::move(promise)]() mutable {
            Worker& worker = *workers[i];
            detail::Pinned pinned(options.pin_threads, static_cast<unsigned>(i), processors);
            worker.run(promise, std::move(wait_for_all));
          });
    }
  } catch (...) {
    failed = std::current_exception();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::vector<std::size_t> running;
  for (std::size_t i = 0; i < opened.size(); ++i) {
    try {
      opened[i].get();
      running.push_back(i + 1);
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  }
  all_opened.set_value();
  if (!failed) return;
  live_.fetch_or(kLeaving, detail::relaxed);
  for (std::size_t i : running) workers[i]->ask_to_leave();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  std::rethrow_exception(failed);
}

void IOContext::Impl::drive_first(RootWaiter& root) {
  Worker& first = *workers.front();
  for (;;) {
    decide(root);
    if (left_ && first.has_left() && first.loop.try_close()) break;
    first.loop.step([&] {
      return has_to_decide(root) || (left_ && first.has_left() && first.loop.has_no_strands());
    });
  }
  first.closed();
  first.loop.disarm_timer(warn_timer_);
}

bool IOContext::Impl::has_to_decide(RootWaiter& root) noexcept {
  if (has_to_stop()) return true;
  if (!root.done || left_) return false;
  if (!scope_released_) return true;
  return scope_->completed() && live_.load(detail::seq_cst) == 0;
}

void IOContext::Impl::decide(RootWaiter& root) noexcept {
  if (root.done) main_strand = nullptr;
  if (has_to_stop()) begin_stop(reasons::context_stopped);
  if (!root.done || left_) return;
  if (!scope_released_) {
    bool failed = root.strand->ended().kind != detail::OutcomeKind::value;
    if (failed && !stopping_) begin_stop(reasons::parent_failed);  // L9
    {
      std::lock_guard lock(scope_mutex_);
      scope_lease_.reset();
    }
    scope_released_ = true;
    scope_->release();
    winding_down_.store(true, detail::seq_cst);  // C3
  }
  if (!scope_->completed()) return;
  std::int64_t none = 0;
  if (live_.compare_exchange_strong(none, kLeaving, detail::seq_cst, detail::seq_cst)) leave();
}

void IOContext::Impl::begin_stop(const CancelReason& reason) noexcept {
  stopping_ = true;
  was_stopped_ = &reason == &reasons::context_stopped;
  Worker& first = *workers.front();
  if (main_strand) CancellationRuntime::cancel(*main_strand, reason);
  scope_->cancel_all(reason);
  first.stop_here();
  for (std::size_t i = 1; i < workers.size(); ++i) workers[i]->ask_to_stop();
  std::int64_t now = first.loop.now_ns(), wait = options.shutdown_warn.count();
  first.loop.arm_timer(warn_timer_, wait < INT64_MAX - now ? now + wait : INT64_MAX);
}

void IOContext::Impl::leave() noexcept {
  left_ = true;  // C2
  workers.front()->leave_here();
  for (std::size_t i = 1; i < workers.size(); ++i) workers[i]->ask_to_leave();
}

// L12: whoever does not end is named.
void IOContext::Impl::warn() noexcept {
  log(LogLevel::warning,
      "weft: stop() waits for tasks that have not ended yet: a blocking() that ignores its "
      "StopToken, a shield, or a wait that cannot be cancelled. What is left:");
  workers.front()->log_tree();
  for (std::size_t i = 1; i < workers.size(); ++i) workers[i]->ask_for_tree();
}

}  // namespace weft::inline v0
