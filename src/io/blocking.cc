// SPDX-License-Identifier: MIT
#include "weft/io/blocking.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "weft/base/assert.h"
#include "weft/core/loop_port.h"

namespace weft::inline v0 {

using detail::BlockingJob;

// Invariants
//   B1  a job is queued, runs, or is nobody's business here any more.
//   B2  a thread that leaves by itself is on ended_ and is joined by whoever comes next.
class BlockingPool::Threads {
 public:
  explicit Threads(Options options) : options_(options) {
    if (options.threads_max == 0) detail::throw_usage_error("threads_max is at least 1");
    options_.idle = std::min(options_.idle, kIdleMax);
    CPU_ZERO(&processors_);
    ::sched_getaffinity(0, sizeof processors_, &processors_);
  }
  ~Threads() {
    Ended all;
    {
      std::unique_lock lock(mutex_);
      // A thread that has posted its last job may not be idle yet: it is waited for.
      WEFT_ASSERT(!first_, "L12: a BlockingPool ends after all its work");
      ending_ = true;
      work_came_.notify_all();
      all_gone_.wait(lock, [&] { return running_ == 0; });
      all.threads.swap(ended_);
    }
  }

  void submit(BlockingJob& job) {
    Ended ended;
    {
      std::lock_guard lock(mutex_);
      if (queued_ >= options_.queue_max) {
        throw UsageError("the BlockingPool's queue is full: " + std::to_string(queued_) +
                         " jobs wait for " + std::to_string(running_) +
                         " threads (threads_max, queue_max)");
      }
      ended.threads.swap(ended_);
      push(job);
      if (idle_ > waking_) {
        ++waking_;
        work_came_.notify_one();
      } else if (running_ < options_.threads_max) {
        add_thread(job);
      }
    }
  }
  // Joins those that have left.
  void reap() noexcept {
    Ended ended;
    std::lock_guard lock(mutex_);
    ended.threads.swap(ended_);
  }

  bool withdraw(BlockingJob& job) noexcept {
    std::lock_guard lock(mutex_);
    if (!job.queued) return false;
    remove(job);
    return true;
  }

  Statistics statistics() const {
    std::lock_guard lock(mutex_);
    return {.threads = running_, .idle = idle_, .queued = queued_, .done = done_};
  }

 private:
  static constexpr std::chrono::milliseconds kIdleMax = std::chrono::hours(24 * 365);

  // Joins them when it goes: declare it before the lock.
  struct Ended {
    std::vector<std::thread> threads;
    ~Ended() {
      for (std::thread& each : threads) each.join();
    }
  };

  // Requires: the lock; `job` is queued.
  void add_thread(BlockingJob& job) {
    // Signals are for the threads that asked for them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      ended_.reserve(threads_.size() + ended_.size() + 1);  // for leave()
      threads_.emplace_back([this] { run(); });
      ++running_;
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      if (running_ > 0) return;  // it waits its turn
      remove(job);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run() noexcept {
    // A thread inherits the processors of its maker, which may be a pinned worker.
    ::sched_setaffinity(0, sizeof processors_, &processors_);
    std::unique_lock lock(mutex_);
    for (;;) {
      if (first_) {
        BlockingJob& job = *first_;
        remove(job);
        lock.unlock();
        detail::HomeIndex home = job.home;
        job.work(job);
        bool posted =
            detail::port_at(home).post(detail::PostEntry(job, detail::PostKind::runnable));
        WEFT_ASSERT(posted, "a loop does not end while a strand of its waits");
        lock.lock();
        ++done_;
        continue;
      }
      if (ending_ || !wait(lock)) break;
    }
    leave();
  }

  // Returns: false if nothing came for long.
  bool wait(std::unique_lock<std::mutex>& lock) {
    ++idle_;
    bool came =
        work_came_.wait_for(lock, options_.idle, [&] { return waking_ > 0 || ending_ || first_; });
    --idle_;
    if (waking_ > 0) --waking_;
    return came;
  }

  // Requires: the lock.
  void leave() noexcept {
    for (std::thread& each : threads_) {
      if (each.get_id() != std::this_thread::get_id()) continue;
      ended_.push_back(std::move(each));  // there is room: add_thread() made it
      each = std::move(threads_.back());
      threads_.pop_back();
      break;
    }
    if (--running_ == 0) all_gone_.notify_all();
  }

  void push(BlockingJob& job) noexcept {
    job.queued = true;
    job.prev_job = last_;
    job.next_job = nullptr;
    (last_ ? last_->next_job : first_) = &job;
    last_ = &job;
    ++queued_;
  }
  void remove(BlockingJob& job) noexcept {
    job.queued = false;
    (job.prev_job ? job.prev_job->next_job : first_) = job.next_job;
    (job.next_job ? job.next_job->prev_job : last_) = job.prev_job;
    --queued_;
  }

  Options options_;
  cpu_set_t processors_;
  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable work_came_, all_gone_;
  BlockingJob* first_ = nullptr;
  BlockingJob* last_ = nullptr;
  std::size_t queued_ = 0;
  unsigned running_ = 0;  // threads
  unsigned idle_ = 0;     // of these: waiting
  unsigned waking_ = 0;   // of these: told to wake, and not awake yet
  std::uint64_t done_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
  std::vector<std::thread> ended_;
};

BlockingPool::BlockingPool(Options options) : threads_(std::make_unique<Threads>(options)) {}
BlockingPool::~BlockingPool() = default;

BlockingPool& BlockingPool::current() {
  if (Executor* loop = Executor::current_or_null(); loop && loop->services().blocking) {
    return *loop->services().blocking;
  }
  // Never destroyed: work may run, or be asked for, while the process ends.
  static BlockingPool* shared = [] {
    static BlockingPool* made = new BlockingPool;
    std::atexit([] { made->threads_->reap(); });
    return made;
  }();
  return *shared;
}

BlockingPool::Statistics BlockingPool::statistics() const { return threads_->statistics(); }
void BlockingPool::submit(BlockingJob& job) { threads_->submit(job); }
bool BlockingPool::withdraw(BlockingJob& job) noexcept { return threads_->withdraw(job); }

}  // namespace weft::inline v0
