// SPDX-License-Identifier: MIT
#include "durable/engine_state.h"

#include "durable/table_errors.h"
#include "weft/base/log.h"
#include "weft/core/executor.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::durable::detail {

Task<LockResult<>> EngineState::open(Nursery& nursery) {
  home_ = &Executor::current("durable::with_engine()");
  LockResult<> opened = co_await store_->open(*this);
  if (!opened) co_return opened;
  nursery_ = &nursery;
  nursery.start(store_->run());
  co_return LockResult<>();
}

Task<void> EngineState::drain() {
  nursery_ = nullptr;
  if (book_.empty()) co_return;
  empty_.reset();
  for (auto& [resource, workflow] : book_) workflow->close();
  auto emptied = co_await timeout(Engine::kDrainTimeout, empty_.wait());
  if (!emptied) {
    log(LogLevel::warning, "weft: durable: " + store_->url() +
                               " did not answer: what is left there ends with its leases");
  }
}

Task<void> EngineState::close() {
  book_.clear();
  if (home_) co_await store_->close();
}

Executor& EngineState::home() const {
  if (!home_) ::weft::detail::throw_usage_error("a durable::Engine is used inside with_engine()");
  return *home_;
}

LockResult<std::shared_ptr<MutexWorkflow>> EngineState::workflow_of(const std::string& resource,
                                                                    std::uint32_t capacity) {
  if (!nursery_) return std::unexpected(LockError(LockError::withdrawn, "the engine has ended"));
  std::shared_ptr<MutexWorkflow>& place = book_[resource];
  if (!place) {
    place = std::make_shared<MutexWorkflow>(*this, resource, capacity);
    ++statistics_.workflows_started;
    nursery_->start(MutexWorkflow::run(place));
  }
  if (place->capacity() != capacity) return other_capacity(resource, place->capacity(), capacity);
  return place;
}

void EngineState::enter(HeldLock& held) {
  LockResult<std::shared_ptr<MutexWorkflow>> workflow =
      workflow_of(held.order.options->resource_id, held.order.capacity);
  if (!workflow) {
    held.error = workflow.error();
    held.enter_phase(HeldLock::Phase::over);
    held.answered.set();
    return;
  }
  held.clock = store_.get();
  held.workflow = *workflow;
  held.workflow->enter(held);
}

Task<LockResult<>> EngineState::join(const MutexOptions& options, std::uint32_t capacity) {
  // The store first: a workflow of a capacity that it refuses would refuse the others, until it is idle.
  LockResult<> joined = co_await store_->join(options.resource_id, capacity);
  if (!joined) co_return joined;
  LockResult<std::shared_ptr<MutexWorkflow>> workflow = workflow_of(options.resource_id, capacity);
  if (!workflow) co_return std::unexpected(workflow.error());
  (*workflow)->keep(options.idle_timeout);
  co_return LockResult<>();
}

void EngineState::forget(MutexWorkflow& workflow) {
  book_.erase(workflow.resource());
  ++statistics_.workflows_ended;
  if (book_.empty()) empty_.set();
}

TicketNumber EngineState::number_ticket(MutexWorkflow& workflow) {
  owners_.emplace(next_number_, &workflow);
  return next_number_++;
}

void EngineState::granted(TicketNumber ticket, TokenBlock tokens) {
  if (auto place = owners_.find(ticket); place != owners_.end())
    place->second->granted(ticket, tokens);
}
void EngineState::gone(TicketNumber ticket) {
  if (auto place = owners_.find(ticket); place != owners_.end()) place->second->gone(ticket);
}

}  // namespace weft::inline v0::durable::detail
