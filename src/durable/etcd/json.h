// SPDX-License-Identifier: MIT
#pragma once
// durable::etcd::Json, parse_json, JsonWriter: as much of RFC 8259 as etcd's gateway speaks, and strictly.
//
//     std::expected<Json, JsonError> reply = parse_json(R"({"header":{"revision":"7"},"kvs":[]})");
//     std::optional<std::int64_t> revision = (*reply)["header"]["revision"].integer();   // 7
//
// The reader takes one value and nothing behind it. Comments, trailing commas, names that come twice, lone surrogates, bytes
// that are not UTF-8, NaN: errors that say where. Depth and size are bounded: what it reads comes from a network.
//
// The gateway writes 64-bit integers as strings and leaves out what is zero, false or empty. So a member that is not
// there reads as zero, false, "", and no items; and integer() reads a string of digits as well as a number.
//
// Threads        values: as a std::string.
// Allocation     a vector per array and object, a string per string.
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/base64.h"

namespace weft::inline v0::durable::etcd {

inline constexpr std::size_t kJsonDepthMax = 32;
inline constexpr std::size_t kJsonMembersMax =
    256;  // of one object: each name is compared with all
inline constexpr std::size_t kJsonBytesMax = std::size_t{64} << 20;

struct JsonError {
  std::size_t at = 0;  // the byte
  const char* why = "";
};

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  // A number as it was written: who asks decides what it is.
  struct Number {
    std::string text;
  };

  Json() = default;
  explicit Json(bool value) : value_(value) {}
  explicit Json(Number value) : value_(std::move(value)) {}
  explicit Json(std::string value) : value_(std::move(value)) {}
  explicit Json(Array value) : value_(std::move(value)) {}
  explicit Json(Object value) : value_(std::move(value)) {}

  [[nodiscard]] bool is_null() const noexcept { return holds<std::monostate>(); }
  [[nodiscard]] bool is_object() const noexcept { return holds<Object>(); }
  [[nodiscard]] bool is_array() const noexcept { return holds<Array>(); }
  [[nodiscard]] bool is_string() const noexcept { return holds<std::string>(); }

  // The member of that name; null if there is none, or this is no object.
  [[nodiscard]] const Json& operator[](std::string_view name) const noexcept;
  [[nodiscard]] std::span<const Json> items() const noexcept;
  [[nodiscard]] std::span<const std::pair<std::string, Json>> members() const noexcept;
  // "", if it is no string.
  [[nodiscard]] std::string_view text() const noexcept;
  // True if it is `true`.
  [[nodiscard]] bool is_true() const noexcept;
  // Null is 0. Nothing: it is neither null nor an integer of 64 bits, as a number or in a string.
  [[nodiscard]] std::optional<std::int64_t> integer() const noexcept;

 private:
  template <class T>
  [[nodiscard]] bool holds() const noexcept {
    return std::holds_alternative<T>(value_);
  }
  std::variant<std::monostate, bool, Number, std::string, Array, Object> value_;
};

[[nodiscard]] std::expected<Json, JsonError> parse_json(std::string_view text);

// Writes a value, from left to right. The caller nests correctly; commas come by themselves.
//     JsonWriter json;
//     json.begin_object().name("key").bytes(key).name("limit").integer(5).end_object();
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& name(std::string_view text);
  // What is not UTF-8 becomes U+FFFD.
  JsonWriter& text(std::string_view text);
  // In base64: the gateway's `bytes`.
  JsonWriter& bytes(std::string_view bytes);
  // As a string: the gateway's int64.
  JsonWriter& integer(std::int64_t value);
  JsonWriter& boolean(bool value);

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(std::string_view text);

  std::string out_;
  bool needs_comma_ = false;
};

using ::weft::detail::base64_decoded;
using ::weft::detail::base64_encoded;

}  // namespace weft::inline v0::durable::etcd
