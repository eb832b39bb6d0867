// SPDX-License-Identifier: MIT
// Fuzzes the chunked coding: the head is good, the body is anything.
//
// It looks for what a sanitizer sees, and for this: however the bytes are torn, what is read is the same; and a body is accepted exactly if it is
// one by the grammar of RFC 9112, 7.1, of which there is a second reader below, and says the same. (One that is within all limits, that is.)
#include <cstdint>
#include <optional>

#include "torn_message.h"

namespace {

using namespace weft::fuzz;

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

// The line that `text` begins with, which goes on with CR LF, is taken off.
std::optional<std::string_view> take_line(std::string_view& text) {
  std::size_t end = text.find("\r\n");
  if (end == text.npos) return std::nullopt;
  std::string_view line = text.substr(0, end);
  if (line.find_first_of("\r\n") != line.npos) return std::nullopt;
  text.remove_prefix(end + 2);
  return line;
}

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}
bool skip_token(std::string_view& text) {
  constexpr std::string_view kToken =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&'*+-.^_`|~";
  std::size_t size = std::min(text.find_first_not_of(kToken), text.size());
  text.remove_prefix(size);
  return size > 0;
}
bool skip_quoted(std::string_view& text) {
  text.remove_prefix(1);
  while (!text.empty() && text.front() != '"') {
    if (text.front() == '\\') text.remove_prefix(1);
    if (text.empty()) return false;
    auto c = static_cast<unsigned char>(text.front());
    if ((c < 0x20 && c != '\t') || c == 0x7f) return false;
    text.remove_prefix(1);
  }
  if (text.empty()) return false;
  text.remove_prefix(1);
  return true;
}
// 7.1.1: *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
bool are_extensions(std::string_view text) {
  while (!text.empty()) {
    skip_spaces(text);
    if (!text.starts_with(';')) return false;
    text.remove_prefix(1);
    skip_spaces(text);
    if (!skip_token(text)) return false;
    std::string_view behind = text;
    skip_spaces(behind);
    if (!behind.starts_with('=')) continue;
    text = behind.substr(1);
    skip_spaces(text);
    if (text.starts_with('"') ? !skip_quoted(text) : !skip_token(text)) return false;
  }
  return true;
}

// 7.1.2, 5: token ":" and anything that ends no line.
bool is_trailer(std::string_view line) {
  if (!skip_token(line) || !line.starts_with(':')) return false;
  return std::ranges::all_of(line, [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
}

// The body that `text` begins with; nothing if it is none, or not all there.
std::optional<std::string> decode(std::string_view text) {
  std::string body;
  while (true) {
    std::optional<std::string_view> line = take_line(text);
    if (!line) return std::nullopt;
    std::uint64_t size = 0;
    std::size_t digits = 0;
    while (digits < line->size() && hex_digit((*line)[digits])) {
      if (size >> 60 != 0) return std::nullopt;
      size = size * 16 + *hex_digit((*line)[digits++]);
    }
    if (digits == 0) return std::nullopt;
    if (!are_extensions(line->substr(digits))) return std::nullopt;
    if (size == 0) break;
    if (text.size() < 2 || text.size() - 2 < size) return std::nullopt;
    body += text.substr(0, size);
    text.remove_prefix(size);
    if (!text.starts_with("\r\n")) return std::nullopt;
    text.remove_prefix(2);
  }
  while (std::optional<std::string_view> trailer = take_line(text)) {
    if (trailer->empty()) return body;
    if (!is_trailer(*trailer)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string bytes = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  bytes += body;
  ReadMessages read =
      read_both_ways(MessageParser::Kind::request, weft::http::Method::get, bytes, 1u + data[0]);
  bool is_whole = !read.messages.empty() && read.messages.front().is_whole;
  std::optional<std::string> expected = decode(body);
  constexpr std::size_t kLimit = 1000;  // of what is not the body itself
  if (expected && body.size() <= kLimit) require(is_whole);
  if (is_whole) require(expected && *expected == read.messages.front().body);
  return 0;
}
