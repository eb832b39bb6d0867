// SPDX-License-Identifier: MIT
#pragma once
// As much JSON as the showcase writes.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace showcase {

// `text` as a string. Requires: it is UTF-8.
inline std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      json += escape;
    } else {
      json += c;
    }
  }
  return json + "\"";
}

// {"name":value,…}
class JsonObject {
 public:
  JsonObject& number(std::string_view name, std::uint64_t value) {
    return raw(name, std::to_string(value));
  }
  JsonObject& string(std::string_view name, std::string_view value) {
    return raw(name, quoted(value));
  }
  // `value` is JSON already.
  JsonObject& raw(std::string_view name, std::string_view value) {
    if (!fields_.empty()) fields_ += ',';
    fields_.append(quoted(name)).append(":").append(value);
    return *this;
  }
  [[nodiscard]] std::string text() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

// [value,…], each JSON already.
class JsonList {
 public:
  void add(std::string_view value) {
    if (!values_.empty()) values_ += ',';
    values_ += value;
  }
  [[nodiscard]] std::string text() const { return "[" + values_ + "]"; }

 private:
  std::string values_;
};

}  // namespace showcase
