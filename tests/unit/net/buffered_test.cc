// SPDX-License-Identifier: MIT
#include "weft/net/buffered.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
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

// "A line, then so many bytes", in every way that it can be torn; and what comes behind them is still there.
TEST(NetBufferedReader, ALineAndThenSoManyBytes) {
  for (std::size_t piece = 1; piece <= 12; ++piece) {
    for (std::size_t room = 4; room <= 16; ++room) {
      on_loop([&]() -> Task<void> {
        MemoryStreamOptions options{.read_bytes_max = piece};
        auto [near, far] = memory_streams(options);
        auto receive = [&]() -> Task<std::string> {
          BufferedReader reader(near, room);
          auto line = or_throw(co_await reader.read_until("\n"));
          std::string body(static_cast<std::size_t>(as_text(line)[0] - '0'), '\0');
          reader.consume(line.size());
          std::span<std::byte> rest = std::as_writable_bytes(std::span(body));
          Result<void> got = co_await reader.read_exactly(rest);
          or_throw(got);
          EXPECT_TRUE(rest.empty());
          auto next = or_throw(co_await reader.read_until("\n"));
          co_return body + "|" + std::string(as_text(next));
        };
        auto [sent, got] = co_await all_of(send(far, "9\n123456789ok\n"), receive());
        EXPECT_EQ(got, "123456789|ok\n") << piece << " " << room;
      });
    }
  }
}

TEST(NetBufferedReader, AnEndWithinThemTellsHowFarItCame) {
  on_loop([]() -> Task<void> {
    auto [near, far] = memory_streams();
    co_await send(far, "abc");
    BufferedReader reader(near, 8);
    std::array<std::byte, 5> buffer{};
    std::span<std::byte> rest = buffer;
    Result<void> got = co_await reader.read_exactly(rest);
    EXPECT_EQ(got.error(), Error::unexpected_end);
    EXPECT_EQ(rest.size(), 2u);
    EXPECT_EQ(as_text(std::span(buffer).first(3)), "abc");
  });
}

// L5: what was taken before the cancel is in the caller's buffer, and its cursor says so.
TEST(NetBufferedReader, ACancelledReadGoesOnWhereItWas) {
  on_loop([]() -> Task<void> {
    auto [near, far] = memory_streams();
    BufferedReader reader(near, 4);
    std::string body(10, '\0');
    std::span<std::byte> rest = std::as_writable_bytes(std::span(body));
    for (std::string_view part : {"012", "34567", "8"}) {
      Result<void> sent = co_await write_all(far, part);
      or_throw(sent);
      auto ended = co_await timeout(std::chrono::milliseconds(1), reader.read_exactly(rest));
      EXPECT_FALSE(ended.has_value());
    }
    EXPECT_EQ(rest.size(), 1u);
    co_await send(far, "9");
    Result<void> got = co_await reader.read_exactly(rest);
    or_throw(got);
    EXPECT_EQ(body, "0123456789");
  });
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
