// SPDX-License-Identifier: MIT
#pragma once
// The few messages of etcd's v3 API that the store sends, and what it reads from the answers.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "durable/etcd/json.h"

namespace weft::inline v0::durable::etcd {

using Revision = std::uint64_t;
using LeaseId = std::int64_t;

struct KeyValue {
  std::string key, value;
  Revision created = 0, modified = 0;
  LeaseId lease = 0;
};
// Nothing: it is malformed.
[[nodiscard]] std::optional<KeyValue> read_key_value(const Json& json);
// Of a range's answer.
[[nodiscard]] std::optional<std::vector<KeyValue>> read_key_values(const Json& range);
// The store's, when it answered. 0: it did not say.
[[nodiscard]] Revision read_revision(const Json& answer);

// Which keys: one, or all that begin with it.
class Keyspan {
 public:
  [[nodiscard]] static Keyspan one(std::string key) { return Keyspan(std::move(key), ""); }
  // Requires: the prefix does not end with the byte 255.
  [[nodiscard]] static Keyspan below(std::string prefix);
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  // Begins an object with the two fields of it.
  void write(JsonWriter& json) const;

 private:
  Keyspan(std::string key, std::string end) : key_(std::move(key)), end_(std::move(end)) {}
  std::string key_, end_;
};

enum class Wanted { all, keys };
// In the order of their creation.
[[nodiscard]] std::string range_request(const Keyspan& keys, Wanted wanted = Wanted::all);
[[nodiscard]] std::string delete_request(const Keyspan& keys);
[[nodiscard]] std::string watch_request(const Keyspan& keys, Revision first);
[[nodiscard]] std::string lease_request(LeaseId lease);
[[nodiscard]] std::string grant_request(LeaseId lease, std::int64_t ttl_seconds);

// If …, then …, else …: one step of the store's. The answers come in the order of the calls.
class Txn {
 public:
  static constexpr std::size_t kOperationsMax = 128;  // etcd's --max-txn-ops, as it comes

  // It was created by that revision; 0: it is not there.
  Txn& if_created_at(const std::string& key, Revision revision);
  // Each of them was created by that revision or before; 0: there is none.
  Txn& if_all_created_by(const Keyspan& keys, Revision revision);
  Txn& if_value(const std::string& key, std::string_view value);
  Txn& then_put(const std::string& key, std::string_view value, LeaseId lease = 0);
  Txn& then_delete(const Keyspan& keys);
  Txn& then_range(const Keyspan& keys, Wanted wanted = Wanted::all);
  Txn& else_range(const Keyspan& keys);

  [[nodiscard]] std::size_t operations() const noexcept { return operations_; }
  [[nodiscard]] std::string take();

 private:
  static void add(std::string& list, std::string item);
  std::string conditions_, then_, else_;
  std::size_t operations_ = 0;  // of then_
};

}  // namespace weft::inline v0::durable::etcd
