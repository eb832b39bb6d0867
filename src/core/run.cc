// SPDX-License-Identifier: MIT
#include "weft/core/run.h"

#include <string>

#include "weft/base/assert.h"
#include "weft/base/log.h"
#include "weft/core/tree.h"

namespace weft::inline v0 {

RunGuard::RunGuard(Loop& loop) : loop_(loop) {
  if (loop.running_) {
    detail::throw_usage_error(
        "this loop runs already: inside a task, await instead of calling run() on its own loop");
  }
  loop.prepare();
  loop.running_ = true;
  loop.open();
}

const CancelReason* RunGuard::doom() const noexcept {
  std::lock_guard lock(loop_.stop_mutex_);
  if (!loop_.port().arrivals.refuses()) return nullptr;
  loop_.stop_asked_ = false;  // this run answers it, wherever its request is
  return &reasons::loop_stopped;
}

void Loop::open() noexcept {
  std::lock_guard lock(stop_mutex_);
  if (closed_) port().inbox.reopen();  // first: whoever announces a strand may post it (A3)
  closed_ = false;
  // A request that came before is answered by doom(); so it must stay refused.
  if (stop_asked_) {
    port().arrivals.reopen();
  } else {
    port().arrivals.accept();
  }
}

void Loop::stop() noexcept {
  std::unique_lock lock(stop_mutex_);
  port().arrivals.refuse();
  stop_asked_ = true;
  while (!stop_posted_) {
    stop_posted_ = true;
    lock.unlock();  // to wake a foreign loop may be to run it
    if (post(stop_request_)) return;
    lock.lock();
    stop_posted_ = false;
    // Closed: it waits for the next run(), if that has not answered it already.
    if (closed_ || !stop_asked_) return;
  }
}

void Loop::StopRequest::arrived(Runnable& work) noexcept {
  Loop& loop = *static_cast<StopRequest&>(work).loop;
  {
    std::lock_guard lock(loop.stop_mutex_);
    loop.stop_posted_ = false;
    // doom() has answered it, and that run is over.
    if (!loop.stop_asked_ && !loop.port().arrivals.refuses()) return;
    // Without a run() of its own, a loop that others drive keeps it for the next one.
    if (loop.running_) loop.stop_asked_ = false;
  }
  loop.cancel_all();
}

void Loop::cancel_all() noexcept {
  port().arrivals.refuse();
  if (root_ && !root_->done) CancellationRuntime::cancel(*root_->strand, reasons::loop_stopped);
  cancel_guests(reasons::loop_stopped);
}

bool Loop::try_close() noexcept {
  if (closed_) return true;
  if (strand_count() != 0 || has_ready()) return false;
  std::lock_guard lock(stop_mutex_);
  bool refused = port().arrivals.refuses();
  if (!port().arrivals.close_if_none()) return false;
  closed_ = port().inbox.try_close();
  // What was sent before the end is run before the end, and may start something here.
  if (closed_) return true;
  if (refused) {
    port().arrivals.reopen();
  } else {
    port().arrivals.accept();
  }
  return false;
}

namespace detail {

void abandon(RootWaiter& root, const char* why) noexcept {
  TaskTreeCollector tree;
  tree.task(*root.strand);
  log(LogLevel::error, std::string(why) + "; the tasks that are left:\n" + tree.take());
  WEFT_ASSERT(false, "L12: a run() ends after every task that it started");
}

}  // namespace detail

}  // namespace weft::inline v0
