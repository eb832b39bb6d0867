// SPDX-License-Identifier: MIT
#include "weft/net/buffered.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "weft/net/memory_stream.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::net;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Body>
void on_loop(Body body) {
  weft::testing::VirtualLoop loop;
  run(loop, body());
}

Task<void> send(MemoryStream& to, std::string text) {
  Result<void> written = co_await write_all(to, text);
  or_throw(written);
  Result<void> ended = co_await to.shutdown_write();
  or_throw(ended);
}

// Torn in every way: pieces of 1 to 8 bytes, buffers of 8 to 16.
TEST(NetBufferedReader, FindsLinesHoweverTheyAreTorn) {
  for (std::size_t piece = 1; piece <= 8; ++piece) {
    for (std::size_t room = 8; room <= 16; ++room) {
      on_loop([&]() -> Task<void> {
        MemoryStreamOptions options{.read_bytes_max = piece};
        auto [near, far] = memory_streams(options);
        auto receive = [&]() -> Task<std::vector<std::string>> {
          std::vector<std::string> lines;
          BufferedReader reader(near, room);
          while (true) {
            auto line = co_await reader.read_until("\r\n");
            if (!line) {
              EXPECT_EQ(line.error(), Error::unexpected_end);
              lines.emplace_back(as_text(reader.buffered()));
              co_return lines;
            }
            lines.emplace_back(as_text(*line));
            reader.consume(line->size());
          }
        };
        auto [sent, lines] =
            co_await all_of(send(far, "ab\r\n\r\n\rc\r\r\n123456\r\nrest"), receive());
        EXPECT_EQ(lines,
                  (std::vector<std::string>{"ab\r\n", "\r\n", "\rc\r\r\n", "123456\r\n", "rest"}));
      });
    }
  }
}

TEST(NetBufferedReader, ALineLongerThanTheBufferIsAnErrorAndStaysThere) {
  on_loop([]() -> Task<void> {
    auto [near, far] = memory_streams();
    co_await send(far, "0123456789\n");
    BufferedReader reader(near, 8);
    auto line = co_await reader.read_until("\n");
    EXPECT_EQ(line.error(), Error::too_long);
    EXPECT_EQ(as_text(reader.buffered()), "01234567");
    reader.consume(5);
    line = co_await reader.read_until("\n");
    EXPECT_EQ(as_text(or_throw(line)), "56789\n");
  });
}

TEST(NetBufferedReader, WhatWasReadSurvivesACancel) {
  on_loop([]() -> Task<void> {
    auto [near, far] = memory_streams();
    BufferedReader reader(near);
    Result<void> sent = co_await write_all(far, "half a ");
    or_throw(sent);
    auto line = co_await timeout(std::chrono::seconds(1), reader.read_until("\n"));
    EXPECT_FALSE(line.has_value()) << "nobody ended the line";
    co_await send(far, "line\n");
    auto whole = co_await reader.read_until("\n");
    EXPECT_EQ(as_text(or_throw(whole)), "half a line\n");
  });
}

TEST(NetBufferedReader, ReadSomeTakesWhatIsBufferedFirst) {
  on_loop([]() -> Task<void> {
    auto [near, far] = memory_streams();
    co_await send(far, "line\nbody");
    BufferedReader reader(near);
    auto line = co_await reader.read_until("\n");
    reader.consume(or_throw(line).size());
    std::array<std::byte, 3> buffer;
    std::string rest;
    while (true) {
      Result<std::size_t> count = co_await reader.read_some(buffer);
      if (or_throw(count) == 0) break;
      rest += as_text(std::span(buffer).first(*count));
    }
    EXPECT_EQ(rest, "body");
  });
}

TEST(NetBufferedWriter, WritesOnlyWhenFullOrFlushed) {
  on_loop([]() -> Task<void> {
    auto [near, far] = memory_streams();
    BufferedWriter writer(near, 8);
    Result<void> written = co_await writer.write("12345");
    EXPECT_TRUE(written.has_value());
    EXPECT_EQ(writer.pending(), 5u);
    written = co_await writer.write("6789");
    EXPECT_TRUE(written.has_value());
    EXPECT_EQ(writer.pending(), 1u) << "eight went out";
    written = co_await writer.flush();
    EXPECT_TRUE(written.has_value());
    EXPECT_EQ(writer.pending(), 0u);
    near.close();
    std::array<std::byte, 16> buffer;
    Result<std::size_t> count = co_await far.read_some(buffer);
    EXPECT_EQ(as_text(std::span(buffer).first(or_throw(count))), "123456789");
  });
}

TEST(NetBufferedWriter, GoesOnAfterACancelWhereItWas) {
  on_loop([]() -> Task<void> {
    MemoryStreamOptions options{.bytes_max = 4};
    auto [near, far] = memory_streams(options);
    BufferedWriter writer(near, 8);
    std::string text = "abcdefghijklmnopqrstuvwxyz";
    std::span<const std::byte> rest = std::as_bytes(std::span(text));
    auto ended = co_await timeout(std::chrono::seconds(1), writer.write(rest));
    EXPECT_FALSE(ended.has_value()) << "nobody reads";
    auto finish = [&]() -> Task<void> {
      Result<void> written = co_await writer.write(rest);
      or_throw(written);
      written = co_await writer.flush();
      or_throw(written);
      near.close();
    };
    auto receive = [&]() -> Task<std::string> {
      std::string got;
      std::array<std::byte, 3> buffer;
      while (true) {
        Result<std::size_t> count = co_await far.read_some(buffer);
        if (or_throw(count) == 0) co_return got;
        got += as_text(std::span(buffer).first(*count));
      }
    };
    auto [finished, got] = co_await all_of(finish(), receive());
    EXPECT_EQ(got, text);
  });
}

}  // namespace
