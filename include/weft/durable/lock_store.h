// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::LockStore: what a lock engine is. Users read mutex.h; this is for who writes an engine.
//
// A store keeps, per resource, a queue of tickets between processes (docs/design/durable_mutex.md). Tickets are granted in
// the order of arrival, and the first that waits only if it fits: the weights of those granted, and its own, are at most the
// capacity. A ticket ends by release(), withdraw(), the end of its lease, or revoke().
//
// A session is one store object: one process, or one of several engines in one. Its tickets have numbers, given by the
// caller and never used twice: a call that is repeated with the same number finds its work done.
//
// Every answer follows the commit of what it says. What happens to a ticket unasked comes to the Listener.
//
// Threads        the loop that called open().
// Cancellation   a cancelled call may have been carried out or not. enqueue() is followed by withdraw() then.
// Errors         LockError::unreachable: the outcome is unknown, ask again. Each call ends within a bound of the store's own.
//                All others are final.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/core/task.h"
#include "weft/durable/lock_error.h"

namespace weft::inline v0::durable {

using TicketNumber = std::uint64_t;

// Fencing tokens first, first + 1 … first + count - 1, for the tasks through whose hands a ticket goes.
struct TokenBlock {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const TokenBlock&, const TokenBlock&) = default;
};

struct TicketRequest {
  std::string resource;
  TicketNumber number = 0;
  std::uint32_t weight = 1;
  std::uint32_t capacity = 1;
  std::chrono::nanoseconds lease{};
  std::uint32_t tokens = 1;   // wanted in the block, at least
  std::string owner;          // for people: who asks
  bool only_if_free = false;  // rather no ticket than one that waits
};

enum class Standing {
  queued,
  granted,
  refused,  // only_if_free, and it is not: there is no ticket
};

struct Placed {
  Standing standing = Standing::queued;
  TokenBlock tokens;        // if granted
  std::uint32_t ahead = 0;  // if queued or refused: tickets before it, those granted among them
};

// A ticket as others see it.
struct TicketReport {
  std::string owner;
  bool granted = false;
  std::uint64_t token = 0;  // the first of its block
  std::uint32_t weight = 1;
  std::chrono::nanoseconds age{};         // since it was enqueued; if granted, since then
  std::chrono::nanoseconds lease_left{};  // negative: it has ended, and nobody has looked yet
};
struct ResourceReport {
  std::string resource;
  std::uint32_t capacity = 1;
  std::vector<TicketReport> tickets;  // in order: those granted, then the queue
};

class LockStore {
 public:
  class Listener {
   public:
    // A queued ticket was granted. May come again, late, and before enqueue() has returned.
    virtual void granted(TicketNumber ticket, TokenBlock tokens) = 0;
    // The store has no such ticket any more.
    virtual void gone(TicketNumber ticket) = 0;

   protected:
    ~Listener() = default;
  };

  LockStore() = default;
  LockStore(const LockStore&) = delete;
  LockStore& operator=(const LockStore&) = delete;
  virtual ~LockStore() = default;

  // Before all else: reaches the store, makes what it needs there, begins the session. The listener outlives the store.
  virtual Task<LockResult<>> open(Listener& listener) = 0;
  // What the store has to do all the time, until cancelled: watch, expire, wake. Started after open().
  virtual Task<void> run() = 0;
  // After run() has ended: ends the session. Tickets that are left end with their leases.
  virtual Task<void> close() = 0;

  // Makes sure that the resource is there, with this capacity: mismatch if it is there with another.
  virtual Task<LockResult<>> join(const std::string& resource, std::uint32_t capacity) = 0;
  virtual Task<LockResult<Placed>> enqueue(const TicketRequest& request) = 0;
  // Begins the leases anew of those that are there. Returns: those that are not.
  virtual Task<LockResult<std::vector<TicketNumber>>> renew(std::vector<TicketNumber> tickets) = 0;
  // not_owner: there is no such ticket, or it has other tokens.
  virtual Task<LockResult<>> release(TicketNumber ticket, TokenBlock tokens) = 0;
  // Afterwards there is no such ticket, granted or not.
  virtual Task<LockResult<>> withdraw(TicketNumber ticket) = 0;
  // Forgets the resource if it has no ticket, of anybody. Returns: whether it is forgotten.
  virtual Task<LockResult<bool>> retire(const std::string& resource) = 0;
  // Ends every ticket of the resource, and forgets it. Returns: how many.
  virtual Task<LockResult<std::size_t>> revoke(const std::string& resource) = 0;
  // One resource, or all that are there.
  virtual Task<LockResult<std::vector<ResourceReport>>> report(
      std::optional<std::string> resource) = 0;

  // The clock that leases are measured on, in nanoseconds: one that goes on while the machine is suspended. Any thread.
  [[nodiscard]] virtual std::int64_t lease_clock() const;

  // "sqlite:///var/lib/locks.db": for messages.
  [[nodiscard]] virtual std::string url() const = 0;
};

}  // namespace weft::inline v0::durable
