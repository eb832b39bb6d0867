// SPDX-License-Identifier: MIT
#pragma once
// As much JSON as the showcase writes.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace showcase {

// Bytes of the character that `text` begins with; 0: it is no UTF-8 (RFC 3629, 4).
inline std::size_t first_character(std::string_view text) {
  auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  std::size_t bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  bool is_too_long = (lead == 0xe0 && at(1) < 0xa0) || (lead == 0xf0 && at(1) < 0x90);
  bool is_none = (lead == 0xed && at(1) > 0x9f) || (lead == 0xf4 && at(1) > 0x8f);
  return is_too_long || is_none ? 0 : bytes;
}

// `text` as a string. What is no UTF-8 in it is U+FFFD: a URL may say anything, and a WebSocket refuses to send that.
inline std::string quoted(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    std::size_t bytes = first_character(text);
    auto c = static_cast<unsigned char>(text.front());
    if (bytes == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json.append("\\").append(text, 0, 1);
    } else if (c < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      json += escape;
    } else {
      json.append(text, 0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
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
