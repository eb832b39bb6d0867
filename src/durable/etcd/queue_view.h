// SPDX-License-Identifier: MIT
#pragma once
// durable::etcd::QueueView: what we know of the queue of one resource, from lists and from the watch.
//
// A list is the whole queue at a revision; an event is one change at one. Both come late and in any order relative to each
// other; events among themselves come in order. The view is the queue as it was at revision(), or later, never a mixture.
// A ticket that fits in some past state fits as long as it lives: before it there can only be fewer. So an old view delays
// a grant and never makes a wrong one.
//
// Invariants
//   Q1  before the first list, events are kept; then those of later revisions are applied.
//   Q2  revision() is that of the newest list or event that is in it. What is older is dropped.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "durable/etcd/etcd_messages.h"

namespace weft::inline v0::durable::etcd {

class QueueView {
 public:
  struct Entry {
    std::string key;
    std::uint32_t weight = 1;
  };

  void put(const KeyValue& ticket);
  void erase(const std::string& key, Revision revision);
  // Returns: whether it had news that no event has brought: the watch may be behind.
  bool list(std::span<const KeyValue> queue, Revision revision);

  [[nodiscard]] Revision revision() const noexcept { return revision_; }
  [[nodiscard]] std::size_t size() const noexcept { return queue_.size(); }
  // Calls fn(key) for each that is granted, first one first. None before the first list.
  template <class Fn>
  void for_each_granted(std::uint32_t capacity, Fn fn) const {
    std::uint64_t taken = 0;
    for (const auto& [created, entry] : queue_) {
      taken += entry.weight;
      if (taken > capacity) return;
      fn(entry.key);
    }
  }

 private:
  struct Event {
    KeyValue ticket;
    bool is_put = false;
  };
  void add(const KeyValue& ticket);
  void remove(const std::string& key);

  std::map<Revision, Entry> queue_;  // by creation
  std::unordered_map<std::string, Revision> created_;
  Revision revision_ = 0;
  bool has_list_ = false;
  std::vector<Event> early_;  // Q1
};

// What a list says of one ticket: the tickets before it, and whether it is granted.
struct Place {
  bool is_there = false;
  bool granted = false;
  std::uint32_t ahead = 0;
  Revision created = 0;
  LeaseId lease = 0;
};
[[nodiscard]] Place find_place(std::span<const KeyValue> queue, std::string_view key,
                               std::uint32_t capacity);
[[nodiscard]] std::uint64_t total_weight(std::span<const KeyValue> queue);

}  // namespace weft::inline v0::durable::etcd
