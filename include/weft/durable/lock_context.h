// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::LockContext: what the code under a lock knows of it.
//
//     co_await lock.on_acquire([&](LockContext& held) -> Task<void> {
//       co_await database.update(row, held.fencing_token());     // refuses what is older: see fence_gate.h
//     });
//
// A copy refers to the same acquisition. Asked after that has ended, it throws UsageError: nothing is protected any more.
// (Not so resource_id().)
//
// Threads        any; scope() on the loop of the function.
// Allocation     one block per acquisition, for all copies.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "weft/core/scope.h"

namespace weft::inline v0::durable {

namespace detail {
class HeldLock;
}

class LockContext {
 public:
  explicit LockContext(std::shared_ptr<detail::HeldLock> held) noexcept : held_(std::move(held)) {}

  // Of who holds it alone: greater than that of everybody who held the resource before, for ever. Those who share it have
  // tokens of their own, in no order among themselves: a FenceGate is for what is held alone. Still there after the lock was lost, so that
  // late writes carry it and are refused.
  [[nodiscard]] std::uint64_t fencing_token() const;
  // The time for which nobody else can have it, if it is not renewed: zero when it is lost. It is renewed all the time, so
  // small values mean trouble.
  [[nodiscard]] std::chrono::nanoseconds lease_left() const;
  // The code under the lock is being cancelled for it, or will be at its next cancel point.
  [[nodiscard]] bool is_lost() const;
  // That of the function under the lock, for tasks that are to end with it: they are cancelled when the lock is lost, and when the
  // caller is; and joined, when the function has ended, before the lock is given back. The function's locals are gone by then:
  // children take their arguments by value. Of several locks together: one for all of them. On the function's loop only.
  //     auto child = copy(part).start(held.scope());
  [[nodiscard]] Scope& scope() const;
  // Of the code under the lock, for code that does not await: it is asked to stop when the lock is lost, and when its caller is
  // cancelled. Valid while the function runs.
  [[nodiscard]] StopToken stop_token() const;
  [[nodiscard]] const std::string& resource_id() const;

 private:
  std::shared_ptr<detail::HeldLock> held_;
};

}  // namespace weft::inline v0::durable
