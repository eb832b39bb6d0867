// SPDX-License-Identifier: MIT
// What every net::Stream must do, on every driver (docs/design/net.md).
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "stream_harness.h"
#include "stream_suite.h"
#include "support/stream_text.h"

namespace {

using namespace weft;
using namespace weft::test;

template <class Kind>
class StreamTest : public ::testing::Test {
 protected:
  // Runs body(one end, the other), a coroutine, once for each driver.
  template <class Body>
  void connected(Body body) {
    for (Driver driver : drivers()) {
      SCOPED_TRACE(to_string(driver));
      EventLoop loop(options_for(driver));
      auto root = [&]() -> Task<bool> {
        auto both = co_await Kind::connect();
        auto ended = co_await timeout(kTooLong, body(both.first, both.second));
        co_return ended.has_value();
      };
      EXPECT_TRUE(run(loop, root())) << "it hangs";
      EXPECT_EQ(loop.strand_count(), 0u);
      EXPECT_EQ(loop.statistics().operations, 0u) << "an operation outlived its task";
    }
  }
};
#ifdef WEFT_HAS_TLS
using Kinds =
    ::testing::Types<OverTcp, OverUnix, OverMemory, OverTornMemory, OverTls<OverTcp>,
                     OverTls<OverUnix>, OverTls<OverTornRecords>, OverTls<OverTls<OverMemory>>>;
#else
using Kinds = ::testing::Types<OverTcp, OverUnix, OverMemory, OverTornMemory>;
#endif
TYPED_TEST_SUITE(StreamTest, Kinds);

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// Bytes that say where they stand.
std::string pattern(std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}

template <class S>
Task<void> write_and_end(S& stream, std::string_view text) {
  co_await write_text(stream, text);
  Result<void> ended = co_await stream.shutdown_write();
  or_throw(ended);
}

TYPED_TEST(StreamTest, CarriesBytesBothWaysAtOnce) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    const std::string there = pattern(50'000), back = pattern(40'001);
    auto [x, y, from_a, from_b] = co_await all_of(write_and_end(a, there), write_and_end(b, back),
                                                  read_to_end(b), read_to_end(a));
    EXPECT_TRUE(from_a == there);
    EXPECT_TRUE(from_b == back);
  });
}

TYPED_TEST(StreamTest, TheEndIsReadAgainAndAgainAndTheOtherWayStaysOpen) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    co_await write_and_end(a, "ab");
    std::string text = co_await read_to_end(b);
    EXPECT_EQ(text, "ab");
    text = co_await read_to_end(b);
    EXPECT_EQ(text, "");
    co_await write_and_end(b, "still");
    text = co_await read_to_end(a);
    EXPECT_EQ(text, "still");
  });
}

TYPED_TEST(StreamTest, PartsArriveInOrderAndEmptyOnesDoNotMatter) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    std::array<net::Part, 5> parts{net::Part(""), net::Part("head"), net::Part(""),
                                   net::Part("box"), net::Part("")};
    std::span<net::Part> rest = parts;
    Result<void> written = co_await net::write_all(a, rest);
    EXPECT_TRUE(written.has_value());
    EXPECT_TRUE(rest.empty());
    Result<void> ended = co_await a.shutdown_write();
    EXPECT_TRUE(ended.has_value());
    std::string text = co_await read_to_end(b);
    EXPECT_EQ(text, "headbox");
  });
}

TYPED_TEST(StreamTest, MorePartsThanTheKernelTakesAtOnceAllArrive) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    const std::string text = pattern(5000);
    std::vector<net::Part> parts;
    for (const char& each : text) parts.emplace_back(std::string_view(&each, 1));
    auto send = [&]() -> Task<void> {
      std::span<net::Part> rest = parts;
      Result<void> written = co_await net::write_all(a, rest);
      or_throw(written);
      Result<void> ended = co_await a.shutdown_write();
      or_throw(ended);
    };
    auto [sent, got] = co_await all_of(send(), read_to_end(b));
    EXPECT_TRUE(got == text);
  });
}

TYPED_TEST(StreamTest, ReadExactlyTellsAnEndThatCameTooEarly) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    co_await write_and_end(a, "abc");
    std::array<std::byte, 5> buffer{};
    std::span<std::byte> rest = buffer;
    Result<void> got = co_await net::read_exactly(b, rest);
    EXPECT_EQ(got.error(), net::Error::unexpected_end);
    EXPECT_EQ(rest.size(), 2u) << "three bytes came";
    EXPECT_EQ(as_text(std::span(buffer).first(3)), "abc");
  });
}

TYPED_TEST(StreamTest, ClosedUnderAReadTheReadEnds) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    bool reads = false;
    auto read = [&]() -> Task<Result<std::size_t>> {
      std::array<std::byte, 8> buffer;
      reads = true;
      co_return co_await a.read_some(buffer);
    };
    auto close = [&]() -> Task<void> {
      while (!reads) co_await yield();
      a.close();
    };
    auto [got, closed] = co_await all_of(read(), close());
    EXPECT_EQ(got.error(), std::errc::bad_file_descriptor);
    std::array<std::byte, 8> buffer;
    Result<std::size_t> end = co_await b.read_some(buffer);
    EXPECT_EQ(end ? std::error_code() : end.error(), after_close<TypeParam>());
    EXPECT_EQ(end.value_or(0), 0u) << "the peer reads the end";
  });
}

// The same error as under a wait: who reads or writes in a loop may be between two of them.
TYPED_TEST(StreamTest, AfterCloseEveryOperationIsTheSameError) {
  this->connected([](auto& a, auto&) -> Task<void> {
    std::array<std::byte, 8> buffer;
    auto reading = a.read_some(buffer);  // not begun yet
    a.close();
    Result<std::size_t> count = co_await std::move(reading);
    EXPECT_TRUE(is_error(count, std::errc::bad_file_descriptor));
    count = co_await a.write_some(bytes_of("x"));
    EXPECT_TRUE(is_error(count, std::errc::bad_file_descriptor));
    std::array<net::Part, 2> parts{net::Part("x"), net::Part("y")};
    count = co_await a.write_some(std::span<const net::Part>(parts));
    EXPECT_TRUE(is_error(count, std::errc::bad_file_descriptor));
    std::span<const std::byte> rest = bytes_of("x");
    Result<void> done = co_await net::write_all(a, rest);
    EXPECT_TRUE(is_error(done, std::errc::bad_file_descriptor));
    EXPECT_EQ(rest.size(), 1u);
    done = co_await net::read_exactly(a, buffer);
    EXPECT_TRUE(is_error(done, std::errc::bad_file_descriptor));
    done = co_await a.shutdown_write();
    EXPECT_TRUE(is_error(done, std::errc::bad_file_descriptor));
    if constexpr (requires { a.read_pooled(); }) {
      Result<PooledBytes> lent = co_await a.read_pooled();
      EXPECT_TRUE(is_error(lent, std::errc::bad_file_descriptor));
    }
  });
}

// Whenever the close comes, under a wait of the writer's or between two of them.
TYPED_TEST(StreamTest, ClosedInTheMiddleOfWriteAllItIsAnError) {
  // A handshake each.
  constexpr bool kSlow = requires(typename TypeParam::Stream& stream) { stream.handshake(); };
  for (int turns = 0; turns < 60; turns += kSlow ? 10 : 1) {
    this->connected([turns](auto& a, auto& b) -> Task<void> {
      const std::string text = pattern(400'000);
      auto write = [&]() -> Task<Result<void>> { co_return co_await net::write_all(a, text); };
      auto read = [&]() -> Task<void> {
        std::array<std::byte, 8192> buffer;
        Result<std::size_t> count = 1;
        while (count && *count > 0) count = co_await b.read_some(buffer);
      };
      auto close = [&]() -> Task<void> {
        for (int i = 0; i < turns; ++i) co_await yield();
        a.close();
      };
      auto [written, got, closed] = co_await all_of(write(), read(), close());
      EXPECT_TRUE(written || is_error(written, std::errc::bad_file_descriptor)) << written.error();
    });
  }
}

TYPED_TEST(StreamTest, ASecondReaderIsRefused) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    bool reads = false;
    auto read = [&]() -> Task<std::size_t> {
      std::array<std::byte, 8> buffer;
      reads = true;
      Result<std::size_t> count = co_await a.read_some(buffer);
      co_return or_throw(count);
    };
    auto second = [&]() -> Task<bool> {
      while (!reads) co_await yield();
      bool refused = false;
      try {
        std::size_t count = co_await read();
        EXPECT_EQ(count, 0u) << "not reached";
      } catch (const UsageError&) {
        refused = true;
      }
      Result<void> sent = co_await net::write_all(b, "x");
      or_throw(sent);
      co_return refused;
    };
    auto [count, refused] = co_await all_of(read(), second());
    EXPECT_EQ(count, 1u) << "the first is not disturbed";
    EXPECT_TRUE(refused);
  });
}

TYPED_TEST(StreamTest, WritingToAPeerThatIsGoneIsAnError) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    b.close();
    const std::string text = pattern(4096);
    Result<void> written;
    // The first bytes may find room in the kernel before it knows.
    for (int i = 0; i < 1000 && written; ++i) {
      written = co_await net::write_all(a, text);
      co_await yield();
    }
    EXPECT_FALSE(written.has_value());
    if (!written) {
      EXPECT_TRUE(written.error() == std::errc::broken_pipe ||
                  written.error() == std::errc::connection_reset)
          << written.error();
    }
  });
}

TYPED_TEST(StreamTest, WithinEndsAReadThatTakesTooLongAndNothingIsLost) {
  this->connected([](auto& a, auto& b) -> Task<void> {
    std::array<std::byte, 8> buffer;
    Result<std::size_t> got = co_await within(1ms, a.read_some(buffer));
    EXPECT_EQ(got.error(), std::errc::timed_out);
    co_await write_and_end(b, "late");
    std::string text = co_await read_to_end(a);
    EXPECT_EQ(text, "late");
  });
}

TYPED_TEST(StreamTest, CancelledAndTakenUpAgainAtRandomNoByteIsLostOrDoubled) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    this->connected([seed](auto& a, auto& b) -> Task<void> {
      RandomExchange options{.seed = seed, .bytes = kSanitized ? 40'000u : 150'000u};
      if (std::is_same_v<TypeParam, OverTornMemory>) options.bytes = 5000;  // by threes
      co_await exchange_at_random(a, b, options);
    });
  }
}

}  // namespace
