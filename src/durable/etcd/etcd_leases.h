// SPDX-License-Identifier: MIT
#pragma once
// durable::etcd::Leases: the session's leases in etcd, one for each length that is in use.
//
// A lease is granted when a ticket needs one, and kept alive by the renewals of its tickets: when there are none it ends by
// itself. A ticket that joins an older lease begins it anew, so that it has its whole length before it.
//
// etcd counts in seconds, and takes no less than one or two: leases are lengthened, never shortened.
#include <chrono>
#include <cstdint>
#include <map>
#include <set>

#include "durable/etcd/etcd_client.h"
#include "durable/etcd/etcd_messages.h"
#include "weft/sync/local_mutex.h"

namespace weft::inline v0::durable::etcd {

class Leases {
 public:
  explicit Leases(Client& client) : client_(client) {}

  // One that is long enough, and that had not ended when it was last heard of.
  [[nodiscard]] Task<Outcome<LeaseId>> obtain(std::chrono::nanoseconds length, TimePoint deadline);
  // Whether a ticket that joins now could have less than `length` before it.
  [[nodiscard]] bool needs_keep_alive(LeaseId lease, std::chrono::nanoseconds length) const;
  // False: it has ended.
  [[nodiscard]] Task<Outcome<bool>> keep_alive(LeaseId lease, TimePoint deadline);
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
    TimePoint begun;                // before the request was sent
  };
  [[nodiscard]] std::map<LeaseId, Lease>::const_iterator find_living(std::int64_t asked) const;

  Client& client_;
  LocalMutex granting_;
  std::map<LeaseId, Lease> leases_;
};

}  // namespace weft::inline v0::durable::etcd
