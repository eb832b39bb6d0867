// SPDX-License-Identifier: MIT
#pragma once
// What requests and responses have in common: methods, versions, status codes, header fields.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::inline v0::http {

enum class Method : std::uint8_t {
  get,
  head,
  post,
  put,
  delete_,
  options,
  patch,
  connect,
  trace,
  other,  // one that is registered, and that we only know by name
};
// As on the wire. Of `other`: empty.
[[nodiscard]] std::string_view to_string(Method method) noexcept;

enum class Version : std::uint8_t { http_1_0, http_1_1, http_2, http_3 };

// "Not Found". Of a code that is not registered: "Unknown".
[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

namespace detail {
// Requires: as many characters in both.
[[nodiscard]] bool equal_folded(std::string_view a, std::string_view b) noexcept;
}  // namespace detail

// Names and tokens of HTTP do not care for case.
[[nodiscard]] inline bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && detail::equal_folded(a, b);
}
// Whether the list, parted by commas, has `token`.
[[nodiscard]] bool has_token(std::string_view list, std::string_view token) noexcept;

// `text` without its %-escapes. Nothing: one of them is wrong.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

struct Header {
  std::string_view name, value;
};

// The fields of a message that was received, in order. Views: see H1 of docs/design/http.md.
class Headers {
 public:
  Headers() noexcept = default;
  explicit Headers(std::span<const Header> fields) noexcept : fields_(fields) {}

  [[nodiscard]] auto begin() const noexcept { return fields_.begin(); }
  [[nodiscard]] auto end() const noexcept { return fields_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }

  // The first of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
  [[nodiscard]] bool contains(std::string_view name) const noexcept {
    return find(name).has_value();
  }
  // Whether one of that name has `token` in its list.
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const noexcept;

 private:
  std::span<const Header> fields_;
};

// Fields to be sent, in the form in which they are sent. Its memory is kept by clear().
class HeaderLines {
 public:
  HeaderLines() = default;
  // Each as by add(). On g++ 12 name the list before a co_await expression.
  HeaderLines(std::initializer_list<Header> fields) {
    for (const Header& field : fields) add(field.name, field.value);
  }

  // UsageError: `name` is no token, or there is a line break in `value`: it would be read as another field.
  void add(std::string_view name, std::string_view value);
  // In place of those of that name, which stay if it throws.
  void set(std::string_view name, std::string_view value);
  void remove(std::string_view name) noexcept;
  void clear() noexcept {
    text_.clear();
    lines_.clear();
  }
  void swap(HeaderLines& other) noexcept {
    text_.swap(other.text_);
    lines_.swap(other.lines_);
  }

  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
  // "name: value\r\n" of each.
  [[nodiscard]] std::string_view lines() const noexcept { return text_; }
  // Each; good until the next change.
  [[nodiscard]] std::vector<Header> fields() const;

 private:
  struct Line {
    std::size_t at;  // in text_
    std::size_t name_bytes, value_bytes;
  };
  static void require_field(std::string_view name, std::string_view value);
  void append(std::string_view name, std::string_view value);
  [[nodiscard]] Header field(const Line& line) const noexcept;
  // Whether `view` lies in text_, and is gone with the next change.
  [[nodiscard]] bool is_own(std::string_view view) const noexcept;

  std::string text_;
  std::vector<Line> lines_;
};

}  // namespace weft::inline v0::http
