// SPDX-License-Identifier: MIT
#include "weft/run/io_context.h"

#include <algorithm>

#include "affinity.h"
#include "context_impl.h"
#include "weft/base/assert.h"
#include "weft/core/moving.h"
#include "weft/core/primitives.h"
#include "weft/core/tree.h"

namespace weft::inline v0 {

using detail::CaughtError;
using detail::Frame;
using detail::Strand;

IOContext::IOContext(IOContextOptions options)
    : impl_(std::make_unique<Impl>(*this, std::move(options))) {}
IOContext::~IOContext() {
  WEFT_ASSERT(!is_running(), "L12: an IOContext is destroyed after its run() has returned");
}

IOContext* IOContext::current_or_null() noexcept {
  Executor* loop = Executor::current_or_null();
  return loop ? loop->services().context : nullptr;
}

std::size_t IOContext::workers() const noexcept { return impl_->workers.size(); }

EventLoop& IOContext::loop(std::size_t worker) {
  if (worker >= impl_->workers.size()) {
    throw UsageError("loop(" + std::to_string(worker) + "): this IOContext has " +
                     std::to_string(impl_->workers.size()) + " workers, counted from 0");
  }
  return impl_->workers[worker]->loop;
}

Loop& IOContext::first_loop() { return impl_->workers.front()->loop; }
bool IOContext::is_running() const noexcept { return impl_->workers.front()->loop.is_running(); }
void IOContext::stop() noexcept { impl_->stop(); }
PromiseChildLease IOContext::lease() { return impl_->lease(); }

void IOContext::schedule(Task<void> task) {
  Strand& fresh = CancellationRuntime::make_fresh(*task.release_for_await(), nullptr);
  impl_->schedule_root(fresh);
}

void IOContext::run() { run(suspend_forever()); }

void IOContext::run_root(Frame& main, detail::RootWaiter& root) { impl_->run(main, root); }

bool IOContext::finish_run(detail::RootWaiter& root) {
  detail::Ended& ended = root.strand->ended();
  CaughtError errors = impl_->take_errors();
  if (ended.kind == detail::OutcomeKind::error) {
    ended.read = true;
    CaughtError all = ended.error;
    if (errors) all.add(errors);
    all.rethrow();
  }
  if (errors) errors.rethrow();
  return ended.kind == detail::OutcomeKind::cancelled && impl_->was_stopped() &&
         &root.strand->why() == &reasons::context_stopped;
}

// --- Looking at it ------------------------------------------------------------------------------

namespace {

Task<IOContext::WorkerStatistics> ask(detail::Worker& worker) { co_return worker.statistics(); }
Task<std::string> draw(detail::Worker& worker) { co_return worker.tree(); }

}  // namespace

Task<std::vector<IOContext::WorkerStatistics>> IOContext::statistics() {
  std::vector<WorkerStatistics> all;
  for (auto& worker : impl_->workers) {
    all.push_back(co_await on(worker->loop, ask(*worker)));
  }
  co_return all;
}

Task<std::string> IOContext::task_tree() {
  std::string text;
  for (auto& worker : impl_->workers) text += co_await on(worker->loop, draw(*worker));
  co_return text;
}

}  // namespace weft::inline v0
