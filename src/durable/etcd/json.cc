// SPDX-License-Identifier: MIT
#include "durable/etcd/json.h"

#include <algorithm>
#include <charconv>

#include "durable/etcd/utf8.h"

namespace weft::inline v0::durable::etcd {

namespace {

const Json kNull;

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  std::expected<Json, JsonError> read() {
    if (text_.size() > kJsonBytesMax) return std::unexpected(JsonError{0, "too long"});
    Json value;
    if (!read_value(value, 0)) return std::unexpected(error_);
    skip_space();
    if (at_ != text_.size()) return std::unexpected(JsonError{at_, "something behind the value"});
    return value;
  }

 private:
  bool fail(const char* why) noexcept {
    error_ = {at_, why};
    return false;
  }
  [[nodiscard]] char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() noexcept {
    while (at_ < text_.size() && std::string_view(" \t\r\n").contains(text_[at_])) ++at_;
  }
  bool take(char c) noexcept {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) noexcept {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool read_value(Json& out, std::size_t depth) {
    skip_space();
    switch (peek()) {
      case '{':
        return read_object(out, depth + 1);
      case '[':
        return read_array(out, depth + 1);
      case '"':
        return read_string_value(out);
      case 't':
        out = Json(true);
        return take_word("true") || fail("no value");
      case 'f':
        out = Json(false);
        return take_word("false") || fail("no value");
      case 'n':
        out = Json();
        return take_word("null") || fail("no value");
      default:
        return read_number(out);
    }
  }

  bool read_string_value(Json& out) {
    std::string text;
    if (!read_string(text)) return false;
    out = Json(std::move(text));
    return true;
  }

  bool read_object(Json& out, std::size_t depth) {
    if (depth > kJsonDepthMax) return fail("too deep");
    ++at_;
    Json::Object members;
    if (take('}')) {
      out = Json(std::move(members));
      return true;
    }
    do {
      skip_space();
      std::string name;
      if (peek() != '"') return fail("a name is missing");
      if (!read_string(name)) return false;
      if (members.size() == kJsonMembersMax) return fail("too many names");
      for (const auto& [each, value] : members) {
        if (each == name) return fail("a name comes twice");
      }
      if (!take(':')) return fail("':' is missing");
      members.emplace_back(std::move(name), Json());
      if (!read_value(members.back().second, depth)) return false;
    } while (take(','));
    if (!take('}')) return fail("',' or '}' is missing");
    out = Json(std::move(members));
    return true;
  }

  bool read_array(Json& out, std::size_t depth) {
    if (depth > kJsonDepthMax) return fail("too deep");
    ++at_;
    Json::Array items;
    if (take(']')) {
      out = Json(std::move(items));
      return true;
    }
    do {
      items.emplace_back();
      if (!read_value(items.back(), depth)) return false;
    } while (take(','));
    if (!take(']')) return fail("',' or ']' is missing");
    out = Json(std::move(items));
    return true;
  }

  bool read_digits() noexcept {
    if (!is_digit(peek())) return false;
    while (is_digit(peek())) ++at_;
    return true;
  }
  bool read_number(Json& out) {
    const std::size_t from = at_;
    if (peek() == '-') ++at_;
    if (peek() == '0') {
      ++at_;
    } else if (!read_digits()) {
      return fail("no value");
    }
    if (peek() == '.') {
      ++at_;
      if (!read_digits()) return fail("a digit is missing");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!read_digits()) return fail("a digit is missing");
    }
    out = Json(Json::Number{std::string(text_.substr(from, at_ - from))});
    return true;
  }

  bool read_string(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!read_escape(out)) return false;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20) return fail("a control character");
      const std::size_t bytes = utf8_length(text_.substr(at_));
      if (bytes == 0) return fail("not UTF-8");
      out += text_.substr(at_, bytes);
      at_ += bytes;
    }
    return fail("'\"' is missing");
  }

  bool read_escape(std::string& out) {
    ++at_;
    const char c = peek();
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    if (const std::size_t which = kNames.find(c); which != kNames.npos) {
      out += kMeant[which];
      ++at_;
      return true;
    }
    if (c != 'u') return fail("no such escape");
    ++at_;
    std::uint32_t code = 0;
    if (!read_hex(code)) return false;
    if (code >= 0xDC00 && code < 0xE000) return fail("half a surrogate pair");
    if (code >= 0xD800 && code < 0xDC00) {
      std::uint32_t low = 0;
      if (!take_word("\\u")) return fail("half a surrogate pair");
      if (!read_hex(low)) return false;
      if (low < 0xDC00 || low >= 0xE000) return fail("half a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, code);
    return true;
  }
  bool read_hex(std::uint32_t& out) {
    if (text_.size() - at_ < 4) return fail("four digits are missing");
    const char* from = text_.data() + at_;
    const auto [end, error] = std::from_chars(from, from + 4, out, 16);
    if (error != std::errc() || end != from + 4) return fail("four digits are missing");
    at_ += 4;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  JsonError error_;
};

}  // namespace

const Json& Json::operator[](std::string_view name) const noexcept {
  for (const auto& [each, value] : members()) {
    if (each == name) return value;
  }
  return kNull;
}

std::span<const Json> Json::items() const noexcept {
  const auto* array = std::get_if<Array>(&value_);
  return array ? std::span<const Json>(*array) : std::span<const Json>();
}

std::span<const std::pair<std::string, Json>> Json::members() const noexcept {
  const auto* object = std::get_if<Object>(&value_);
  if (!object) return {};
  return *object;
}

std::string_view Json::text() const noexcept {
  const auto* text = std::get_if<std::string>(&value_);
  return text ? std::string_view(*text) : std::string_view();
}

bool Json::is_true() const noexcept {
  const bool* value = std::get_if<bool>(&value_);
  return value && *value;
}

std::optional<std::int64_t> Json::integer() const noexcept {
  if (is_null()) return 0;
  const auto* number = std::get_if<Number>(&value_);
  const std::string_view digits = number ? std::string_view(number->text) : text();
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::expected<Json, JsonError> parse_json(std::string_view text) { return Reader(text).read(); }

// --- Writing --------------------------------------------------------------------------------------

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
  return *this;
}

void JsonWriter::separate() {
  if (needs_comma_) out_ += ',';
  needs_comma_ = true;
}

void JsonWriter::quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out_ += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const std::size_t bytes = utf8_length(text);
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += text.front();
    } else if (c < 0x20) {
      out_ += "\\u00";
      out_ += kHex[c >> 4];
      out_ += kHex[c & 15];
    } else if (bytes == 0) {
      out_ += "\xEF\xBF\xBD";
    } else {
      out_ += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  out_ += '"';
}

JsonWriter& JsonWriter::name(std::string_view text) {
  separate();
  quote(text);
  out_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::bytes(std::string_view bytes) { return text(base64_encoded(bytes)); }

JsonWriter& JsonWriter::integer(std::int64_t value) { return text(std::to_string(value)); }

JsonWriter& JsonWriter::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
  return *this;
}

}  // namespace weft::inline v0::durable::etcd
