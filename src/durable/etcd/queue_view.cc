// SPDX-License-Identifier: MIT
#include "durable/etcd/queue_view.h"

#include <utility>

#include "durable/etcd/etcd_keys.h"

namespace weft::inline v0::durable::etcd {

void QueueView::put(const KeyValue& ticket) {
  if (!has_list_) {
    early_.push_back({ticket, true});
  } else if (ticket.modified > revision_) {
    add(ticket);
    revision_ = ticket.modified;
  }
}

void QueueView::erase(const std::string& key, Revision revision) {
  if (!has_list_) {
    KeyValue gone;
    gone.key = key;
    gone.modified = revision;
    early_.push_back({std::move(gone), false});
  } else if (revision >= revision_) {
    // Not "after" it: a revoke, or the end of a lease, removes several at one revision.
    remove(key);
    revision_ = revision;
  }
}

bool QueueView::list(std::span<const KeyValue> queue, Revision revision) {
  if (has_list_ && revision <= revision_) return false;  // Q2
  const bool is_first = !std::exchange(has_list_, true);
  bool has_news = queue.size() != queue_.size();
  for (const KeyValue& each : queue) has_news = has_news || !created_.contains(each.key);
  queue_.clear();
  created_.clear();
  for (const KeyValue& each : queue) add(each);
  revision_ = revision;
  for (Event& event : std::exchange(early_, {})) {
    if (event.ticket.modified <= revision) continue;
    if (event.is_put) {
      put(event.ticket);
    } else {
      erase(event.ticket.key, event.ticket.modified);
    }
  }
  return has_news && !is_first;
}

void QueueView::add(const KeyValue& ticket) {
  remove(ticket.key);
  queue_.insert_or_assign(ticket.created, Entry{ticket.key, read_ticket(ticket.value).weight});
  created_.insert_or_assign(ticket.key, ticket.created);
}

void QueueView::remove(const std::string& key) {
  const auto found = created_.find(key);
  if (found == created_.end()) return;
  queue_.erase(found->second);
  created_.erase(found);
}

Place find_place(std::span<const KeyValue> queue, std::string_view key, std::uint32_t capacity) {
  Place place;
  std::uint64_t taken = 0;
  for (const KeyValue& each : queue) {
    taken += read_ticket(each.value).weight;
    if (each.key == key) {
      place.is_there = true;
      place.granted = taken <= capacity;
      place.created = each.created;
      place.lease = each.lease;
      return place;
    }
    ++place.ahead;
  }
  return place;
}

std::uint64_t total_weight(std::span<const KeyValue> queue) {
  std::uint64_t total = 0;
  for (const KeyValue& each : queue) total += read_ticket(each.value).weight;
  return total;
}

}  // namespace weft::inline v0::durable::etcd
