// SPDX-License-Identifier: MIT
#include "worker.h"

#include <mutex>
#include <thread>
#include <utility>

#include "context_impl.h"
#include "step.h"
#include "weft/atomic/pause.h"
#include "weft/base/assert.h"
#include "weft/base/log.h"
#include "weft/base/steady_clock.h"
#include "weft/core/tree.h"

namespace weft::inline v0::detail {

Worker::Worker(IOContext& context, unsigned index, const EventLoopOptions& options)
    : loop(options),
      context_(context),
      index_(index),
      random_(0x9e3779b9u * (index + 1)),
      wake_(*this,
            [](Runnable& work) noexcept {
              static_cast<Request&>(work).worker->wake_under_way_ =
                  false;  // W3; idle() will search
            }),
      stop_(*this,
            [](Runnable& work) noexcept { static_cast<Request&>(work).worker->stop_here(); }),
      leave_(*this,
             [](Runnable& work) noexcept { static_cast<Request&>(work).worker->leave_here(); }),
      draw_(*this,
            [](Runnable& work) noexcept { static_cast<Request&>(work).worker->log_tree(); }) {
  loop.worker_ = this;
}

void Worker::discard(TaskQueue& queue) {
  // Their frames were never entered.
  auto discard_one = [](FreshNode& node) {
    CancellationRuntime::discard_fresh(Strand::from_fresh(node));
  };
  while (queue.take(kFreshPerTurn, discard_one) == TaskQueue::Taken::some) {
  }
}

Worker::~Worker() {
  // From here on it is a loop like any other, and nobody's.
  loop.worker_ = nullptr;
  belong_to(nullptr, {.event_loop = &loop});
  discard(queue);
}

// --- Any thread ---------------------------------------------------------------------------------

void Worker::wake_to_search() noexcept {
  bool posted = loop.post(static_cast<Runnable&>(wake_));
  WEFT_ASSERT(posted, "W2: a worker that is parked has its loop open");
}
void Worker::ask_to_stop() noexcept {
  // A loop that has closed has nothing left to stop.
  static_cast<void>(loop.post(static_cast<Runnable&>(stop_)));
}
void Worker::ask_for_tree() noexcept {
  static_cast<void>(loop.post(static_cast<Runnable&>(draw_)));
}
void Worker::ask_to_leave() noexcept {
  bool posted = loop.post(static_cast<Runnable&>(leave_));
  WEFT_ASSERT(posted, "a worker closes after it was asked to leave");
}

// --- A run() ------------------------------------------------------------------------------------

void Worker::open() {
  opening_ = false;
  leaving_ = false;
  roots_ = counted_ = 0;
  root_.emplace(&IOContext::Impl::root_failed, context_.impl_.get());
  root_->open_here();
}

void Worker::drive() {
  while (!has_left() || !loop.try_close()) {
    loop.step([&] { return has_left() && loop.has_no_strands(); });
  }
  closed();
}

void Worker::closed() noexcept {
  WEFT_ASSERT(!wake_under_way_, "W3: what was posted has run when a loop closes");
  if (std::exchange(searching_, false)) static_cast<void>(context_.impl_->idle.end_search());
  loop.rest();
}

void Worker::run(std::promise<void>& opened, std::shared_future<void> all_opened) {
  std::optional<RunGuard> guard;
  try {
    expect_opening();
    guard.emplace(loop);
  } catch (...) {
    opened.set_exception(std::current_exception());
    return;
  }
  DrivingScope driving(loop);
  open();
  opened.set_value();
  all_opened.wait();
  drive();
}

void Worker::belong_to(const void* group, const LoopServices& services) {
  std::lock_guard lock(loop.port().mutex);
  loop.port().group = group;
  loop.offer(services);
}

std::string Worker::tree() {
  TaskTreeCollector tree;
  tree.node("worker " + std::to_string(index_));
  Strand* main = index_ == 0 ? context_.impl_->main_strand : nullptr;
  if (main && !main->waiter.done()) tree.task(*main);
  tree.children(*root_);
  return tree.take();
}

void Worker::log_tree() noexcept { log(LogLevel::warning, tree()); }

void Worker::stop_here() noexcept {
  loop.port().arrivals.refuse();
  root_->cancel_all(reasons::context_stopped);
  loop.cancel_guests(reasons::context_stopped);
}

void Worker::leave_here() noexcept {
  leaving_ = true;
  root_->release();
}

void Worker::count_ended() noexcept {
  std::uint64_t ended = roots_ - root_->size();
  if (ended == counted_) return;
  context_.impl_->roots_ended(ended - counted_);
  counted_ = ended;
}

IOContext::WorkerStatistics Worker::statistics() {
  return {.loop = loop.statistics(),
          .tasks_run = entered_,
          .tasks_stolen = stolen_,
          .queue_depth = queue.count_to(IOContext::kQueueDepthCounted),
          .frames = frame_stats()};
}

// --- Fresh tasks --------------------------------------------------------------------------------

void Worker::adopt(FreshNode& node) noexcept {
  Strand& fresh = Strand::from_fresh(node);
  if (!fresh.parent_link.parent()) {
    if (context_.impl_->is_leaving()) [[unlikely]] {
      context_.impl_->next_run.push(node);
      return;
    }
    ++roots_;
  }
  ++entered_;
  CancellationRuntime::begin_home(fresh, *root_);
}

bool Worker::take_own() {
  if (std::exchange(has_stolen_, false) || queue.looks_empty()) return false;
  if (loop.chaos_.one_in(3)) return false;  // somebody else might like them
  // What becomes a strand here can be taken by nobody else any more, and waits for all that are ready
  // before it. So one at a time, where that costs nothing: a task that computes for long shall not
  // hold up those behind it while other workers have nothing to do.
  std::size_t most = loop.has_ready() ? loop.chaos_.portion(kFreshPerTurn) : 1;
  TaskQueue::Taken taken = queue.take(most, [&](FreshNode& node) { adopt(node); });
  if (taken != TaskQueue::Taken::some) return false;
  if (searching_) found_work();
  return true;
}

void Worker::found_work() {
  searching_ = false;
  IOContext::Impl& pool = *context_.impl_;
  if (pool.idle.end_search() && pool.any_fresh()) pool.notify();
}

// Whether its worker takes from it in quick succession: then the tasks are so short that taking some
// of them away would hold it up for longer than they do.
bool Worker::serves_itself(const TaskQueue& queue) noexcept {
  const void* oldest = queue.oldest();
  const std::int64_t until = steady_ns() + kWorthStealingNs;
  do {
    pause_processor();
    if (queue.oldest() != oldest) return true;
  } while (steady_ns() < until);
  return false;
}

Worker::Search Worker::search() {
  IOContext::Impl& pool = *context_.impl_;
  std::size_t count = pool.workers.size();
  if (count == 1) return Search::nothing;
  if (!searching_) searching_ = pool.idle.begin_search(count);
  if (!searching_) return Search::nothing;
  Search result = Search::nothing;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  for (std::size_t i = 0; i < count; ++i) {
    Worker& victim = *pool.workers[(random_ + i) % count];
    if (&victim == this || victim.queue.looks_empty()) continue;
    loop.chaos_.dawdle();
    if (serves_itself(victim.queue)) {
      result = Search::not_worth_it;
      continue;
    }
    // One to run now, so that nobody steals it again; the rest to the queue here, where the next idle
    // worker finds them.
    std::size_t most = loop.chaos_.portion(kStolenAtOnce);
    TaskQueue::Taken taken = victim.queue.take(most, [&](FreshNode& node) {
      ++stolen_;
      if (std::exchange(has_stolen_, true)) {
        queue.push(node);
      } else {
        adopt(node);
      }
    });
    if (taken != TaskQueue::Taken::some) continue;
    found_work();
    return Search::found;
  }
  return result;
}

void Worker::idle() {
  if (!queue.looks_empty()) return;
  // First, because it concerns nobody else: what two busy loops send each other comes like this.
  if (loop.spin([&] { return context_.impl_->any_fresh(); }) && loop.port().inbox.has_entries()) {
    return;
  }
  if (search() != Search::nothing) return;
  if (!sleep()) std::this_thread::yield();  // a queue is not empty, and yet nothing can be taken
}

// Returns: false if it did not, because there are fresh tasks.
bool Worker::sleep() {
  IOContext::Impl& pool = *context_.impl_;
  // With its wake-up under way it is nobody's to wake, and will be woken all the same (W3).
  bool park = !wake_under_way_ && !leaving_;
  if (park) {
    loop.chaos_.dawdle();
    pool.idle.park(*this, std::exchange(searching_, false));
    loop.chaos_.dawdle();
    if (pool.any_fresh()) {
      if (!pool.idle.unpark(*this)) searching_ = wake_under_way_ = true;
      return false;
    }
  }
  loop.wait();
  if (park && !pool.idle.unpark(*this)) searching_ = wake_under_way_ = true;
  return true;
}

}  // namespace weft::inline v0::detail
