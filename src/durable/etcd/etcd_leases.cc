// SPDX-License-Identifier: MIT
#include "durable/etcd/etcd_leases.h"

#include <algorithm>
#include <random>
#include <utility>

#include "weft/core/combinators.h"

namespace weft::inline v0::durable::etcd {

namespace {

LeaseId fresh_id() {
  thread_local std::mt19937_64 dice{std::random_device{}()};
  return static_cast<LeaseId>(dice() >> 1 | 1);  // positive: 0 means none
}

}  // namespace

std::int64_t Leases::whole_seconds(std::chrono::nanoseconds length) noexcept {
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(length).count());
}

bool Leases::has_ended(LeaseId lease) const {
  const auto found = leases_.find(lease);
  return found == leases_.end() || is_over(found->second);
}

void Leases::spare(LeaseId lease) {
  if (const auto found = leases_.find(lease); found != leases_.end())
    spare_[found->second.asked].push_back(lease);
}

Task<Outcome<LeaseId>> Leases::obtain(std::chrono::nanoseconds length, TimePoint deadline) {
  const std::int64_t seconds = whole_seconds(length);
  if (const auto found = spare_.find(seconds); found != spare_.end()) {
    std::vector<LeaseId> left = std::move(found->second);
    spare_.erase(found);
    const LeaseId last = left.back();
    left.pop_back();
    const bool is_living = !has_ended(last);
    // If the last one has ended, so have the others.
    if (is_living && !left.empty()) spare_.emplace(seconds, std::move(left));
    if (is_living) co_return last;
  }
  // Tickets that are renewed are not among them; etcd, where they live a little longer, ends them by itself.
  std::erase_if(leases_, [this](const auto& each) { return is_over(each.second); });
  const LeaseId id = fresh_id();
  Lease lease;
  lease.asked = seconds;
  lease.begun = clock_();
  std::string json = grant_request(id, seconds);
  Outcome<Reply> reply = co_await client_.call("/v3/lease/grant", std::move(json), deadline);
  // Nobody else has this number: it is an earlier attempt of ours.
  const bool is_ours = !reply && reply.error().code() == Code::failed_precondition &&
                       reply.error().message().contains("lease already exists");
  if (!reply && !is_ours) co_return std::unexpected(reply.error());
  lease.length = std::chrono::seconds(seconds);
  if (reply)
    lease.length =
        std::chrono::seconds(std::max(seconds, reply->json["TTL"].integer().value_or(0)));
  leases_.insert_or_assign(id, lease);
  co_return id;
}

bool Leases::needs_keep_alive(LeaseId lease, std::chrono::nanoseconds length) const {
  const auto found = leases_.find(lease);
  return found == leases_.end() || clock_() + length.count() > found->second.end();
}

Task<Outcome<bool>> Leases::keep_alive(LeaseId lease, TimePoint deadline) {
  const std::int64_t begun = clock_();
  std::string json = lease_request(lease);
  Outcome<Reply> reply = co_await client_.call("/v3/lease/keepalive", std::move(json), deadline);
  if (!reply) co_return std::unexpected(reply.error());
  const std::int64_t left = reply->json["result"]["TTL"].integer().value_or(0);
  if (left <= 0) {
    drop(lease);
    co_return false;
  }
  if (const auto found = leases_.find(lease); found != leases_.end()) {
    found->second.begun = std::max(found->second.begun, begun);
  }
  co_return true;
}

void Leases::drop(LeaseId lease) { leases_.erase(lease); }

Task<void> Leases::revoke(LeaseId lease, TimePoint deadline) {
  std::string json = lease_request(lease);
  static_cast<void>(co_await client_.call("/v3/lease/revoke", std::move(json), deadline));
}

Task<void> Leases::revoke_all(TimePoint deadline) {
  spare_.clear();
  std::vector<Task<void>> calls;
  for (const auto& [id, lease] : std::exchange(leases_, {})) {
    if (!is_over(lease)) calls.push_back(revoke(id, deadline));
  }
  co_await all_of(std::move(calls));
}

}  // namespace weft::inline v0::durable::etcd
