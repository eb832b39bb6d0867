// SPDX-License-Identifier: MIT
#include "weft/durable/acquisition.h"

#include <algorithm>

#include "durable/engine_state.h"
#include "durable/held_lock.h"
#include "weft/core/combinators.h"
#include "weft/core/moving.h"
#include "weft/core/primitives.h"
#include "weft/core/shield.h"
#include "weft/core/try.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::durable::detail {

namespace {

using Phase = HeldLock::Phase;

// Returns: whether it is ours now; if not, error says why.
Task<bool> acquire(HeldLock& held) {
  if (held.order.timeout <= std::chrono::nanoseconds(0)) {
    held.error = LockError(LockError::invalid,
                           "acquire_timeout is not positive: try_acquire() does not wait");
    co_return false;
  }
  std::chrono::nanoseconds time = held.order.timeout;
  if (held.deadline)
    time = std::clamp<std::chrono::nanoseconds>(*held.deadline - now(), time.zero(), time);
  held.order.engine->enter(held);
  auto answered = co_await timeout(time, held.answered.wait());
  // Out of the queue before anybody hears of it: who is told so on another loop must not find it granted there.
  if (!answered && held.phase() == Phase::waiting) held.workflow->give_up(held);
  co_return held.phase() == Phase::held;
}

// Gives it back, or withdraws what was asked for, at whatever point acquire() was left.
Task<void> leave(HeldLock& held) {
  if (held.came_late) held.workflow->lose(held, LossReason::expired);
  bool told = held.workflow && held.workflow->leave(held);
  held.enter_phase(Phase::over);
  // A store that does not answer is not waited for beyond the lease: then it is free anyhow.
  if (told) co_await timeout(held.order.options->lease, held.given_back.wait());
}

}  // namespace

Acquisition::Acquisition(LockOrder order)
    : held_(std::make_shared<HeldLock>(std::move(order))), context_(held_) {}

const std::optional<LockError>& Acquisition::error() const noexcept { return held_->error; }

void Acquisition::set_deadline(TimePoint deadline) { held_->deadline = deadline; }

Task<void> Acquisition::hold(const Section& section) {
  if (held_->order.engine->home().is_current()) return hold_at_home(section);
  return hold_elsewhere(section);
}

// Between the grant and this moment the process may have been paused, and nobody has looked at the lease since.
bool Acquisition::has_time() {
  bool has = held_->clock->lease_clock() < held_->valid_until.load(::weft::detail::relaxed);
  if (!has) held_->came_late = true;
  return has;
}

// Cancelled when it is lost. The end of a section without a result must end the wait for the loss, too.
Task<void> Acquisition::guard(const Section& section) {
  auto run = [&]() -> Task<void> {
    SetAtEnd ended{held_->ends};
    Scope& scope = co_await current_scope();
    held_->stop_token = scope.stop_token();
    if (has_time()) co_await section();
  };
  co_await any_of(run, held_->ends.wait());
}

Task<void> Acquisition::hold_at_home(const Section& section) {
  auto work = [&]() -> Task<void> {
    bool ours = co_await acquire(*held_);
    if (ours) co_await guard(section);
  };
  auto cleanup = [&]() -> Task<void> { co_await leave(*held_); };
  co_await try_(work).finally(cleanup);
}

// One task on the engine's loop has the lock from first to last, so that nothing has to get there in the end: that loop may
// be ending. It is shielded from our cancellation, and hears of our end by `done`.
Task<void> Acquisition::hold_elsewhere(const Section& section) {
  auto keep = [&]() -> Task<void> {
    auto work = [&]() -> Task<void> {
      auto answer = [&]() -> Task<void> {
        static_cast<void>(co_await acquire(*held_));
        held_->answered.set();
      };
      co_await any_of(answer, held_->done.wait());
      co_await held_->done.wait();
    };
    auto cleanup = [&]() -> Task<void> {
      // If this loop ends before our section has.
      if (held_->workflow && !held_->done.is_set()) held_->workflow->abandon(*held_);
      held_->answered.set();
      co_await held_->done.wait();
      co_await leave(*held_);
    };
    co_await try_(work).finally(cleanup);
  };
  auto here = [&]() -> Task<void> {
    SetAtEnd done{held_->done};
    co_await held_->answered.wait();
    if (held_->phase() == Phase::held) co_await guard(section);
  };
  Executor& home = held_->order.engine->home();
  co_await all_of(noncancellable(on(home, keep())), here());
}

void Acquisition::set_scope(Scope* scope) noexcept { held_->set_scope(scope); }

Task<void> run_in_scope(std::span<Acquisition> locks, const Section& section) {
  struct AtEnd {
    std::span<Acquisition> locks;
    ~AtEnd() {
      for (Acquisition& lock : locks) lock.set_scope(nullptr);
    }
  } at_end{locks};
  auto run = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    for (Acquisition& lock : locks) lock.set_scope(&scope);
    co_await section();
  };
  co_await run();  // to the end of the children, too: it is here that they are joined
}

LockResult<std::vector<Acquisition>> in_order(std::vector<LockOrder> orders) {
  if (orders.empty()) {
    return std::unexpected(LockError(
        LockError::invalid, "no lock is asked for: name one at least, or nothing is protected"));
  }
  // Engines of different stores may have resources of one name.
  auto place = [](const LockOrder& order) {
    return std::pair(order.options->resource_id, order.engine->url());
  };
  std::ranges::sort(orders, {}, place);
  auto twice = std::ranges::adjacent_find(orders, {}, place);
  if (twice != orders.end()) {
    return std::unexpected(LockError(
        LockError::invalid, "'" + twice->options->resource_id + "' is asked for twice at once"));
  }
  std::vector<Acquisition> locks;
  for (LockOrder& order : orders) locks.emplace_back(std::move(order));
  return locks;
}

Task<void> hold_all(std::span<Acquisition> locks, const Section& section, std::size_t from) {
  if (from == locks.size()) {
    bool in_time = std::ranges::all_of(locks, [](Acquisition& lock) { return lock.has_time(); });
    if (in_time) co_await run_in_scope(locks, section);
    co_return;
  }
  Section rest = [&]() { return hold_all(locks, section, from + 1); };
  co_await locks[from].hold(rest);
}

Task<void> end_cancelled() {
  Scope& scope = co_await current_scope();
  scope.cancel();
  co_await finish_if_cancelled();
}

std::optional<LockError> first_error(const std::vector<Acquisition>& locks) {
  for (const Acquisition& lock : locks) {
    if (lock.error()) return lock.error();
  }
  return std::nullopt;
}

}  // namespace weft::inline v0::durable::detail
