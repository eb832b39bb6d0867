// SPDX-License-Identifier: MIT
#pragma once
// Both ends of a Stream write and read at once, every operation of theirs is cancelled at random
// and taken up again, and what arrives must be what was sent, byte for byte (L5, N3).
//
//     co_await exchange_at_random(a, b, {.seed = 7, .bytes = 100'000});
//
// Everything that net/ makes of a Stream takes part: single transfers and whole ones, spans and
// parts, buffered and not, and buffers that the loop lends where the stream has them. They are
// cancelled by a branch that ends first, by a time that runs out, and by their handle.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/net/buffered.h"
#include "weft/net/stream.h"
#include "weft/weft.h"

namespace weft::test {

struct RandomExchange {
  unsigned seed = 1;
  std::size_t bytes = 100'000;  // each way
};

namespace harness {

class Disturber {
 public:
  explicit Disturber(unsigned seed) : random_(seed) {}

  [[nodiscard]] std::size_t below(std::size_t limit) { return random_() % limit; }
  [[nodiscard]] unsigned cancelled() const { return cancelled_; }

  // Lets others run, so that they come to wait.
  Task<void> rest() { return turns(below(6)); }
  // The operation, which may be cancelled. Returns: what it returned, or nothing.
  template <class A>
  Task<std::optional<AwaitResult<A>>> disturb(A operation) {
    using T = AwaitResult<A>;
    std::optional<T> result;
    switch (below(4)) {
      case 0:
        result = co_await std::move(operation);
        break;
      case 1: {
        auto [ended, passed] = co_await any_of(std::move(operation), turns(below(5)));
        result = std::move(ended);
        break;
      }
      case 2: {
        auto ended = co_await timeout(std::chrono::microseconds(below(100)), std::move(operation));
        if (ended) result = std::move(*ended);
        break;
      }
      default: {
        StartedTask<T> started = whole(std::move(operation)).start_in_current_scope();
        co_await turns(below(5));
        started.cancel();
        Outcome<T> outcome = co_await started.outcome();
        if (!outcome.is_cancelled()) result = std::move(outcome).get();
        break;
      }
    }
    if (!result) ++cancelled_;
    co_return result;
  }

 private:
  static Task<void> turns(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) co_await yield();
  }
  template <class A>
  static Task<AwaitResult<A>> whole(A operation) {
    co_return co_await std::move(operation);
  }

  std::mt19937 random_;
  unsigned cancelled_ = 0;
};

// A stream of its own, given by its number.
inline std::string pseudo_random(unsigned seed, std::size_t count) {
  std::mt19937 random(seed);
  std::string text(count, '\0');
  for (char& each : text) each = static_cast<char>(random());
  return text;
}

template <class S>
Task<void> write_at_random(S& stream, std::string_view text, Disturber& by) {
  auto rest = std::as_bytes(std::span(text));
  while (!rest.empty()) {
    std::span<const std::byte> piece =
        rest.first(std::min(rest.size(), 1 + by.below(text.size() / 8)));
    const std::size_t before = piece.size();
    switch (by.below(3)) {
      case 0: {
        auto done = co_await by.disturb(net::write_all(stream, piece));
        if (done) or_throw(*done);
        break;
      }
      case 1: {
        auto count = co_await by.disturb(stream.write_some(piece));
        if (count) piece = piece.subspan(or_throw(*count));
        break;
      }
      default: {
        std::array<net::Part, 5> parts;
        std::span<const std::byte> left = piece;
        for (net::Part& each : parts) {
          each = net::Part(
              left.first(&each == &parts.back() ? left.size() : by.below(left.size() + 1)));
          left = left.subspan(each.size());
        }
        std::span<net::Part> to_write = parts;
        auto done = co_await by.disturb(net::write_all(stream, to_write));
        if (done) or_throw(*done);
        std::size_t unwritten = 0;
        for (const net::Part& each : to_write) unwritten += each.size();
        piece = piece.last(unwritten);
        break;
      }
    }
    rest = rest.subspan(before - piece.size());
    co_await by.rest();
  }
  Result<void> ended = co_await stream.shutdown_write();
  or_throw(ended);
}

template <class S>
Task<void> write_buffered_at_random(S& stream, std::string_view text, Disturber& by) {
  net::BufferedWriter<S> writer(stream, 1000);
  auto rest = std::as_bytes(std::span(text));
  while (!rest.empty() || writer.pending() > 0) {
    std::span<const std::byte> piece = rest.first(std::min(rest.size(), by.below(text.size() / 8)));
    const std::size_t before = piece.size();
    auto done = co_await by.disturb(writer.write(piece));
    if (done) or_throw(*done);
    rest = rest.subspan(before - piece.size());
    co_await by.rest();
    if (by.below(4) != 0 && !rest.empty()) continue;
    done = co_await by.disturb(writer.flush());
    if (done) or_throw(*done);
  }
  Result<void> ended = co_await stream.shutdown_write();
  or_throw(ended);
}

inline void append(std::string& text, std::span<const std::byte> bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class S>
Task<std::string> read_at_random(S& stream, Disturber& by) {
  std::string text;
  std::vector<std::byte> buffer(5000);
  while (true) {
    std::span<std::byte> room = std::span(buffer).first(1 + by.below(buffer.size()));
    switch (by.below(3)) {
      case 0: {
        std::span<std::byte> rest = room;
        auto done = co_await by.disturb(net::read_exactly(stream, rest));
        append(text, room.first(room.size() - rest.size()));
        if (!done || *done) break;
        EXPECT_EQ(done->error(), net::Error::unexpected_end);
        co_return text;
      }
      case 1:
        if constexpr (requires { stream.read_pooled(); }) {
          auto lent = co_await by.disturb(stream.read_pooled());
          if (!lent) break;
          PooledBytes bytes = or_throw(std::move(*lent));
          if (bytes.empty()) co_return text;
          append(text, std::span(bytes.begin(), bytes.size()));
          break;
        }
        [[fallthrough]];
      default: {
        auto count = co_await by.disturb(stream.read_some(room));
        if (!count) break;
        if (or_throw(*count) == 0) co_return text;
        append(text, room.first(**count));
      }
    }
  }
}

template <class S>
Task<std::string> read_buffered_at_random(S& stream, Disturber& by) {
  net::BufferedReader<S> reader(stream, 700);
  std::string text;
  std::vector<std::byte> buffer(1000);  // more than the reader's own
  auto take = [&](std::size_t count) {
    append(text, reader.buffered().first(count));
    reader.consume(count);
  };
  while (true) {
    switch (by.below(4)) {
      case 0: {
        auto line = co_await by.disturb(reader.read_until("\n"));
        if (!line) break;
        if (*line) take((*line)->size());
        if (*line) break;
        take(reader.buffered().size());  // too long for the buffer, or the end
        if (line->error() == net::Error::unexpected_end) co_return text;
        EXPECT_EQ(line->error(), net::Error::too_long);
        break;
      }
      case 1: {
        std::span<std::byte> room = std::span(buffer).first(1 + by.below(buffer.size()));
        std::span<std::byte> rest = room;
        auto done = co_await by.disturb(reader.read_exactly(rest));
        append(text, room.first(room.size() - rest.size()));
        if (!done || *done) break;
        EXPECT_EQ(done->error(), net::Error::unexpected_end);
        co_return text;
      }
      case 2: {
        auto count = co_await by.disturb(reader.read_some(buffer));
        if (!count) break;
        if (or_throw(*count) == 0) co_return text;
        append(text, std::span(buffer).first(**count));
        break;
      }
      default:
        take(by.below(reader.buffered().size() + 1));
        if (reader.buffered().size() == 700) break;
        auto count = co_await by.disturb(reader.fill());
        if (count && *count && **count == 0) {
          take(reader.buffered().size());
          co_return text;
        }
    }
  }
}

}  // namespace harness

template <net::Stream S>
Task<void> exchange_at_random(S& a, S& b, RandomExchange options) {
  const std::string there = harness::pseudo_random(options.seed, options.bytes);
  const std::string back = harness::pseudo_random(~options.seed, options.bytes);
  harness::Disturber wa(options.seed * 4), wb(options.seed * 4 + 1), ra(options.seed * 4 + 2),
      rb(options.seed * 4 + 3);
  Task<std::string> reads_a =
      options.seed % 2 ? harness::read_buffered_at_random(a, ra) : harness::read_at_random(a, ra);
  Task<std::string> reads_b =
      options.seed % 2 ? harness::read_at_random(b, rb) : harness::read_buffered_at_random(b, rb);
  auto [sent_a, sent_b, from_a, from_b] = co_await all_of(
      harness::write_at_random(a, there, wa), harness::write_buffered_at_random(b, back, wb),
      std::move(reads_b), std::move(reads_a));
  EXPECT_TRUE(from_a == there) << "seed " << options.seed;
  EXPECT_TRUE(from_b == back) << "seed " << options.seed;
  EXPECT_GT(wa.cancelled() + wb.cancelled(), 5u) << "the test did not test";
  EXPECT_GT(ra.cancelled() + rb.cancelled(), 5u) << "the test did not test";
}

}  // namespace weft::test
