// SPDX-License-Identifier: MIT
#include "durable/etcd/etcd_messages.h"

#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0::durable::etcd {

namespace {

std::optional<Revision> read_count(const Json& json) {
  const std::optional<std::int64_t> value = json.integer();
  if (!value || *value < 0) return std::nullopt;
  return static_cast<Revision>(*value);
}

// { key, range_end …: the caller ends it.
JsonWriter begin_with(const Keyspan& keys) {
  JsonWriter json;
  json.begin_object();
  keys.write(json);
  return json;
}

std::string operation(std::string_view name, std::string_view request) {
  std::string text = "{\"";
  text.append(name).append("\":").append(request).append("}");
  return text;
}

}  // namespace

std::optional<KeyValue> read_key_value(const Json& json) {
  std::optional<std::string> key = base64_decoded(json["key"].text());
  std::optional<std::string> value = base64_decoded(json["value"].text());
  const std::optional<Revision> created = read_count(json["create_revision"]);
  const std::optional<Revision> modified = read_count(json["mod_revision"]);
  const std::optional<std::int64_t> lease = json["lease"].integer();
  if (!key || key->empty() || !value || !created || !modified || !lease) return std::nullopt;
  KeyValue read;
  read.key = std::move(*key);
  read.value = std::move(*value);
  read.created = *created;
  read.modified = *modified;
  read.lease = *lease;
  return read;
}

std::optional<std::vector<KeyValue>> read_key_values(const Json& range) {
  std::vector<KeyValue> all;
  for (const Json& each : range["kvs"].items()) {
    std::optional<KeyValue> read = read_key_value(each);
    if (!read) return std::nullopt;
    all.push_back(std::move(*read));
  }
  return all;
}

Revision read_revision(const Json& answer) {
  return read_count(answer["header"]["revision"]).value_or(0);
}

Keyspan Keyspan::below(std::string prefix) {
  WEFT_ASSERT(!prefix.empty() && prefix.back() != '\xFF', "a prefix with a next one");
  std::string end = prefix;
  ++end.back();
  return Keyspan(std::move(prefix), std::move(end));
}

void Keyspan::write(JsonWriter& json) const {
  json.name("key").bytes(key_);
  if (!end_.empty()) json.name("range_end").bytes(end_);
}

std::string range_request(const Keyspan& keys, Wanted wanted) {
  JsonWriter json = begin_with(keys);
  json.name("sort_target").text("CREATE").name("sort_order").text("ASCEND");
  if (wanted == Wanted::keys) json.name("keys_only").boolean(true);
  return json.end_object().take();
}

std::string delete_request(const Keyspan& keys) { return begin_with(keys).end_object().take(); }

std::string watch_request(const Keyspan& keys, Revision first) {
  JsonWriter json;
  json.begin_object().name("create_request").begin_object();
  keys.write(json);
  json.name("start_revision").integer(static_cast<std::int64_t>(first));
  return json.name("progress_notify").boolean(true).end_object().end_object().take();
}

std::string lease_request(LeaseId lease) {
  return JsonWriter().begin_object().name("ID").integer(lease).end_object().take();
}

std::string grant_request(LeaseId lease, std::int64_t ttl_seconds) {
  JsonWriter json;
  return json.begin_object()
      .name("ID")
      .integer(lease)
      .name("TTL")
      .integer(ttl_seconds)
      .end_object()
      .take();
}

// --- Txn ------------------------------------------------------------------------------------------

void Txn::add(std::string& list, std::string item) {
  if (!list.empty()) list += ',';
  list += item;
}

Txn& Txn::if_created_at(const std::string& key, Revision revision) {
  JsonWriter json = begin_with(Keyspan::one(key));
  json.name("target").text("CREATE").name("result").text("EQUAL");
  json.name("create_revision").integer(static_cast<std::int64_t>(revision));
  add(conditions_, json.end_object().take());
  return *this;
}

Txn& Txn::if_all_created_by(const Keyspan& keys, Revision revision) {
  // A range without keys is compared as one key whose revision is 0, and so always true here (etcd 3.3 and later).
  JsonWriter json = begin_with(keys);
  json.name("target").text("CREATE").name("result").text("LESS");
  json.name("create_revision").integer(static_cast<std::int64_t>(revision + 1));
  add(conditions_, json.end_object().take());
  return *this;
}

Txn& Txn::if_value(const std::string& key, std::string_view value) {
  JsonWriter json = begin_with(Keyspan::one(key));
  json.name("target").text("VALUE").name("result").text("EQUAL").name("value").bytes(value);
  add(conditions_, json.end_object().take());
  return *this;
}

Txn& Txn::then_put(const std::string& key, std::string_view value, LeaseId lease) {
  JsonWriter json = begin_with(Keyspan::one(key));
  json.name("value").bytes(value).name("lease").integer(lease);
  add(then_, operation("request_put", json.end_object().take()));
  ++operations_;
  return *this;
}

Txn& Txn::then_delete(const Keyspan& keys) {
  add(then_, operation("request_delete_range", delete_request(keys)));
  ++operations_;
  return *this;
}

Txn& Txn::then_range(const Keyspan& keys, Wanted wanted) {
  add(then_, operation("request_range", range_request(keys, wanted)));
  ++operations_;
  return *this;
}

Txn& Txn::else_range(const Keyspan& keys) {
  add(else_, operation("request_range", range_request(keys)));
  return *this;
}

std::string Txn::take() {
  std::string text = "{\"compare\":[";
  text.append(conditions_).append("],\"success\":[").append(then_);
  text.append("],\"failure\":[").append(else_).append("]}");
  return text;
}

}  // namespace weft::inline v0::durable::etcd
