// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::LockTable: the queue of every resource, as plain calls. In memory (MemoryTable) or in a file (SqliteTable).
//
// The rules are those of lock_store.h, with time given by the caller: a table has no clock, no thread and no coroutine. Who
// must hear of a call is appended to `told`: sessions one of whose tickets was granted or ended by somebody else's call.
//
// Several calls make one commit: begin() … commit(). A table that is not in a commit begins one for each call. If commit()
// fails, or rollback() is called, none of them has happened.
//
// Time is in nanoseconds on a clock that all sessions share. Whose lease has ended is removed before anything else is done
// with its resource: a ticket is never granted, renewed or released after its end.
//
// Threads        one at a time.
// Errors         LockError::storage, mismatch, not_owner; unreachable, only from begin(): others have kept the table locked.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/durable/lock_store.h"

namespace weft::inline v0::durable {

// A session's name in a table: random, never used again.
using SessionId = std::uint64_t;

class LockTable {
 public:
  // What a session has in the table.
  struct Mine {
    TicketNumber number = 0;
    bool granted = false;
    TokenBlock tokens;
  };
  struct State {
    std::vector<Mine> tickets;
    // When to call expire(): the first end of a lease among the tickets that ours wait for. None: ours wait for nobody.
    std::optional<std::int64_t> expire_at;
  };

  LockTable() = default;
  LockTable(const LockTable&) = delete;
  LockTable& operator=(const LockTable&) = delete;
  virtual ~LockTable() = default;

  virtual LockResult<> begin() = 0;
  // durable: it outlives a power cut. What was granted must be committed so; what was given back need not be.
  virtual LockResult<> commit(bool durable) = 0;
  virtual void rollback() noexcept = 0;

  virtual LockResult<> join(const std::string& resource, std::uint32_t capacity,
                            std::int64_t now) = 0;
  virtual LockResult<Placed> enqueue(SessionId session, const TicketRequest& request,
                                     std::int64_t now) = 0;
  virtual LockResult<std::vector<TicketNumber>> renew(SessionId session,
                                                      const std::vector<TicketNumber>& tickets,
                                                      std::int64_t now) = 0;
  virtual LockResult<> release(SessionId session, TicketNumber ticket, TokenBlock tokens,
                               std::int64_t now) = 0;
  virtual LockResult<> withdraw(SessionId session, TicketNumber ticket, std::int64_t now) = 0;
  virtual LockResult<bool> retire(const std::string& resource, std::int64_t now) = 0;
  virtual LockResult<std::size_t> revoke(const std::string& resource, std::int64_t now) = 0;
  virtual LockResult<std::vector<ResourceReport>> report(const std::optional<std::string>& resource,
                                                         std::int64_t now) = 0;
  // Removes whose lease has ended, on every resource where this session has a ticket, and grants who is next.
  virtual LockResult<> expire(SessionId session, std::int64_t now) = 0;
  virtual LockResult<State> state(SessionId session) = 0;

  // Sessions to be told, since this was last taken. Some may stand there twice.
  [[nodiscard]] std::vector<SessionId> take_told() { return std::exchange(told_, {}); }
  // True since the last commit(): a ticket was granted, so the next one must be durable.
  [[nodiscard]] bool has_granted() const noexcept { return has_granted_; }

 protected:
  std::vector<SessionId> told_;
  bool has_granted_ = false;
};

}  // namespace weft::inline v0::durable
