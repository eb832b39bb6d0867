// SPDX-License-Identifier: MIT
// Fuzzes parse_json(), and what is read from etcd's answers.
//
// It looks for what a sanitizer sees, and for this: what is accepted is, written again, read as the same; an error lies inside of
// the text; and base64 that is accepted is written in no other way.
#include <cstdint>
#include <string>
#include <string_view>

#include "durable/etcd/etcd_keys.h"
#include "durable/etcd/etcd_messages.h"
#include "durable/etcd/json.h"
#include "require.h"

namespace {

using namespace weft::durable::etcd;
using weft::fuzz::require;

// Numbers, true, false and null as they are told apart from outside.
void write(JsonWriter& out, const Json& value) {
  if (value.is_object()) {
    out.begin_object();
    for (const auto& [name, each] : value.members()) write(out.name(name), each);
    out.end_object();
  } else if (value.is_array()) {
    out.begin_array();
    for (const Json& each : value.items()) write(out, each);
    out.end_array();
  } else if (value.is_string()) {
    out.text(value.text());
  } else {
    out.boolean(value.is_true());
  }
}
std::string written(const Json& value) {
  JsonWriter out;
  write(out, value);
  return out.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = parse_json(text);
  if (read) {
    const std::string once = written(*read);
    const auto again = parse_json(once);
    require(again && written(*again) == once);
    static_cast<void>(read->integer());
    static_cast<void>(read_key_value(*read));
    static_cast<void>(read_key_values(*read));
    static_cast<void>(read_revision(*read));
  } else {
    require(read.error().at <= size);
  }
  static_cast<void>(read_ticket(text));
  static_cast<void>(Keys("p").parse_ticket(text));
  if (const auto bytes = base64_decoded(text)) require(base64_encoded(*bytes) == text);
  return 0;
}
