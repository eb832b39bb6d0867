// SPDX-License-Identifier: MIT
#pragma once
// durable::EtcdStore: the queue of a lock, kept by an etcd cluster (3.4 or later). The store of etcd:// and etcds://.
//
// A ticket is a key under a lease of its own, and the queue of a resource its tickets in the order of their creation:
// etcd's revisions are the order of arrival. Nobody grants anything: a ticket is granted when those before it, and it, fit
// into the capacity, which each session sees by itself, from a list of the queue or from its one watch of all of them. That a ticket is
// still there is read from the majority before it is called granted, so that one whose lease has ended meanwhile never is.
// (The server's own lock endpoint does not look, and says "success".)
//
// Tokens are create revision × 2^20 and on: revisions rise for ever. A cluster that is restored from a backup counts
// from the backup's revision again: raise it (etcdutl snapshot restore --bump-revision), or tokens come twice.
//
// Threads        the loop that called open().
// Cancellation   every call; a cancelled one may have been carried out or not.
// Errors         LockError::unreachable after EtcdOptions::call_timeout; storage: etcd refuses, with what it says.
// Bounds         EtcdOptions::connections_max connections per member, and one for the watch. Memory: the tickets of this session, and the
//                queues in which one of them waits.
//
// Differs from lock_store.h: TicketReport::age counts from enqueue(), granted or not: when a ticket was granted stands nowhere.
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "durable/etcd/etcd_client.h"
#include "durable/etcd/etcd_keys.h"
#include "durable/etcd/etcd_leases.h"
#include "durable/etcd/etcd_options.h"
#include "durable/etcd/etcd_transport.h"
#include "durable/etcd/ticket_book.h"
#include "weft/durable/lock_store.h"
#include "weft/sync/auto_event.h"

namespace weft::inline v0::durable {

class EtcdStore final : public LockStore {
 public:
  static constexpr std::uint32_t kTokensMax = std::uint32_t{1} << 20;
  // A key of ours that the book does not know is left alone so long: mostly its end is on its way.
  static constexpr std::chrono::milliseconds kStrayAge{1'000};
  // A capacity is known for so long, if nobody enqueues: what a process has left that died.
  static constexpr std::chrono::seconds kCapacityLease{60};

  // transport: none: etcd::HttpTransport.
  explicit EtcdStore(EtcdOptions options, std::unique_ptr<etcd::Transport> transport = nullptr);
  ~EtcdStore() override;

  Task<LockResult<>> open(Listener& listener) override;
  Task<void> run() override;
  Task<void> close() override;

  Task<LockResult<>> join(const std::string& resource, std::uint32_t capacity) override;
  Task<LockResult<Placed>> enqueue(const TicketRequest& request) override;
  Task<LockResult<std::vector<TicketNumber>>> renew(std::vector<TicketNumber> tickets) override;
  Task<LockResult<>> release(TicketNumber ticket, TokenBlock tokens) override;
  Task<LockResult<>> withdraw(TicketNumber ticket) override;
  Task<LockResult<bool>> retire(const std::string& resource) override;
  Task<LockResult<std::size_t>> revoke(const std::string& resource) override;
  Task<LockResult<std::vector<ResourceReport>>> report(
      std::optional<std::string> resource) override;
  [[nodiscard]] std::string url() const override { return options_.url(); }

 private:
  class Placing;  // an enqueue(): etcd_enqueue.cc
  friend class Placing;
  class Watch;  // what run() reads: etcd_watch.cc
  friend class Watch;

  // A transaction, and its answer.
  Task<etcd::Outcome<etcd::Reply>> commit(etcd::Txn txn, TimePoint deadline);
  // For capacities that are put now. It is never renewed: who needs one that has ended puts it anew.
  Task<etcd::Outcome<etcd::LeaseId>> capacity_lease(TimePoint deadline);
  // Keeps what these tickets and their queues are.
  Task<LockResult<>> look_at(std::vector<TicketNumber> tickets, std::vector<TicketNumber>& missing,
                             TimePoint deadline);
  Task<LockResult<>> look_at_some(std::vector<TicketNumber> tickets,
                                  std::vector<TicketNumber>& missing, TimePoint deadline);
  // A release() or withdraw() was answered.
  void has_ended(TicketNumber number, etcd::Revision revision);
  // It was not, or etcd refuses it: the ticket ends with its lease, which nobody keeps alive any more.
  [[nodiscard]] std::unexpected<LockError> not_ended(TicketNumber number,
                                                     const etcd::Failure& failure);
  // Those of them whose lease has ended.
  void forget_doubtful();
  // Tells who is granted, and who is gone, when there is news.
  Task<void> settle();
  Task<bool> confirm_grants();
  void tell_gone();
  Task<void> sweep_strays();
  Task<LockResult<>> list_everything();
  // Something is to be told, or to be swept.
  void wake_settling();
  // The watch has to bring an event of that revision, or of a later one.
  void expect_event(etcd::Revision revision);

  const EtcdOptions options_;
  const std::uint64_t session_;
  const etcd::Keys keys_;
  etcd::Client client_;
  etcd::Leases leases_;
  etcd::TicketBook book_;
  etcd::LeaseId capacity_lease_ = 0;
  TimePoint capacity_lease_until_;   // then another one is taken
  std::set<TicketNumber> doubtful_;  // whose release() or withdraw() may be made again
  Listener* listener_ = nullptr;

  etcd::Revision watched_ = 0;   // every event up to here has been seen
  etcd::Revision expected_ = 0;  // an event of this revision is on its way
  bool must_list_ = false;       // events have been lost
  AutoEvent news_{"etcd: news"}, strays_{"etcd: strays"}, doubt_{"etcd: doubt"};
};

// A store by its URL (etcd_options.h). LockError::invalid says what is wrong with it; nothing is opened yet.
[[nodiscard]] LockResult<std::unique_ptr<LockStore>> make_etcd_store(std::string_view url);

}  // namespace weft::inline v0::durable
