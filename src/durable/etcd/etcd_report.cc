// SPDX-License-Identifier: MIT
// EtcdStore::report(): who holds and who waits, from one list, and how long their leases have left.
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "durable/etcd/etcd_store.h"
#include "durable/etcd/malformed.h"
#include "weft/core/combinators.h"

namespace weft::inline v0::durable {

using namespace etcd;

namespace {

struct Queue {
  std::uint32_t capacity = 0;  // 0: not said
  std::vector<KeyValue> tickets;
};

std::map<std::string, Queue> by_resource(const Keys& keys, const std::vector<KeyValue>& pairs) {
  std::map<std::string, Queue> all;
  for (const KeyValue& pair : pairs) {
    if (std::optional<std::string> resource = keys.parse_capacity(pair.key)) {
      const char* end = pair.value.data() + pair.value.size();
      std::from_chars(pair.value.data(), end, all[*resource].capacity);
    } else if (std::optional<TicketKey> ticket = keys.parse_ticket(pair.key)) {
      all[ticket->resource].tickets.push_back(pair);
    }
  }
  return all;
}

using Left = std::map<LeaseId, std::chrono::nanoseconds>;

ResourceReport describe(std::string resource, const Queue& queue, const Left& left) {
  ResourceReport report;
  report.resource = std::move(resource);
  report.capacity = queue.capacity;
  std::uint64_t taken = 0;
  for (const KeyValue& pair : queue.tickets) {
    TicketValue value = read_ticket(pair.value);
    if (report.capacity == 0) report.capacity = value.capacity;
    taken += value.weight;
    TicketReport ticket;
    ticket.granted = taken <= report.capacity;
    ticket.owner = std::move(value.owner);
    ticket.weight = value.weight;
    if (ticket.granted) ticket.token = tokens_of(pair.created).first;
    // By the clock of who enqueued it, which may be ahead of ours.
    const auto age = std::chrono::system_clock::now() - value.enqueued;
    ticket.age = std::max<std::chrono::nanoseconds>(age, std::chrono::nanoseconds::zero());
    if (const auto found = left.find(pair.lease); found != left.end())
      ticket.lease_left = found->second;
    report.tickets.push_back(std::move(ticket));
  }
  return report;
}

std::vector<LeaseId> leases_in(const std::vector<KeyValue>& pairs) {
  std::vector<LeaseId> leases;
  for (const KeyValue& pair : pairs) {
    if (pair.lease != 0) leases.push_back(pair.lease);
  }
  std::ranges::sort(leases);
  const auto twice = std::ranges::unique(leases);
  leases.erase(twice.begin(), twice.end());
  return leases;
}

// etcd has no question for all of them at once. So several are asked for at a time, as many as keep the connections busy.
constexpr std::size_t kQuestionsMax = 16;

Task<LockResult<Left>> time_left(Client& client, std::vector<LeaseId> leases, TimePoint deadline) {
  LockResult<Left> left;
  std::size_t next = 0;
  auto ask = [&]() -> Task<void> {
    while (left && next < leases.size()) {
      const LeaseId lease = leases[next++];
      std::string json = lease_request(lease);
      Outcome<Reply> reply =
          co_await client.call("/v3/lease/timetolive", std::move(json), deadline);
      if (!left) co_return;  // somebody else has failed meanwhile
      if (!reply) {
        left = std::unexpected(reply.error().lock_error());
        co_return;
      }
      (*left)[lease] = std::chrono::seconds(
          std::clamp<std::int64_t>(reply->json["TTL"].integer().value_or(-1), -1, 1'000'000'000));
    }
  };
  std::vector<Task<void>> asking;
  while (asking.size() < std::min(kQuestionsMax, leases.size())) asking.push_back(ask());
  co_await all_of(std::move(asking));
  co_return left;
}

}  // namespace

Task<LockResult<std::vector<ResourceReport>>> EtcdStore::report(
    std::optional<std::string> resource) {
  const TimePoint deadline = client_.deadline();
  std::string json = range_request(resource ? keys_.resource(*resource) : keys_.resources());
  Outcome<Reply> reply = co_await client_.call("/v3/kv/range", std::move(json), deadline);
  if (!reply) co_return std::unexpected(reply.error().lock_error());
  const auto pairs = read_key_values(reply->json);
  if (!pairs) co_return malformed();
  LockResult<Left> left = co_await time_left(client_, leases_in(*pairs), deadline);
  if (!left) co_return std::unexpected(left.error());
  std::vector<ResourceReport> all;
  for (const auto& [name, queue] : by_resource(keys_, *pairs))
    all.push_back(describe(name, queue, *left));
  co_return all;
}

}  // namespace weft::inline v0::durable
