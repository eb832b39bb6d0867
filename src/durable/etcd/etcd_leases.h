// SPDX-License-Identifier: MIT
#pragma once
// durable::etcd::Leases: the session's leases in etcd, one for each ticket.
//
// A ticket's lease is kept alive by that ticket's renewals and by nothing else: when they end, it ends, and the ticket with it,
// whatever the session does for others. A lease whose ticket is known to be gone serves the next ticket, which begins it
// anew: who comes one after the other costs etcd no lease each. One that is in doubt is never used again, and ends by itself.
//
// etcd counts in seconds, and takes no less than one or two: leases are lengthened, never shortened.
//
// How much of one is left is measured on the clock of the leases (LockStore::lease_clock()), which goes on in a suspend, as etcd does.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "durable/etcd/etcd_client.h"
#include "durable/etcd/etcd_messages.h"

namespace weft::inline v0::durable::etcd {

class Leases {
 public:
  // In nanoseconds.
  using Clock = std::function<std::int64_t()>;

  Leases(Client& client, Clock clock) : client_(client), clock_(std::move(clock)) {}

  // One that is long enough, that nobody else has, and that had not ended when it was last heard of.
  [[nodiscard]] Task<Outcome<LeaseId>> obtain(std::chrono::nanoseconds length, TimePoint deadline);
  // Requires: nothing is under it, and nothing can be put there any more, however late.
  void spare(LeaseId lease);
  // Whether a ticket that joins now could have less than `length` before it.
  [[nodiscard]] bool needs_keep_alive(LeaseId lease, std::chrono::nanoseconds length) const;
  // False: it has ended.
  [[nodiscard]] Task<Outcome<bool>> keep_alive(LeaseId lease, TimePoint deadline);
  // By our clock, which is ahead of etcd's: it begins before the question is sent.
  [[nodiscard]] bool has_ended(LeaseId lease) const;
  // It has ended.
  void drop(LeaseId lease);
  // Ends them all, as far as etcd can be reached.
  [[nodiscard]] Task<void> revoke_all(TimePoint deadline);

  // What etcd is asked for.
  [[nodiscard]] static std::int64_t whole_seconds(std::chrono::nanoseconds length) noexcept;

 private:
  struct Lease {
    std::int64_t asked = 0;         // seconds
    std::chrono::seconds length{};  // what etcd has made of it
    std::int64_t begun = 0;         // before the request was sent

    [[nodiscard]] std::int64_t end() const noexcept {
      return begun + std::chrono::nanoseconds(length).count();
    }
  };
  [[nodiscard]] bool is_over(const Lease& lease) const { return clock_() >= lease.end(); }
  [[nodiscard]] Task<void> revoke(LeaseId lease, TimePoint deadline);

  Client& client_;
  Clock clock_;
  std::map<LeaseId, Lease> leases_;
  // By the seconds that were asked for. The last one was used last, and so lives longest: those that are not needed end.
  std::map<std::int64_t, std::vector<LeaseId>> spare_;
};

}  // namespace weft::inline v0::durable::etcd
