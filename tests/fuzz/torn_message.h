// SPDX-License-Identifier: MIT
#pragma once
// What the fuzz targets of HTTP share: messages that come in pieces, read by http/'s own parser.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/parser.h"
#include "require.h"

namespace weft::fuzz {

using http::detail::MessageParser;

struct ReadMessage {
  std::string head;
  int status = 0;  // of a response
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  bool keeps_alive = false;
  bool is_whole = false;
  friend bool operator==(const ReadMessage&, const ReadMessage&) = default;
};

struct ReadMessages {
  std::vector<ReadMessage> messages;  // the last one may not be whole
  bool failed = false;
  friend bool operator==(const ReadMessages&, const ReadMessages&) = default;
};

// All messages in `bytes`, which come in pieces of `piece`.
inline ReadMessages read_messages(MessageParser::Kind kind, http::Method asked,
                                  std::string_view bytes, std::size_t piece) {
  MessageParser parser(kind, {.target_bytes_max = 200, .bytes_max = 1000, .fields_max = 10});
  parser.begin();
  parser.expect_answer_to(asked);
  ReadMessages read;
  std::vector<char> head;  // one that is torn, in one piece (P1)
  std::vector<std::byte> body;
  bool in_head = true;
  while (!bytes.empty()) {
    std::size_t size = std::min(piece, bytes.size());
    std::string_view next = bytes.substr(0, size);
    if (in_head) {
      std::vector<char> grown(head);
      grown.insert(grown.end(), next.begin(), next.end());
      parser.moved(head.data(), grown.data());
      head = std::move(grown);
      next = std::string_view(head.data(), head.size()).substr(head.size() - size);
    }
    body.resize(size);
    MessageParser::Step step = parser.walk(next, in_head ? std::span<std::byte>() : body);
    if (step.stop == MessageParser::Stop::failed) {
      read.failed = true;
      return read;
    }
    require(step.taken <= size);
    if (!in_head) {
      read.messages.back().body.append(reinterpret_cast<char*>(body.data()), parser.body_bytes());
    }
    bytes.remove_prefix(step.taken);
    if (in_head) head.resize(head.size() - (size - step.taken));
    if (step.stop == MessageParser::Stop::more) continue;
    if (in_head) {
      ReadMessage& message = read.messages.emplace_back();
      message.head = parser.head();
      message.status = parser.status();
      for (const http::Header& field : parser.fields()) {
        message.fields.emplace_back(field.name, field.value);
      }
      in_head = false;
    }
    if (step.stop == MessageParser::Stop::message) {
      read.messages.back().keeps_alive = parser.keeps_alive();
      read.messages.back().is_whole = true;
      parser.begin();
      head.clear();
      in_head = true;
    }
  }
  return read;
}

// Whether one of them begins with the other: of a body that fails, what came before the failure may be there or not.
inline bool begin_alike(std::string_view one, std::string_view other) {
  return one.starts_with(other) || other.starts_with(one);
}

// Reads them whole and torn. Returns: what both found. That one of them fails and the other does not is a finding: two that read
// the same bytes, a proxy and a server say, would not agree where a message ends. A failure is seen at once or at its byte; what
// comes before it is the same.
inline ReadMessages read_both_ways(MessageParser::Kind kind, http::Method asked,
                                   std::string_view bytes, std::size_t piece) {
  ReadMessages whole = read_messages(kind, asked, bytes, bytes.size() + 1);
  ReadMessages torn = read_messages(kind, asked, bytes, piece);
  require(whole.failed == torn.failed);
  if (whole.failed && whole.messages.size() == torn.messages.size() && !whole.messages.empty()) {
    ReadMessage& last = whole.messages.back();
    ReadMessage& last_torn = torn.messages.back();
    require(begin_alike(last.body, last_torn.body));
    last_torn.body = last.body;
  }
  require(whole == torn);
  return whole;
}

}  // namespace weft::fuzz
