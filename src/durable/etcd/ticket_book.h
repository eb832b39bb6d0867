// SPDX-License-Identifier: MIT
#pragma once
// durable::etcd::TicketBook: the tickets of this session, and what lists and events mean for them. No I/O, no time.
//
// A ticket is in the book from before its first request is sent until nothing of it can be in the store, as far as we know.
// What the store has of this session and the book has not is a stray: a request that arrived after its sender had given up.
//
// Invariants
//   B1  a resource has a view exactly while one of its tickets is asked for or queued.
//   B2  fitting() are tickets that are queued, and fit in some state of the queue: to be granted if they are still there.
//   B3  a ticket that is ending makes no news.
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "durable/etcd/etcd_keys.h"
#include "durable/etcd/queue_view.h"
#include "weft/durable/lock_store.h"

namespace weft::inline v0::durable::etcd {

enum class Phase {
  asking,  // enqueue() is under way, or nobody knows how it ended
  queued,
  granted,
  ending,  // release() or withdraw() is under way, or nobody knows how it ended
};

struct Ticket {
  std::string resource, key;
  std::uint32_t capacity = 1;
  LeaseId lease = 0;      // its own; 0: none yet
  bool is_clean = false;  // it was put once, and no other attempt to put it can be under way
  Phase phase = Phase::asking;
  Revision created = 0;           // 0: not known to be there
  Revision erased = 0;            // the last that we heard of
  Revision seen = 0;              // the last put of it that the watch told
  bool release_in_doubt = false;  // a release may have been carried out
};

[[nodiscard]] TokenBlock tokens_of(Revision created) noexcept;

class TicketBook {
 public:
  TicketBook(const Keys& keys, std::uint64_t session) : keys_(keys), session_(session) {}

  // Its enqueue() begins, perhaps again.
  Ticket& begin(const TicketRequest& request);
  // Its enqueue() found it there.
  void place(TicketNumber number, const Place& place);
  void grant(TicketNumber number);
  // Its release() or withdraw() begins.
  void end(TicketNumber number);
  // absent: when the store was known not to have it. What the watch has seen of it since is a stray: the news of a late put may
  // overtake the answer of the withdraw() that came before it.
  void forget(TicketNumber number, Revision absent = 0);

  // Null: there is none.
  [[nodiscard]] Ticket* find(TicketNumber number);
  [[nodiscard]] bool is_fitting(TicketNumber number) const { return fitting_.contains(number); }

  // From the watch.
  void put(const KeyValue& pair);
  void erase(const std::string& key, Revision revision);
  // The queue of one resource; true: it had news of which the watch has said nothing.
  bool list(const std::string& resource, std::span<const KeyValue> queue, Revision revision);
  // All that is there, of all resources.
  void list_all(std::span<const KeyValue> pairs, Revision revision);

  [[nodiscard]] const std::set<TicketNumber>& fitting() const noexcept { return fitting_; }
  // Tickets that ended unasked, and are not in the book any more.
  [[nodiscard]] std::vector<TicketNumber> take_gone() { return std::exchange(gone_, {}); }
  [[nodiscard]] bool has_gone() const noexcept { return !gone_.empty(); }
  // Their keys, and when they were created.
  [[nodiscard]] std::map<std::string, Revision> take_strays() { return std::exchange(strays_, {}); }
  void add_stray(const std::string& key, Revision created) {
    strays_.insert_or_assign(key, created);
  }
  [[nodiscard]] bool has_strays() const noexcept { return !strays_.empty(); }
  [[nodiscard]] std::size_t views() const noexcept { return views_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return tickets_.size(); }

 private:
  struct View {
    QueueView queue;
    std::size_t waiting = 0;     // B1
    std::uint32_t capacity = 0;  // 0: the store has not agreed to one yet
  };
  void enter(TicketNumber number, Ticket& ticket, Phase phase);
  void hold_view(const Ticket& ticket);
  void drop_view(const Ticket& ticket);
  void find_fitting(const std::string& resource);
  void lose(TicketNumber number);

  const Keys& keys_;
  std::uint64_t session_;
  std::unordered_map<TicketNumber, Ticket> tickets_;
  std::unordered_map<std::string, View> views_;
  std::set<TicketNumber> fitting_;
  std::vector<TicketNumber> gone_;
  std::map<std::string, Revision> strays_;
};

}  // namespace weft::inline v0::durable::etcd
