// SPDX-License-Identifier: MIT
#include "durable/memory_table.h"

#include <algorithm>
#include <utility>

#include "durable/table_errors.h"
#include "weft/base/assert.h"

namespace weft::inline v0::durable::detail {

LockResult<> MemoryTable::commit(bool) {
  has_granted_ = false;
  return {};
}

void MemoryTable::rollback() noexcept {
  WEFT_ASSERT(false, "nothing in a table in memory can fail");
}

MemoryTable::Place MemoryTable::find(SessionId session, TicketNumber number) {
  for (auto& [name, queue] : queues_) {
    for (std::size_t i = 0; i < queue.tickets.size(); ++i) {
      const Ticket& ticket = queue.tickets[i];
      if (ticket.session == session && ticket.number == number) return {&queue, i};
    }
  }
  return {};
}

void MemoryTable::grant(Ticket& ticket, std::int64_t now) {
  ticket.tokens = {tokens_->fetch_add(ticket.tokens_wanted, ::weft::detail::relaxed),
                   ticket.tokens_wanted};
  ticket.since = now;
  has_granted_ = true;
}

void MemoryTable::settle(Queue& queue, std::int64_t now) {
  std::erase_if(queue.tickets, [&](const Ticket& ticket) {
    bool over = ticket.ends <= now;
    if (over) told_.push_back(ticket.session);
    return over;
  });
  std::uint64_t used = 0;
  for (Ticket& ticket : queue.tickets) {
    used += ticket.weight;
    if (used > queue.capacity) break;
    if (ticket.granted()) continue;
    grant(ticket, now);
    told_.push_back(ticket.session);
  }
}

LockResult<> MemoryTable::join(const std::string& resource, std::uint32_t capacity, std::int64_t) {
  auto [place, fresh] = queues_.try_emplace(resource, Queue{capacity, {}});
  if (place->second.capacity != capacity)
    return other_capacity(resource, place->second.capacity, capacity);
  return {};
}

LockResult<Placed> MemoryTable::enqueue(SessionId session, const TicketRequest& request,
                                        std::int64_t now) {
  if (LockResult<> joined = join(request.resource, request.capacity, now); !joined) {
    return std::unexpected(joined.error());
  }
  Queue& queue = queues_.at(request.resource);
  settle(queue, now);
  Place place = find(session, request.number);
  if (!place) {
    std::uint64_t used = request.weight;
    for (const Ticket& ticket : queue.tickets) used += ticket.weight;
    bool fits = used <= queue.capacity;
    auto ahead = static_cast<std::uint32_t>(queue.tickets.size());
    if (!fits && request.only_if_free) return Placed{Standing::refused, {}, ahead};
    std::int64_t lease = request.lease.count();
    queue.tickets.push_back({session,
                             request.number,
                             request.weight,
                             request.tokens,
                             lease,
                             now + lease,
                             now,
                             {},
                             request.owner});
    place = {&queue, queue.tickets.size() - 1};
    if (fits) grant(*place, now);
  }
  if ((*place).granted()) return Placed{Standing::granted, (*place).tokens, 0};
  return Placed{Standing::queued, {}, static_cast<std::uint32_t>(place.index)};
}

LockResult<std::vector<TicketNumber>> MemoryTable::renew(SessionId session,
                                                         const std::vector<TicketNumber>& tickets,
                                                         std::int64_t now) {
  std::vector<TicketNumber> gone;
  for (TicketNumber number : tickets) {
    Place place = find(session, number);
    if (place && (*place).ends <= now) {
      settle(*place.queue, now);
      place = {};
    }
    if (place) {
      (*place).ends = now + (*place).lease;
    } else {
      gone.push_back(number);
    }
  }
  return gone;
}

LockResult<> MemoryTable::release(SessionId session, TicketNumber ticket, TokenBlock tokens,
                                  std::int64_t now) {
  Place place = find(session, ticket);
  bool ours = place && (*place).granted() && (*place).tokens == tokens && (*place).ends > now;
  if (ours) remove(place);
  if (place) settle(*place.queue, now);
  if (!ours) return no_such_ticket();
  return {};
}

LockResult<> MemoryTable::withdraw(SessionId session, TicketNumber ticket, std::int64_t now) {
  Place place = find(session, ticket);
  if (place) {
    remove(place);
    settle(*place.queue, now);
  }
  return {};
}

LockResult<bool> MemoryTable::retire(const std::string& resource, std::int64_t now) {
  auto place = queues_.find(resource);
  if (place == queues_.end()) return true;
  settle(place->second, now);
  if (!place->second.tickets.empty()) return false;
  queues_.erase(place);
  return true;
}

LockResult<std::size_t> MemoryTable::revoke(const std::string& resource, std::int64_t now) {
  auto place = queues_.find(resource);
  if (place == queues_.end()) return 0;
  settle(place->second, now);
  for (const Ticket& ticket : place->second.tickets) told_.push_back(ticket.session);
  std::size_t count = place->second.tickets.size();
  queues_.erase(place);
  return count;
}

LockResult<std::vector<ResourceReport>> MemoryTable::report(
    const std::optional<std::string>& resource, std::int64_t now) {
  std::vector<ResourceReport> all;
  for (const auto& [name, queue] : queues_) {
    if (resource && *resource != name) continue;
    ResourceReport one{name, queue.capacity, {}};
    for (const Ticket& ticket : queue.tickets) {
      one.tickets.push_back({ticket.owner, ticket.granted(), ticket.tokens.first, ticket.weight,
                             std::chrono::nanoseconds(now - ticket.since),
                             std::chrono::nanoseconds(ticket.ends - now)});
    }
    all.push_back(std::move(one));
  }
  return all;
}

LockResult<> MemoryTable::expire(SessionId session, std::int64_t now) {
  for (auto& [name, queue] : queues_) {
    bool has_ours = std::ranges::any_of(
        queue.tickets, [&](const Ticket& ticket) { return ticket.session == session; });
    if (has_ours) settle(queue, now);
  }
  return {};
}

LockResult<LockTable::State> MemoryTable::state(SessionId session) {
  State state;
  for (const auto& [name, queue] : queues_) {
    std::optional<std::int64_t> first_end;
    for (const Ticket& ticket : queue.tickets) {
      if (ticket.session == session) {
        state.tickets.push_back({ticket.number, ticket.granted(), ticket.tokens});
        if (!ticket.granted() && first_end && (!state.expire_at || *first_end < *state.expire_at)) {
          state.expire_at = first_end;
        }
      }
      if (!first_end || ticket.ends < *first_end) first_end = ticket.ends;
    }
  }
  return state;
}

}  // namespace weft::inline v0::durable::detail
