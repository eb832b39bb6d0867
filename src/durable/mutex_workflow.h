// SPDX-License-Identifier: MIT
#pragma once
// The coordinator of one resource in one process: a task on the engine's loop. The seed's MutexWorkflow.
//
// Tasks enter with a HeldLock and leave with it. The workflow asks the store for tickets, at most as many as its tasks
// can use at once, hands each granted one to the task that has waited longest, passes it on from task to task up to
// fair_bound times, keeps it alive, and gives it back. docs/design/durable_mutex.md has the rules; D-numbers are its.
//
// Tasks that want different weights or leases stand in different lines: a ticket suits one line only.
//
// All on the engine's loop. Requests to the store are children of run()'s nursery, at most one at a time per ticket, and one renewal for all
// tickets.
//
// Invariants
//   W1  a ticket is in tickets_ from before its enqueue() to after the answer to its release() or withdraw(), or the news that
//       it is gone; and while a request refers to it.
//   W2  renewed_from is at or before the moment from which the store counts the ticket's lease.
//   W3  run() has looked at everything since the last change: whoever changes something sets changed_.
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "durable/held_lock.h"
#include "weft/core/nursery.h"
#include "weft/durable/lock_statistics.h"
#include "weft/durable/lock_store.h"
#include "weft/sync/auto_event.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::durable::detail {

class EngineState;
struct Line;

struct Ticket {
  enum class State : std::uint8_t {
    asking,  // enqueue() is under way, or will be tried again
    queued,
    granted,
    leaving,  // release() or withdraw() is under way, or will be tried again
  };

  Line* line = nullptr;
  TicketRequest request;
  State state = State::asking;
  bool unwanted = false;   // asked for, and nobody waits for it any more
  bool in_flight = false;  // ask() or give_back() refers to it
  bool is_gone = false;    // there was news of that meanwhile
  TokenBlock tokens;
  std::uint32_t handed = 0;         // so many of them
  std::int64_t renewed_from = 0;    // W2
  HeldLock* holder = nullptr;       // also if it has lost it and is on its way out
  std::shared_ptr<HeldLock> giver;  // whose leave() waits for the store

  Ticket() = default;
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() { tell_giver(); }

  void tell_giver() {
    if (std::shared_ptr<HeldLock> told = std::exchange(giver, nullptr)) told->given_back.set();
  }
  [[nodiscard]] bool is_free() const noexcept {
    return state == State::granted && holder == nullptr && !is_gone;
  }
};

// Who wants the same.
struct Line {
  std::uint32_t weight;
  std::chrono::nanoseconds lease;
  IntrusiveList<HeldLock> waiting;
  std::size_t waiting_count = 0;
  std::size_t pending = 0;  // tickets that are asked for or queued, and wanted
  std::size_t active = 0;   // the same, and those granted
};

class MutexWorkflow {
 public:
  MutexWorkflow(EngineState& engine, std::string resource, std::uint32_t capacity);
  MutexWorkflow(const MutexWorkflow&) = delete;
  MutexWorkflow& operator=(const MutexWorkflow&) = delete;
  ~MutexWorkflow();

  // Until it is idle, and in the engine's book no more.
  static Task<void> run(std::shared_ptr<MutexWorkflow> self);

  [[nodiscard]] const std::string& resource() const noexcept { return resource_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }

  // held->answered is set when it is held, or has an error.
  void enter(HeldLock& held);
  // Wherever it stands. Returns: whether held->given_back will be set.
  [[nodiscard]] bool leave(HeldLock& held);
  // One that waits has waited for long enough: it is over, and its error says why it was not served.
  void give_up(HeldLock& held);
  // One that waits or holds must end, because its engine does, or that one's loop.
  void abandon(HeldLock& held);

  void granted(TicketNumber number, TokenBlock tokens);
  void gone(TicketNumber number);
  // It is wanted for so long, at least, if nobody comes.
  void keep(std::chrono::nanoseconds idle_timeout);
  // Whoever waits is told that the engine has ended, whoever holds has lost it; ends as soon as everything is given back.
  void close();
  // Somebody who holds it must end.
  void lose(HeldLock& held, LossReason reason);
  // "orders/42: held with token 17 by loom app[4711], 2 wait, 1 lost (1 revoked), waited p99 131 ms, held p99 65 ms": for the
  // task tree.
  [[nodiscard]] std::string describe() const;

 private:
  using Tickets = std::map<TicketNumber, Ticket>;

  [[nodiscard]] Task<NurseryEnd> serve(Nursery& nursery);
  [[nodiscard]] std::int64_t now() const;
  [[nodiscard]] Line& line_of(const LockOrder& order);
  [[nodiscard]] std::size_t useful_tickets(const Line& line) const noexcept {
    return capacity_ / line.weight;
  }
  [[nodiscard]] bool is_idle() const noexcept {
    return lines_.empty() && tickets_.empty() && holders_ == 0;
  }

  // Brings tickets and tasks together, asks for more and gives back what is left over.
  void step();
  void count_tickets();
  // To the first that waits, if the lease has time left. Returns: whether it was.
  bool hand(Ticket& ticket);
  [[nodiscard]] bool may_pass_on(const Ticket& ticket) const;
  [[nodiscard]] bool is_taken_here(Line& line);
  void ask_for_one(Line& line);
  // The youngest that has not been granted.
  void drop_one(Line& line);

  // --- Requests to the store: children of the nursery.
  [[nodiscard]] Task<void> ask(TicketNumber number);
  [[nodiscard]] Task<void> give_back(TicketNumber number);
  [[nodiscard]] Task<void> renew();
  void begin_giving_back(TicketNumber number, Ticket& ticket);
  void end_asking(TicketNumber number, Ticket& ticket);
  void placed(TicketNumber number, Ticket& ticket, const Placed& answer);
  void forget_ticket(TicketNumber number);
  void forget_gone(TicketNumber number, Ticket& ticket);

  // --- Time.
  [[nodiscard]] std::int64_t lease_of(const Ticket& ticket) const noexcept {
    return ticket.request.lease.count();
  }
  [[nodiscard]] std::int64_t valid_until(const Ticket& ticket) const noexcept;
  [[nodiscard]] bool is_renewed(const Ticket& ticket) const noexcept;
  void set_renewed(Ticket& ticket, std::int64_t from);
  void check_leases();
  [[nodiscard]] std::chrono::nanoseconds until_next_alarm() const;

  // Why one that waits has not been served: an error of the store, if there was one.
  [[nodiscard]] LockError reason_to_give_up(const HeldLock& held) const;
  [[nodiscard]] bool is_unanswered(const HeldLock& held) const;
  // Out of the queue, and over.
  void fail(HeldLock& held, LockError error);
  void fail_all(Line& line, const LockError& error);
  void fail_all(const LockError& error);

  EngineState& engine_;
  const std::string resource_;
  const std::uint32_t capacity_;
  std::chrono::nanoseconds idle_timeout_{};
  std::list<Line> lines_;
  Tickets tickets_;
  Nursery* requests_ = nullptr;
  AutoEvent changed_{"a mutex workflow"};
  std::optional<LockError> trouble_;  // the last answer of the store, if it was one
  std::int64_t renew_again_at_ = 0;   // not before
  std::size_t holders_ = 0;           // tasks inside, also those that have lost it
  LossCounts lost_{};
  DurationHistogram waited_;
  DurationHistogram was_held_;
  bool kept_ = false;  // by somebody who has opened it, since the store was last told to forget it
  bool renewing_ = false;
  bool closing_ = false;
};

}  // namespace weft::inline v0::durable::detail
