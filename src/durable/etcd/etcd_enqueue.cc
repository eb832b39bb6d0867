// SPDX-License-Identifier: MIT
// EtcdStore::enqueue(): one transaction, if nothing gets in its way; a few if others are at the same resource.
#include <algorithm>
#include <charconv>
#include <utility>

#include "durable/etcd/etcd_store.h"
#include "durable/etcd/malformed.h"
#include "weft/core/combinators.h"

namespace weft::inline v0::durable {

using namespace etcd;

namespace {

// Each round but the first is somebody else's progress.
constexpr int kRoundsMax = 32;

LockResult<> check(const TicketRequest& request) {
  const auto wrong = [](const char* what) {
    return std::unexpected(LockError(LockError::invalid, what));
  };
  if (request.resource.empty()) return wrong("a resource has a name");
  if (request.weight == 0 || request.weight > request.capacity) {
    return wrong("the weight of a ticket is at least 1 and at most the capacity");
  }
  if (request.lease <= request.lease.zero()) return wrong("a lease is longer than nothing");
  if (request.tokens > EtcdStore::kTokensMax)
    return wrong("etcd gives 1048576 tokens at once, and no more");
  return {};
}

}  // namespace

class EtcdStore::Placing {
 public:
  Placing(EtcdStore& store, const TicketRequest& request)
      : store_(store), request_(request), deadline_(store.client_.deadline()) {
    TicketValue value;
    value.owner = request.owner;
    value.weight = request.weight;
    value.capacity = request.capacity;
    value.enqueued = std::chrono::system_clock::now();
    value_ = write_ticket(value);
    is_first_ = store.book_.find(request.number) == nullptr;
    Ticket& ticket = store.book_.begin(request);
    ticket.is_clean = false;
    key_ = ticket.key;
  }

  Task<LockResult<Placed>> operator()() {
    for (int round = 0; round < kRoundsMax; ++round) {
      Outcome<LeaseId> lease = co_await obtain_lease();
      if (!lease) co_return std::unexpected(lease.error().lock_error());
      if (!is_capacity_there_) {
        Outcome<LeaseId> other = co_await store_.capacity_lease(deadline_);
        if (!other) co_return std::unexpected(other.error().lock_error());
        capacity_lease_ = *other;
      }
      Outcome<Reply> reply = co_await put(*lease);
      if (!reply && reply.error().code() == Code::not_found) {
        store_.leases_.drop(*lease);
        store_.capacity_lease_ = 0;  // it may have been that one
        continue;
      }
      if (!reply) co_return std::unexpected(reply.error().lock_error());
      was_repeated_ = was_repeated_ || reply->repeated;
      LockResult<std::optional<Placed>> placed = co_await read(reply->json, *lease);
      if (!placed) co_return std::unexpected(std::move(placed.error()));
      if (*placed) co_return **placed;
    }
    co_return std::unexpected(
        LockError(LockError::unreachable,
                  "others were always faster, " + std::to_string(kRoundsMax) + " times"));
  }

  // Every attempt to put it has been answered: none comes late.
  [[nodiscard]] bool is_clean() const noexcept { return is_first_ && !was_repeated_; }

 private:
  // The ticket's own, of an earlier try too: what that one has put is under it.
  Task<Outcome<LeaseId>> obtain_lease() {
    const Ticket* ticket = store_.book_.find(request_.number);
    if (ticket && !store_.leases_.has_ended(ticket->lease)) co_return ticket->lease;
    Outcome<LeaseId> lease = co_await store_.leases_.obtain(request_.lease, deadline_);
    if (!lease) co_return lease;
    if (Ticket* placed = store_.book_.find(request_.number)) placed->lease = *lease;
    co_return lease;
  }

  // Puts the ticket under the lease, which at the same time begins anew if it must.
  Task<Outcome<Reply>> put(LeaseId lease) {
    if (!store_.leases_.needs_keep_alive(lease, request_.lease)) {
      co_return co_await store_.commit(txn(lease), deadline_);
    }
    auto both = co_await all_of(store_.leases_.keep_alive(lease, deadline_),
                                store_.commit(txn(lease), deadline_));
    if (!both) co_return std::unexpected(both.error());
    auto& [is_alive, reply] = *both;
    // With it went what was put.
    if (!is_alive)
      co_return std::unexpected(Failure(Failure::refused, Code::not_found, "the lease has ended"));
    co_return std::move(reply);
  }

  // If the ticket is not there, and the capacity is ours: the ticket. The queue in any case.
  [[nodiscard]] Txn txn(LeaseId lease) const {
    const std::string capacity_key = store_.keys_.capacity(request_.resource);
    const std::string capacity = std::to_string(request_.capacity);
    const Keyspan queue = store_.keys_.tickets(request_.resource);
    Txn txn;
    txn.if_created_at(key_, 0);
    if (request_.only_if_free || !is_capacity_there_) txn.if_all_created_by(queue, not_after_);
    if (is_capacity_there_) {
      txn.if_value(capacity_key, capacity);
    } else {
      txn.if_created_at(capacity_key, 0).then_put(capacity_key, capacity, capacity_lease_);
    }
    txn.then_put(key_, value_, lease).then_range(queue);
    return std::move(txn.else_range(Keyspan::one(capacity_key)).else_range(queue));
  }

  // Nothing: once more.
  Task<LockResult<std::optional<Placed>>> read(const Json& answer, LeaseId lease) {
    const bool succeeded = answer["succeeded"].is_true();
    const Revision revision = read_revision(answer);
    const std::size_t where = succeeded ? (is_capacity_there_ ? 1 : 2) : 1;
    const auto queue = range_at(answer, where);
    if (!queue || revision == 0) co_return malformed();
    if (store_.book_.list(request_.resource, *queue, revision))
      store_.expect_event(store_.watched_ + 1);
    const Place place = find_place(*queue, key_, request_.capacity);
    if (succeeded && !place.is_there) co_return malformed();
    if (succeeded) store_.expect_event(revision);
    if (place.is_there) {
      if (place.lease != lease) {
        // Of an earlier try, under an older lease: that one must have its whole length before it, too.
        Outcome<bool> alive = co_await store_.leases_.keep_alive(place.lease, deadline_);
        if (!alive) co_return std::unexpected(alive.error().lock_error());
        if (!*alive) co_return std::nullopt;
      }
      co_return found(place);
    }
    const auto capacity = range_at(answer, 0);
    if (!capacity) co_return malformed();
    is_capacity_there_ = !capacity->empty();
    LockResult<> checked =
        is_capacity_there_
            ? check_capacity(request_.resource, request_.capacity, capacity->front().value)
            : check_capacities(request_.resource, request_.capacity, *queue);
    if (!checked) co_return std::unexpected(std::move(checked.error()));
    if (request_.only_if_free && total_weight(*queue) + request_.weight > request_.capacity) {
      Placed refused;
      refused.standing = Standing::refused;
      refused.ahead = place.ahead;
      co_return refused;
    }
    // From now on there can only be fewer, but for those that come later.
    not_after_ = revision;
    co_return std::nullopt;
  }

  Placed found(const Place& place) {
    if (Ticket* ticket = store_.book_.find(request_.number)) ticket->is_clean = is_clean();
    store_.book_.place(request_.number, place);
    store_.wake_settling();
    // The watch may have told its end while this answer was on its way: then that follows.
    const bool is_granted = place.granted && store_.book_.find(request_.number);
    Placed placed;
    placed.standing = is_granted ? Standing::granted : Standing::queued;
    if (is_granted) placed.tokens = tokens_of(place.created);
    if (!is_granted) placed.ahead = place.ahead;
    return placed;
  }

  EtcdStore& store_;
  const TicketRequest& request_;
  const TimePoint deadline_;
  std::string value_, key_;
  bool is_first_ = true;       // no try of an earlier enqueue() can be under way
  bool was_repeated_ = false;  // one of ours can
  bool is_capacity_there_ = true;
  LeaseId capacity_lease_ = 0;  // if it is not
  // With only_if_free, or without a capacity: no ticket that was created later may be there.
  Revision not_after_ = 0;
};

Task<LockResult<Placed>> EtcdStore::enqueue(const TicketRequest& request) {
  LockResult<> checked = check(request);
  if (!checked) co_return std::unexpected(std::move(checked.error()));
  forget_doubtful();
  Placing placing(*this, request);
  LockResult<Placed> placed = co_await placing();
  const bool is_final =
      placed ? placed->standing == Standing::refused : !placed.error().is_passing();
  // If an attempt comes late after all, its key is a stray.
  if (is_final) {
    if (const Ticket* ticket = book_.find(request.number); ticket && placed && placing.is_clean())
      leases_.spare(ticket->lease);
    book_.forget(request.number);
    wake_settling();
  }
  co_return placed;
}

}  // namespace weft::inline v0::durable
