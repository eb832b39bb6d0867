// SPDX-License-Identifier: MIT
#include "durable/engine_state.h"

#include "durable/table_errors.h"
#include "durable/time_text.h"
#include "weft/base/log.h"
#include "weft/core/combinators.h"
#include "weft/core/executor.h"
#include "weft/core/primitives.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::durable::detail {

namespace {
std::unexpected<LockError> has_ended() {
  return std::unexpected(LockError(LockError::withdrawn, "the engine has ended"));
}
}  // namespace

Task<LockResult<>> EngineState::open(Nursery& nursery) {
  home_ = &Executor::current("durable::with_engine()");
  LockResult<> opened = co_await store_->open(*this);
  if (!opened) co_return opened;
  nursery_ = &nursery;
  nursery.start(run_store());
  co_return LockResult<>();
}

// It ends with the engine's tasks, also if one of them fails.
Task<void> EngineState::run_store() {
  struct AtEnd {
    EngineState& state;
    ~AtEnd() { state.end(); }
  } at_end{*this};
  co_await store_->run();
  co_await suspend_forever();
}

void EngineState::end() {
  nursery_ = nullptr;
  ending_.set();
  for (auto& [resource, workflow] : book_) workflow->close();
}

Task<void> EngineState::drain() {
  end();
  co_await wait_for_guests();
  if (book_.empty()) co_return;
  empty_.reset();
  auto emptied = co_await timeout(Engine::kDrainTimeout, empty_.wait());
  if (!emptied) {
    log(LogLevel::warning,
        "weft: durable: " + url_ + " did not answer: what is left there ends with its leases");
  }
}

// L7: without a bound, as everywhere; but not without a word.
Task<void> EngineState::wait_for_guests() {
  bool said = false;
  while (guests_ > 0) {
    guests_left_.reset();
    auto patience = said ? std::chrono::nanoseconds::max() : Engine::kDrainTimeout;
    auto left = co_await timeout(patience, guests_left_.wait());
    if (left) continue;
    said = true;
    log(LogLevel::warning, "weft: durable: the end of the engine " + url_ + " waits for " +
                               std::to_string(guests_) +
                               " that hold its locks or ask it: they have been cancelled");
  }
}

Task<void> EngineState::close() {
  end();
  co_await wait_for_guests();
  book_.clear();
  if (home_) co_await store_->close();
}

Executor& EngineState::home() const {
  if (!home_) ::weft::detail::throw_usage_error("a durable::Engine is used inside with_engine()");
  return *home_;
}

LockResult<std::shared_ptr<MutexWorkflow>> EngineState::workflow_of(const std::string& resource,
                                                                    std::uint32_t capacity) {
  if (!nursery_) return has_ended();
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
  (*workflow)->enter(held);
}

Task<LockResult<>> EngineState::join(const MutexOptions& options, std::uint32_t capacity) {
  // The store first: a workflow of a capacity that it refuses would refuse the others, until it is idle.
  if (!nursery_) co_return has_ended();
  std::shared_ptr<Joining> joining = begin_joining({options.resource_id, capacity});
  auto in_time = co_await timeout(options.acquire_timeout, joining->over.wait());
  if (!in_time) {
    co_return std::unexpected(
        LockError(LockError::unreachable, "'" + options.resource_id + "' was not opened within " +
                                              in_seconds(options.acquire_timeout) + ": " + url_ +
                                              " has not answered"));
  }
  if (!joining->answer) co_return has_ended();
  if (!*joining->answer) co_return *joining->answer;
  LockResult<std::shared_ptr<MutexWorkflow>> workflow = workflow_of(options.resource_id, capacity);
  if (!workflow) co_return std::unexpected(workflow.error());
  (*workflow)->keep(options.idle_timeout);
  co_return LockResult<>();
}

std::shared_ptr<EngineState::Joining> EngineState::begin_joining(const Place& place) {
  if (auto found = joining_.find(place); found != joining_.end()) return found->second;
  auto joining = std::make_shared<Joining>();
  nursery_->start(carry_out(place, joining));
  joining_.emplace(place, joining);
  return joining;
}

// A child of the engine's: a call of a table cannot be cancelled, so who gives up leaves it behind.
Task<void> EngineState::carry_out(Place place, std::shared_ptr<Joining> joining) {
  struct AtEnd {
    EngineState& state;
    const Place& place;
    Joining& joining;
    ~AtEnd() {
      state.joining_.erase(place);
      joining.over.set();
    }
  } at_end{*this, place, *joining};
  joining->answer = co_await store_->join(place.first, place.second);
}

template <class R, class Call>
Task<LockResult<R>> EngineState::ask(Call call) {
  if (!nursery_) co_return has_ended();
  Guest guest(*this);
  auto [answer, ended] = co_await any_of(call(), ending_.wait());
  if (!answer) co_return has_ended();
  co_return std::move(*answer);
}

Task<LockResult<std::vector<ResourceReport>>> EngineState::report(
    std::optional<std::string> resource) {
  auto call = [&]() { return store_->report(std::move(resource)); };
  co_return co_await ask<std::vector<ResourceReport>>(call);
}

Task<LockResult<std::size_t>> EngineState::revoke(std::string resource) {
  auto call = [&]() { return store_->revoke(resource); };
  co_return co_await ask<std::size_t>(call);
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
