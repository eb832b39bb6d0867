// SPDX-License-Identifier: MIT
#pragma once
// A server on one end of a MemoryStream, and bytes for the other.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/memory_stream.h"
#include "weft/weft.h"

namespace weft::test {

// Reads until the end.
inline Task<std::string> read_to_end(net::MemoryStream& stream) {
  std::string all;
  std::array<std::byte, 4096> buffer;
  while (true) {
    Result<std::size_t> count = co_await stream.read_some(buffer);
    if (!count || *count == 0) co_return all;
    all.append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
}

// Sends `bytes`, says that there will be no more, and returns all that came back.
inline Task<std::string> ask(net::MemoryStream& stream, std::string bytes) {
  std::string answer;
  auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto send = [&]() -> Task<void> {
      Result<void> sent = co_await net::write_all(stream, bytes);
      if (sent) sent = co_await stream.shutdown_write();
    };
    nursery.start(send);
    answer = co_await read_to_end(stream);
    co_return join;
  };
  co_await with_nursery(both);
  co_return answer;
}

struct Talk {
  http::ServerOptions options{};
  net::MemoryStreamOptions wire{};

  // What the server answers to `bytes`.
  std::string operator()(http::Handler& handler, std::string_view bytes) const {
    std::string answer;
    EventLoop loop;
    http::Server server(handler, options);
    auto talk = [&]() -> Task<void> {
      auto [client, served] = net::memory_streams(wire);
      net::MemoryStream mine = std::move(client);
      http::StreamTransport transport(std::move(served));
      auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
      auto question = [&]() -> Task<void> { answer = co_await ask(mine, std::string(bytes)); };
      co_await all_of(serve(), question());
    };
    run(loop, talk());
    EXPECT_EQ(loop.strand_count(), 0u);
    EXPECT_EQ(server.connections(), 0u);
    return answer;
  }
};

// The answers in `text`, whose bodies have a content-length or are chunked.
struct Answer {
  int status = 0;
  std::string head, body;
  bool is_chunked = false;

  // Of the first field of that name; "" if there is none.
  [[nodiscard]] std::string field(std::string_view name) const {
    for (std::size_t at = head.find("\r\n"); at != head.npos; at = head.find("\r\n", at + 2)) {
      std::string_view line = std::string_view(head).substr(at + 2);
      line = line.substr(0, line.find("\r\n"));
      std::size_t colon = line.find(": ");
      if (colon == line.npos) continue;
      if (http::equal_ignoring_case(line.substr(0, colon), name))
        return std::string(line.substr(colon + 2));
    }
    return "";
  }
};

// `heads`: the answers have no bodies.
inline std::vector<Answer> parse_answers(std::string_view text, bool heads = false) {
  std::vector<Answer> answers;
  while (!text.empty()) {
    std::size_t end = text.find("\r\n\r\n");
    if (end == text.npos) {
      ADD_FAILURE() << "no head: " << text;
      break;
    }
    Answer answer;
    answer.head = text.substr(0, end + 2);
    answer.status = std::stoi(answer.head.substr(9, 3));
    text.remove_prefix(end + 4);
    std::string length = answer.field("content-length");
    if (heads || answer.status < 200) {
    } else if (!length.empty()) {
      answer.body = text.substr(0, std::stoul(length));
      EXPECT_EQ(answer.body.size(), std::stoul(length));
      text.remove_prefix(answer.body.size());
    } else if (answer.field("transfer-encoding") == "chunked") {
      answer.is_chunked = true;
      while (true) {
        std::size_t line = text.find("\r\n");
        if (line == text.npos) return answers;  // torn: the caller sees that it is missing
        std::size_t size = std::stoul(std::string(text.substr(0, line)), nullptr, 16);
        answer.body += text.substr(line + 2, size);
        if (text.size() < line + 2 + size + 2) return answers;
        EXPECT_EQ(text.substr(line + 2 + size, 2), "\r\n");
        text.remove_prefix(line + 2 + size + 2);
        if (size == 0) break;
      }
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace weft::test
