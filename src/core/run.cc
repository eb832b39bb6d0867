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
  loop.running_ = true;
  loop.open();
}

const CancelReason* RunGuard::doom() const noexcept {
  return loop_.port().arrivals.refuses() ? &reasons::loop_stopped : nullptr;
}

void Loop::open() noexcept {
  if (closed_) port().inbox.reopen();  // first: whoever announces a strand may post it (A3)
  closed_ = false;
  // Nobody posts a request that was kept: it is answered here, by doom().
  std::uint8_t asked = kept;
  if (stop_.compare_exchange_strong(asked, none, detail::relaxed, detail::relaxed)) return;
  // A request that was posted arrives in this run(), or is about to.
  if (asked == none) port().arrivals.accept();
}

void Loop::stop() noexcept {
  port().arrivals.refuse();
  std::uint8_t before = none;
  // acquire: whoever had the request's node before is done with it. [pairs with R and K]
  if (!stop_.compare_exchange_strong(before, posted, detail::acquire, detail::relaxed)) return;
  if (!post(stop_request_)) stop_.store(kept, detail::release);  // K
}

void Loop::StopRequest::arrived(Runnable& work) noexcept {
  Loop& loop = *static_cast<StopRequest&>(work).loop;
  // Without a run() of its own, a loop that others drive keeps it for the next one.
  loop.stop_.store(loop.running_ ? none : kept, detail::release);  // R
  loop.cancel_all();
}

void Loop::cancel_all() noexcept {
  port().arrivals.refuse();
  if (root_ && !root_->done) CancellationRuntime::cancel(*root_->strand, reasons::loop_stopped);
  cancel_guests(reasons::loop_stopped);
}

bool Loop::try_close() noexcept {
  if (closed_) return true;
  bool refused = port().arrivals.refuses();
  if (strand_count() != 0 || !port().arrivals.refuse_if_none()) return false;
  close_inbox();
  if (strand_count() == 0) return closed_ = true;
  // What was sent before the end has started something here. It goes on.
  port().inbox.reopen();
  if (!refused) port().arrivals.accept();
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
