// SPDX-License-Identifier: MIT
#pragma once
// One task's acquisition of one lock: a place in a workflow's queue, then the holder of a ticket. Shared by who asked (an
// Acquisition), the workflow while it is inside, and every LockContext.
//
// Invariants
//   H1  home loop only, but what is atomic or an Event. `error` is read elsewhere only after answered or leave().
//   H2  waiting -> held -> lost; each of them -> over. What is over is in no list, and has no ticket and no workflow.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weft/atomic/atomic.h"
#include "weft/base/intrusive_list.h"
#include "weft/durable/acquisition.h"
#include "weft/durable/lock_error.h"
#include "weft/durable/lock_store.h"
#include "weft/durable/mutex.h"
#include "weft/sync/event.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::durable::detail {

class MutexWorkflow;
struct Ticket;

class HeldLock : public ListNode<>, public std::enable_shared_from_this<HeldLock> {
 public:
  enum class Phase : std::uint8_t { fresh, waiting, held, lost, over };

  explicit HeldLock(LockOrder what) : order(std::move(what)) {}

  [[nodiscard]] Phase phase() const noexcept { return phase_.load(::weft::detail::acquire); }
  void enter_phase(Phase phase) noexcept { phase_.store(phase, ::weft::detail::release); }

  // Of the section, while it runs. Set before it begins; atomic, so that who asks on a wrong loop is refused, and no more.
  [[nodiscard]] Scope* scope() const noexcept { return scope_.load(::weft::detail::acquire); }
  void set_scope(Scope* scope) noexcept { scope_.store(scope, ::weft::detail::release); }

  const LockOrder order;
  const LockStore* clock = nullptr;  // the engine's; set before it waits

  std::shared_ptr<MutexWorkflow> workflow;  // while it waits or holds
  Ticket* ticket = nullptr;                 // while it holds, and the store has it
  std::int64_t since = 0;                   // it has waited, or held, on the store's clock
  std::optional<LockError> error;

  std::optional<TimePoint> deadline;    // of several together; set before it waits
  std::optional<StopToken> stop_token;  // of the section; its loop only
  bool came_late = false;  // its lease had ended when its section was to begin; set before done

  Event answered{"a durable lock"};  // held, or failed
  Event ends{"a durable lock's loss, or its section's end"};
  Event given_back{"a durable lock's release"};
  Event done{"the end of a section"};  // on another loop: the engine's may give it back

  ::weft::detail::Atomic<std::uint64_t> token{0};
  ::weft::detail::Atomic<std::int64_t> valid_until{0};  // on the store's clock

 private:
  ::weft::detail::Atomic<Scope*> scope_{nullptr};
  ::weft::detail::Atomic<Phase> phase_{Phase::fresh};
};

}  // namespace weft::inline v0::durable::detail
