// SPDX-License-Identifier: MIT
#include "durable/etcd/etcd_store.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <random>
#include <set>
#include <span>
#include <utility>

#include "durable/etcd/http_transport.h"
#include "durable/etcd/malformed.h"
#include "weft/core/combinators.h"

namespace weft::inline v0::durable {

using namespace etcd;

namespace {

std::uint64_t fresh_session() {
  std::random_device dice;
  return std::uint64_t{dice()} << 32 | dice();
}

std::unexpected<LockError> error_of(const Failure& failure) {
  return std::unexpected(failure.lock_error());
}

}  // namespace

EtcdStore::EtcdStore(EtcdOptions options, std::unique_ptr<Transport> transport)
    : options_(std::move(options)),
      session_(fresh_session()),
      keys_(options_.prefix),
      client_(options_,
              transport ? std::move(transport) : std::make_unique<HttpTransport>(options_)),
      leases_(client_, [this] { return lease_clock(); }),
      book_(keys_, session_) {}

EtcdStore::~EtcdStore() = default;

LockResult<std::unique_ptr<LockStore>> make_etcd_store(std::string_view url) {
  LockResult<EtcdOptions> options = parse_etcd_url(url);
  if (!options) return std::unexpected(std::move(options.error()));
  LockResult<> loaded = load_certificates(*options);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  return std::make_unique<EtcdStore>(std::move(*options));
}

Task<Outcome<Reply>> EtcdStore::commit(Txn txn, TimePoint deadline) {
  return client_.call("/v3/kv/txn", txn.take(), deadline);
}

// --- The session ----------------------------------------------------------------------------------

Task<LockResult<>> EtcdStore::open(Listener& listener) {
  listener_ = &listener;
  const std::string key = keys_.schema();
  Txn txn;
  txn.if_created_at(key, 0).then_put(key, kSchemaVersion).else_range(Keyspan::one(key));
  Outcome<Reply> reply = co_await commit(std::move(txn), client_.deadline());
  if (!reply) co_return error_of(reply.error());
  watched_ = read_revision(reply->json);
  if (watched_ == 0) co_return malformed();
  if (reply->json["succeeded"].is_true()) co_return {};
  const auto pairs = range_at(reply->json, 0);
  if (!pairs || pairs->empty()) co_return malformed();
  if (pairs->front().value == kSchemaVersion) co_return {};
  std::string text =
      url() + " has locks of version " + pairs->front().value + ", and this program knows version ";
  text.append(kSchemaVersion).append("; use another prefix, or programs of one version");
  co_return std::unexpected(LockError(LockError::mismatch, text));
}

Task<void> EtcdStore::close() {
  // What cannot be reached ends by itself: one attempt's time is enough.
  const TimePoint deadline = now() + options_.attempt_timeout;
  co_await leases_.revoke_all(deadline);
  listener_ = nullptr;
}

Task<Outcome<LeaseId>> EtcdStore::capacity_lease(TimePoint deadline) {
  if (capacity_lease_ != 0 && now() < capacity_lease_until_) co_return capacity_lease_;
  const TimePoint until = now() + kCapacityLease / 2;
  Outcome<LeaseId> lease = co_await leases_.obtain(kCapacityLease, deadline);
  if (!lease) co_return lease;
  capacity_lease_ = *lease;
  capacity_lease_until_ = until;
  co_return lease;
}

// A capacity may have ended before its tickets: then they say what it was, and it is put only if there are no others since.
Task<LockResult<>> EtcdStore::join(const std::string& resource, std::uint32_t capacity) {
  const TimePoint deadline = client_.deadline();
  const std::string key = keys_.capacity(resource);
  Revision not_after = 0;
  while (now() < deadline) {
    Outcome<LeaseId> lease = co_await capacity_lease(deadline);
    if (!lease) co_return error_of(lease.error());
    Txn txn;
    txn.if_created_at(key, 0).if_all_created_by(keys_.tickets(resource), not_after);
    txn.then_put(key, std::to_string(capacity), *lease);
    txn.else_range(Keyspan::one(key)).else_range(keys_.tickets(resource));
    Outcome<Reply> reply = co_await commit(std::move(txn), deadline);
    if (!reply && reply.error().code() == Code::not_found) {
      capacity_lease_ = 0;
      continue;
    }
    if (!reply) co_return error_of(reply.error());
    if (reply->json["succeeded"].is_true()) {
      expect_event(read_revision(reply->json));
      co_return {};
    }
    const auto pairs = range_at(reply->json, 0), queue = range_at(reply->json, 1);
    if (!pairs || !queue) co_return malformed();
    if (!pairs->empty()) co_return check_capacity(resource, capacity, pairs->front().value);
    LockResult<> checked = check_capacities(resource, capacity, *queue);
    if (!checked) co_return checked;
    not_after = read_revision(reply->json);
  }
  co_return std::unexpected(LockError(LockError::unreachable, "others were always faster"));
}

// --- Tickets --------------------------------------------------------------------------------------

Task<LockResult<std::vector<TicketNumber>>> EtcdStore::renew(std::vector<TicketNumber> tickets) {
  const TimePoint deadline = client_.deadline();
  std::vector<TicketNumber> missing;
  std::vector<Task<Outcome<bool>>> calls;  // the pool of connections bounds them
  std::erase_if(tickets, [&](TicketNumber number) {
    const Ticket* ticket = book_.find(number);
    if (!ticket) missing.push_back(number);
    if (ticket && ticket->lease != 0) calls.push_back(leases_.keep_alive(ticket->lease, deadline));
    return !ticket;
  });
  auto alive = co_await all_of(std::move(calls));
  if (!alive) co_return error_of(alive.error());
  // Who is there is read after that: a lease that has ended has taken its tickets with it.
  LockResult<> looked = co_await look_at(std::move(tickets), missing, deadline);
  if (!looked) co_return std::unexpected(std::move(looked.error()));
  co_return missing;
}

Task<LockResult<>> EtcdStore::look_at(std::vector<TicketNumber> tickets,
                                      std::vector<TicketNumber>& missing, TimePoint deadline) {
  constexpr std::size_t kAtOnce = Txn::kOperationsMax / 2;  // a ticket, and its queue
  for (std::size_t from = 0; from < tickets.size(); from += kAtOnce) {
    const auto begin = tickets.begin() + static_cast<std::ptrdiff_t>(from);
    const std::size_t count = std::min(kAtOnce, tickets.size() - from);
    std::vector<TicketNumber> some(begin, begin + static_cast<std::ptrdiff_t>(count));
    LockResult<> looked = co_await look_at_some(std::move(some), missing, deadline);
    if (!looked) co_return looked;
  }
  co_return {};
}

// The queues as well: a watch may be slow, or dead without saying so, and this is the second way to a grant.
Task<LockResult<>> EtcdStore::look_at_some(std::vector<TicketNumber> tickets,
                                           std::vector<TicketNumber>& missing, TimePoint deadline) {
  Txn txn;
  std::set<std::string> resources;
  // Who has left the book meanwhile was given back, or is told as gone.
  std::erase_if(tickets, [&](TicketNumber number) {
    const Ticket* ticket = book_.find(number);
    if (ticket) txn.then_range(Keyspan::one(ticket->key), Wanted::keys);
    if (ticket && ticket->phase == Phase::queued) resources.insert(ticket->resource);
    return !ticket;
  });
  if (tickets.empty()) co_return {};
  for (const std::string& resource : resources) txn.then_range(keys_.tickets(resource));
  Outcome<Reply> reply = co_await commit(std::move(txn), deadline);
  if (!reply) co_return error_of(reply.error());
  std::size_t at = 0;
  for (const TicketNumber number : tickets) {
    const auto pairs = range_at(reply->json, at++);
    if (!pairs) co_return malformed();
    const Ticket* ticket = book_.find(number);
    // Who is asked for, or given back, at this moment hears from that.
    const bool is_known =
        ticket && (ticket->phase == Phase::queued || ticket->phase == Phase::granted);
    if (!pairs->empty() || !is_known) continue;
    book_.forget(number, read_revision(reply->json));
    missing.push_back(number);
  }
  const Revision revision = read_revision(reply->json);
  for (const std::string& resource : resources) {
    const auto queue = range_at(reply->json, at++);
    if (!queue) co_return malformed();
    if (book_.list(resource, *queue, revision)) expect_event(watched_ + 1);
  }
  wake_settling();
  co_return {};
}

Task<LockResult<>> EtcdStore::release(TicketNumber number, TokenBlock tokens) {
  const LockError not_owner(LockError::not_owner,
                            "there is no such ticket, or it has other tokens");
  Ticket* ticket = book_.find(number);
  const bool is_held = ticket && (ticket->phase == Phase::granted || ticket->release_in_doubt);
  if (!is_held || tokens != tokens_of(ticket->created)) co_return std::unexpected(not_owner);
  book_.end(number);
  const bool was_in_doubt = std::exchange(ticket->release_in_doubt, true);  // if cancelled, too
  Txn txn;
  txn.if_created_at(ticket->key, ticket->created).then_delete(Keyspan::one(ticket->key));
  Outcome<Reply> reply = co_await commit(std::move(txn), client_.deadline());
  if (!reply) co_return not_ended(number, reply.error());
  has_ended(number, read_revision(reply->json));
  if (reply->json["succeeded"].is_true()) {
    expect_event(read_revision(reply->json));
    co_return {};
  }
  // It is gone. If an attempt of ours may have been carried out, it was that.
  if (reply->repeated || was_in_doubt) co_return {};
  co_return std::unexpected(not_owner);
}

Task<LockResult<>> EtcdStore::withdraw(TicketNumber number) {
  Ticket* ticket = book_.find(number);
  if (!ticket) co_return {};
  book_.end(number);
  // Unconditionally: the key is this ticket's alone, whenever it was made.
  std::string json = delete_request(Keyspan::one(ticket->key));
  Outcome<Reply> reply =
      co_await client_.call("/v3/kv/deleterange", std::move(json), client_.deadline());
  if (!reply) co_return not_ended(number, reply.error());
  has_ended(number, read_revision(reply->json));
  if (reply->json["deleted"].integer().value_or(0) > 0) expect_event(read_revision(reply->json));
  co_return {};
}

void EtcdStore::has_ended(TicketNumber number, Revision revision) {
  doubtful_.erase(number);
  if (const Ticket* ticket = book_.find(number); ticket && ticket->is_clean)
    leases_.spare(ticket->lease);
  book_.forget(number, revision);
  wake_settling();
}

std::unexpected<LockError> EtcdStore::not_ended(TicketNumber number, const Failure& failure) {
  LockError error = failure.lock_error();
  if (error.is_passing()) {
    doubtful_.insert(number);  // to be asked again
  } else {
    book_.forget(number);
  }
  return std::unexpected(std::move(error));
}

void EtcdStore::forget_doubtful() {
  std::erase_if(doubtful_, [&](TicketNumber number) {
    const Ticket* ticket = book_.find(number);
    const bool is_over = !ticket || leases_.has_ended(ticket->lease);
    if (ticket && is_over) book_.forget(number);
    return is_over;
  });
}

// --- Resources ------------------------------------------------------------------------------------

Task<LockResult<bool>> EtcdStore::retire(const std::string& resource) {
  Txn txn;
  txn.if_all_created_by(keys_.tickets(resource), 0);
  txn.then_delete(Keyspan::one(keys_.capacity(resource)));
  Outcome<Reply> reply = co_await commit(std::move(txn), client_.deadline());
  if (!reply) co_return error_of(reply.error());
  co_return reply->json["succeeded"].is_true();
}

Task<LockResult<std::size_t>> EtcdStore::revoke(const std::string& resource) {
  Txn txn;
  txn.then_delete(keys_.tickets(resource)).then_delete(Keyspan::one(keys_.capacity(resource)));
  Outcome<Reply> reply = co_await commit(std::move(txn), client_.deadline());
  if (!reply) co_return error_of(reply.error());
  const auto responses = reply->json["responses"].items();
  if (responses.size() != 2) co_return malformed();
  const std::optional<std::int64_t> deleted =
      responses[0]["response_delete_range"]["deleted"].integer();
  if (!deleted || *deleted < 0) co_return malformed();
  if (*deleted > 0) expect_event(read_revision(reply->json));
  co_return static_cast<std::size_t>(*deleted);
}

void EtcdStore::expect_event(Revision revision) {
  if (revision <= watched_) return;
  expected_ = std::max(expected_, revision);
  doubt_.set();
}

void EtcdStore::wake_settling() {
  if (book_.has_gone() || !book_.fitting().empty()) news_.set();
  if (book_.has_strays()) strays_.set();
}

}  // namespace weft::inline v0::durable
