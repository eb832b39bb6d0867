// SPDX-License-Identifier: MIT
#include "weft/durable/lock_context.h"

#include <algorithm>

#include "durable/held_lock.h"
#include "weft/base/assert.h"
#include "weft/core/executor.h"

namespace weft::inline v0::durable {

namespace {

const detail::HeldLock& require_held(const detail::HeldLock& held) {
  using Phase = detail::HeldLock::Phase;
  Phase phase = held.phase();
  if (phase != Phase::held && phase != Phase::lost) {
    ::weft::detail::throw_usage_error(
        "a LockContext is used while its function runs: the lock has been given back");
  }
  return held;
}

}  // namespace

std::uint64_t LockContext::fencing_token() const {
  return require_held(*held_).token.load(::weft::detail::relaxed);
}

std::chrono::nanoseconds LockContext::lease_left() const {
  const detail::HeldLock& held = require_held(*held_);
  std::int64_t left = held.valid_until.load(::weft::detail::relaxed) - held.clock->lease_clock();
  return std::chrono::nanoseconds(std::max<std::int64_t>(left, 0));
}

bool LockContext::is_lost() const {
  return require_held(*held_).phase() == detail::HeldLock::Phase::lost;
}

Scope& LockContext::scope() const {
  Scope* scope = require_held(*held_).scope();
  if (!scope) {
    ::weft::detail::throw_usage_error(
        "LockContext::scope() is used while the function under the lock runs: it has ended");
  }
  return *scope;
}

StopToken LockContext::stop_token() const { return *require_held(*held_).stop_token; }

const std::string& LockContext::resource_id() const { return held_->order.options->resource_id; }

}  // namespace weft::inline v0::durable
