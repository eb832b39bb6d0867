// SPDX-License-Identifier: MIT
#include "weft/http/event_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_client_fixture.h"
#include "weft/http/error.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;

// A body that comes in pieces of `size`.
class Pieces final : public http::detail::BodySource {
 public:
  Pieces(std::string text, std::size_t size) : text_(std::move(text)), size_(size) {
    body.reset(*this, std::nullopt, 0);
  }
  Task<Result<std::size_t>> read_body(std::span<std::byte> buffer) override {
    std::size_t count = std::min({size_, buffer.size(), text_.size() - at_});
    std::memcpy(buffer.data(), text_.data() + at_, count);
    at_ += count;
    co_return count;
  }
  Body body;

 private:
  std::string text_;
  std::size_t size_, at_ = 0;
};

// "event|data|id" of each, then the error.
std::vector<std::string> events_of(std::string text, std::size_t size = 4096,
                                   std::size_t bytes_max = EventReader::kBytesMax) {
  std::vector<std::string> all;
  weft::testing::VirtualLoop loop;
  auto read = [&]() -> Task<void> {
    Pieces pieces(text, size);
    EventReader reader(pieces.body, bytes_max);
    while (true) {
      Result<std::optional<ReceivedEvent>> event = co_await reader.next();
      if (!event) {
        all.push_back(event.error().message());
        Result<std::optional<ReceivedEvent>> again = co_await reader.next();
        EXPECT_EQ(again.error(), event.error());
        co_return;
      }
      if (!*event) co_return;
      all.push_back((*event)->event + "|" + (*event)->data + "|" + (*event)->id);
    }
  };
  run(loop, read());
  return all;
}

using Events = std::vector<std::string>;

// The examples of HTML, 9.2.6, and what they leave out.
TEST(HttpEventReader, ReadsWhatTheStandardHas) {
  struct Case {
    std::string text;
    Events events;
  };
  const std::vector<Case> cases{
      {"data: YHOO\ndata: +2\ndata: 10\n\n", {"message|YHOO\n+2\n10|"}},
      {": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third "
       "event\n\n",
       {"message|first event|1", "message|second event|", "message| third event|"}},
      {"data\n\ndata\ndata\n\ndata:", {"message||", "message|\n|"}},
      {"data:test\n\ndata: test\n\n", {"message|test|", "message|test|"}},
      {"event: add\ndata: 7\n\nevent: none\n\ndata: 8\n\n", {"add|7|", "message|8|"}},
      {"\xef\xbb\xbf"
       "data: a\n\n",
       {"message|a|"}},
      {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", {"message|a|", "message|b|", "message|c|"}},
      {"data: a\r\n\n\r\n\rdata: b\r\n\r\n", {"message|a|", "message|b|"}},
      {"data: a\r\ndata: b\r\n\r\n", {"message|a\nb|"}},
      {"data: a\r\n\ndata: b\n\n", {"message|a|", "message|b|"}},
      {"id: 5\n\ndata: a\n\n", {"message|a|5"}},
      {std::string("id: 5\0\ndata: a\n\n", 16), {"message|a|"}},
      {"unknown: x\nDATA: y\n data: z\ndata: a\n\n", {"message|a|"}},
      {"data: no end\n", {}},
      {"", {}},
  };
  for (const Case& one : cases) {
    for (std::size_t size : {1u, 2u, 3u, 5u, 4096u}) {
      EXPECT_EQ(events_of(one.text, size), one.events) << one.text << " by " << size;
    }
  }
}

TEST(HttpEventReader, KnowsWhenToComeAgain) {
  weft::testing::VirtualLoop loop;
  auto read = [&]() -> Task<void> {
    Pieces pieces("retry: 1500\ndata: a\nid: 1\n\nretry: soon\nid: 2\ndata: b\n\n", 1);
    EventReader reader(pieces.body);
    EXPECT_EQ(reader.retry(), std::nullopt);
    Result<std::optional<ReceivedEvent>> event = co_await reader.next();
    EXPECT_EQ(reader.retry(), 1500ms);
    EXPECT_EQ(reader.last_event_id(), "1");
    event = co_await reader.next();
    EXPECT_EQ(reader.retry(), 1500ms);
    EXPECT_EQ(reader.last_event_id(), "2");
  };
  run(loop, read());
}

TEST(HttpEventReader, AnEventHasABound) {
  std::string too_large = make_error_code(Error::event_too_large).message();
  EXPECT_EQ(events_of("data: 0123456789\n\n", 4096, 16), Events{"message|0123456789|"});
  EXPECT_EQ(events_of("data: 01234567890\n\n", 4096, 16), Events{too_large});
  EXPECT_EQ(events_of("data: 0\n\n" + std::string(1000, 'x'), 1, 16),
            (Events{"message|0|", too_large}));
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "data: a\n";
  EXPECT_EQ(events_of(lines, 7, 64), Events{too_large});
  // An id has one of its own: each event behind it has a copy.
  std::string id(EventReader::kIdBytesMax, 'i');
  EXPECT_EQ(events_of("id: " + id + "\ndata: a\n\ndata: b\n\n", 4096),
            (Events{"message|a|" + id, "message|b|" + id}));
  EXPECT_EQ(events_of("id: " + id + "i\ndata: a\n\n", 4096), Events{too_large});
  // Many small ones are no large one.
  std::string many;
  for (int i = 0; i < 100; ++i) many += "data: a\n\n";
  EXPECT_EQ(events_of(many, 7, 16).size(), 100u);
}

}  // namespace
