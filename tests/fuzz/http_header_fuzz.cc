// SPDX-License-Identifier: MIT
// Fuzzes the header fields of a request: the request line is good, what comes behind it is anything.
//
// It looks for what a sanitizer sees, and for this: however the bytes are torn, what is read is the same; a name is a token and a value has
// nothing in it that ends a line (RFC 9110, 5.1 and 5.5); and what was read, written down again, is read as the same.
#include <cstdint>

#include "torn_message.h"

namespace {

using namespace weft::fuzz;

bool is_token(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.contains(c);
  });
}

void examine(const ReadMessage& message) {
  for (const auto& [name, value] : message.fields) {
    require(is_token(name));
    for (char c : value) require(c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
    if (value.empty()) continue;
    require(value.front() != ' ' && value.front() != '\t' && value.back() != ' ' &&
            value.back() != '\t');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  constexpr auto kRequest = MessageParser::Kind::request;
  constexpr auto kAny = weft::http::Method::get;
  std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\n";
  bytes.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  ReadMessages read = read_both_ways(kRequest, kAny, bytes, 1u + data[0]);
  if (read.messages.empty()) return 0;
  const ReadMessage& first = read.messages.front();
  examine(first);
  std::string again = "GET / HTTP/1.1\r\n";
  for (const auto& [name, value] : first.fields) again += name + ": " + value + "\r\n";
  ReadMessages same = read_messages(kRequest, kAny, again + "\r\n", again.size() + 2);
  require(!same.messages.empty() && same.messages.front().fields == first.fields);
  return 0;
}
