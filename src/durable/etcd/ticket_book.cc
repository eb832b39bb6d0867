// SPDX-License-Identifier: MIT
#include "durable/etcd/ticket_book.h"

#include <algorithm>

namespace weft::inline v0::durable::etcd {

namespace {

constexpr int kTokenBits = 20;

bool waits(Phase phase) noexcept { return phase == Phase::asking || phase == Phase::queued; }

}  // namespace

TokenBlock tokens_of(Revision created) noexcept {
  return {.first = created << kTokenBits, .count = std::uint32_t{1} << kTokenBits};
}

Ticket& TicketBook::begin(const TicketRequest& request) {
  auto [at, is_new] = tickets_.try_emplace(request.number);
  Ticket& ticket = at->second;
  if (is_new) {
    ticket.resource = request.resource;
    ticket.key = keys_.ticket(request.resource, session_, request.number);
    ticket.capacity = request.capacity;
    hold_view(ticket);
  } else {
    enter(request.number, ticket, Phase::asking);
  }
  // A late copy of an earlier try may have been taken for a stray.
  strays_.erase(ticket.key);
  return ticket;
}

void TicketBook::place(TicketNumber number, const Place& place) {
  Ticket* ticket = find(number);
  if (!ticket) return;
  ticket->created = place.created;
  ticket->lease = place.lease;
  enter(number, *ticket, place.granted ? Phase::granted : Phase::queued);
  if (ticket->erased > ticket->created) {
    lose(number);
  } else if (!place.granted) {
    views_[ticket->resource].capacity = ticket->capacity;
    find_fitting(ticket->resource);
  }
}

void TicketBook::grant(TicketNumber number) {
  if (Ticket* ticket = find(number)) enter(number, *ticket, Phase::granted);
}

void TicketBook::end(TicketNumber number) {
  if (Ticket* ticket = find(number)) enter(number, *ticket, Phase::ending);
}

void TicketBook::forget(TicketNumber number, Revision absent) {
  const auto found = tickets_.find(number);
  if (found == tickets_.end()) return;
  const Ticket& ticket = found->second;
  if (ticket.seen > std::max(absent, ticket.erased)) add_stray(ticket.key, ticket.seen);
  enter(number, found->second, Phase::ending);
  tickets_.erase(found);
}

Ticket* TicketBook::find(TicketNumber number) {
  const auto found = tickets_.find(number);
  return found == tickets_.end() ? nullptr : &found->second;
}

void TicketBook::enter(TicketNumber number, Ticket& ticket, Phase phase) {
  if (phase != Phase::queued) fitting_.erase(number);
  const bool waited = waits(std::exchange(ticket.phase, phase));
  if (waits(phase) && !waited) hold_view(ticket);
  if (!waits(phase) && waited) drop_view(ticket);
}

void TicketBook::hold_view(const Ticket& ticket) { ++views_[ticket.resource].waiting; }

void TicketBook::drop_view(const Ticket& ticket) {
  const auto found = views_.find(ticket.resource);
  if (--found->second.waiting == 0) views_.erase(found);
}

void TicketBook::lose(TicketNumber number) {
  forget(number);
  gone_.push_back(number);
}

void TicketBook::find_fitting(const std::string& resource) {
  const auto view = views_.find(resource);
  if (view == views_.end()) return;
  view->second.queue.for_each_granted(view->second.capacity, [&](const std::string& key) {
    const std::optional<TicketKey> parsed = keys_.parse_ticket(key);
    if (!parsed || parsed->session != session_) return;
    const Ticket* ticket = find(parsed->number);
    if (ticket && ticket->phase == Phase::queued) fitting_.insert(parsed->number);
  });
}

void TicketBook::put(const KeyValue& pair) {
  const std::optional<TicketKey> parsed = keys_.parse_ticket(pair.key);
  if (!parsed) return;
  if (const auto view = views_.find(parsed->resource); view != views_.end()) {
    view->second.queue.put(pair);
    find_fitting(parsed->resource);
  }
  if (parsed->session != session_) return;
  if (Ticket* ticket = find(parsed->number)) {
    ticket->seen = std::max(ticket->seen, pair.created);
  } else {
    add_stray(pair.key, pair.created);
  }
}

void TicketBook::erase(const std::string& key, Revision revision) {
  const std::optional<TicketKey> parsed = keys_.parse_ticket(key);
  if (!parsed) return;
  if (parsed->session == session_) {
    strays_.erase(key);
    if (Ticket* ticket = find(parsed->number)) {
      ticket->erased = std::max(ticket->erased, revision);
      const bool is_known = ticket->phase == Phase::queued || ticket->phase == Phase::granted;
      if (is_known && revision > ticket->created) lose(parsed->number);
    }
  }
  if (const auto view = views_.find(parsed->resource); view != views_.end()) {
    view->second.queue.erase(key, revision);
    find_fitting(parsed->resource);
  }
}

bool TicketBook::list(const std::string& resource, std::span<const KeyValue> queue,
                      Revision revision) {
  const auto view = views_.find(resource);
  if (view == views_.end()) return false;
  const bool has_news = view->second.queue.list(queue, revision);
  find_fitting(resource);
  return has_news;
}

void TicketBook::list_all(std::span<const KeyValue> pairs, Revision revision) {
  std::unordered_map<std::string, std::vector<KeyValue>> queues;
  std::set<TicketNumber> there;
  for (const KeyValue& pair : pairs) {
    const std::optional<TicketKey> parsed = keys_.parse_ticket(pair.key);
    if (!parsed) continue;
    if (views_.contains(parsed->resource)) queues[parsed->resource].push_back(pair);
    if (parsed->session != session_) continue;
    there.insert(parsed->number);
    if (!find(parsed->number)) strays_.insert_or_assign(pair.key, pair.created);
  }
  std::vector<TicketNumber> lost;
  for (const auto& [number, ticket] : tickets_) {
    const bool is_known = ticket.phase == Phase::queued || ticket.phase == Phase::granted;
    if (is_known && ticket.created <= revision && !there.contains(number)) lost.push_back(number);
  }
  for (const TicketNumber number : lost) {
    Ticket& ticket = *find(number);
    ticket.erased = std::max(ticket.erased, revision);
    lose(number);
  }
  std::vector<std::string> seen;
  for (const auto& [resource, view] : views_) seen.push_back(resource);
  for (const std::string& resource : seen)
    static_cast<void>(list(resource, queues[resource], revision));
}

}  // namespace weft::inline v0::durable::etcd
