// SPDX-License-Identifier: MIT
#pragma once
// A LockTable in memory: gone with the process. The rules in their plainest form; SqliteTable is compared with it.
#include <map>
#include <vector>

#include "weft/atomic/atomic.h"
#include "weft/durable/lock_table.h"

namespace weft::inline v0::durable::detail {

class MemoryTable final : public LockTable {
 public:
  using Counter = ::weft::detail::Atomic<std::uint64_t>;

  MemoryTable() = default;
  // With tokens of a counter that outlives it, and that others draw from.
  explicit MemoryTable(Counter& tokens) noexcept : tokens_(&tokens) {}

  LockResult<> begin() override { return {}; }
  LockResult<> commit(bool) override;
  void rollback() noexcept override;

  LockResult<> join(const std::string& resource, std::uint32_t capacity, std::int64_t now) override;
  LockResult<Placed> enqueue(SessionId session, const TicketRequest& request,
                             std::int64_t now) override;
  LockResult<std::vector<TicketNumber>> renew(SessionId session,
                                              const std::vector<TicketNumber>& tickets,
                                              std::int64_t now) override;
  LockResult<> release(SessionId session, TicketNumber ticket, TokenBlock tokens,
                       std::int64_t now) override;
  LockResult<> withdraw(SessionId session, TicketNumber ticket, std::int64_t now) override;
  LockResult<bool> retire(const std::string& resource, std::int64_t now) override;
  LockResult<std::size_t> revoke(const std::string& resource, std::int64_t now) override;
  LockResult<std::vector<ResourceReport>> report(const std::optional<std::string>& resource,
                                                 std::int64_t now) override;
  LockResult<> expire(SessionId session, std::int64_t now) override;
  LockResult<State> state(SessionId session) override;

 private:
  struct Ticket {
    SessionId session;
    TicketNumber number;
    std::uint32_t weight;
    std::uint32_t tokens_wanted;
    std::int64_t lease;
    std::int64_t ends;   // its lease
    std::int64_t since;  // enqueued, or granted
    TokenBlock tokens;   // count 0: it waits
    std::string owner;

    [[nodiscard]] bool granted() const noexcept { return tokens.count > 0; }
  };
  // In order of arrival; those granted are in front, because nothing overtakes.
  struct Queue {
    std::uint32_t capacity;
    std::vector<Ticket> tickets;
  };
  using Queues = std::map<std::string, Queue>;
  struct Place {
    Queue* queue = nullptr;
    std::size_t index = 0;
    explicit operator bool() const noexcept { return queue != nullptr; }
    [[nodiscard]] Ticket& operator*() const { return queue->tickets[index]; }
  };

  [[nodiscard]] Place find(SessionId session, TicketNumber number);
  // Removes whose lease has ended, and grants who fits.
  void settle(Queue& queue, std::int64_t now);
  void grant(Ticket& ticket, std::int64_t now);
  void remove(Place place) {
    place.queue->tickets.erase(place.queue->tickets.begin() +
                               static_cast<std::ptrdiff_t>(place.index));
  }

  Queues queues_;
  Counter own_tokens_{1};
  Counter* tokens_ = &own_tokens_;
};

}  // namespace weft::inline v0::durable::detail
