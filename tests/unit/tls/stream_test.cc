// SPDX-License-Identifier: MIT
// What tls::Stream adds to the conformance of every stream (tests/conformance/stream_test.cc): handshakes, what a cancel
// leaves, and messages that come when they like.
#include "weft/tls/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "support/stream_text.h"
#include "support/tls_engines.h"
#include "weft/net/memory_stream.h"
#include "weft/net/tcp.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::MemoryStream;
using net::MemoryStreamOptions;
using Tls = tls::Stream<MemoryStream>;

static_assert(net::Stream<Tls>);
static_assert(net::Stream<tls::Stream<net::TcpStream>>);
static_assert(tls::detail::LendsBuffers<net::TcpStream>);
static_assert(!tls::detail::LendsBuffers<MemoryStream>);

// Runs body(), a coroutine. Returns: how much of the loop's time that took.
template <class Body>
std::chrono::nanoseconds on_loop(Body body) {
  weft::testing::VirtualLoop loop;
  std::int64_t began = loop.now_ns();
  run(loop, body());
  return std::chrono::nanoseconds(loop.now_ns() - began);
}

std::string pattern(std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}
std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
Task<void> some_turns(unsigned count) {
  for (unsigned i = 0; i < count; ++i) co_await yield();
}

struct Ends {
  Ends(Tls ours, Tls theirs) : client(std::move(ours)), server(std::move(theirs)) {}
  Tls client, server;
};
Ends make_ends(MemoryStreamOptions options = {}, tls::ServerOptions server = server_options()) {
  auto [near, far] = net::memory_streams(options);
  return Ends(Tls(std::move(near), client_context(), "localhost"),
              Tls(std::move(far), server_context(std::move(server))));
}
Task<void> shake_hands(Ends& ends) {
  auto done = co_await all_of(ends.client.handshake(), ends.server.handshake());
  or_throw(std::move(done));
}

// --- The handshake --------------------------------------------------------------------------------

TEST(TlsStream, TheHandshakePassesThroughPipesOfEverySize) {
  for (std::size_t bytes : {1u, 2u, 3u, 5u, 64u, 1000u}) {
    on_loop([&]() -> Task<void> {
      MemoryStreamOptions options{.bytes_max = bytes};
      Ends ends = make_ends(options);
      co_await shake_hands(ends);
      auto [sent, got] =
          co_await all_of(write_text(ends.client, "hello"), read_count(ends.server, 5));
      EXPECT_EQ(got, "hello");
    });
  }
}

// For each n: both handshakes are cancelled when others have run n times, and begun again.
TEST(TlsStream, TheHandshakeMayBeCancelledAtEverySuspensionAndGoesOn) {
  unsigned cancelled = 0;
  for (tls::Version version : {tls::Version::tls_1_2, tls::Version::tls_1_3}) {
    bool finished = false;
    for (unsigned turns = 0; !finished; turns += 1 + turns / 50) {
      on_loop([&]() -> Task<void> {
        MemoryStreamOptions options{.bytes_max = 100, .read_bytes_max = 60};
        tls::ServerOptions server = server_options();
        server.versions = {version, version};
        Ends ends = make_ends(options, server);
        auto insist = [&](Tls& stream) -> Task<void> {
          auto [done, passed] = co_await any_of(stream.handshake(), some_turns(turns));
          if (done) or_throw(*done);
          if (!done) {
            ++cancelled;
            Result<void> again = co_await stream.handshake();
            or_throw(again);
          } else {
            finished = true;
          }
        };
        co_await all_of(insist(ends.client), insist(ends.server));
        auto [sent, got] =
            co_await all_of(write_text(ends.server, "hello"), read_count(ends.client, 5));
        EXPECT_EQ(got, "hello");
      });
    }
  }
  EXPECT_GT(cancelled, 20u) << "the test did not test";
}

TEST(TlsStream, ASilentPeerEndsTheHandshakeByItsTimeout) {
  std::chrono::nanoseconds took = on_loop([]() -> Task<void> {
    Ends ends = make_ends();
    Result<void> done = co_await ends.client.handshake();
    EXPECT_EQ(done.error(), std::errc::timed_out);
  });
  EXPECT_EQ(took, tls::kHandshakeTimeout);
  took = on_loop([]() -> Task<void> {
    tls::ServerOptions quick = server_options();
    quick.handshake_timeout = 100ms;
    Ends ends = make_ends({}, quick);
    Result<void> done = co_await ends.server.handshake();
    EXPECT_EQ(done.error(), std::errc::timed_out);
  });
  EXPECT_EQ(took, 100ms);
}

TEST(TlsStream, APeerThatLeavesDuringTheHandshakeIsAnError) {
  on_loop([]() -> Task<void> {
    auto [near, far] = net::memory_streams();
    Result<void> ended = co_await far.shutdown_write();
    or_throw(ended);
    Tls client(std::move(near), client_context(), "localhost");
    Result<void> done = co_await client.handshake();
    EXPECT_EQ(done.error(), tls::Error::closed_in_handshake);
    EXPECT_NE(client.failure().find("localhost"), std::string::npos) << client.failure();
  });
}

// A record of the handshake, with a message of no known kind.
constexpr std::string_view kNonsense("\x16\x03\x01\0\5hello", 10);

TEST(TlsStream, GarbageIsAnsweredWithAnAlert) {
  on_loop([]() -> Task<void> {
    auto [near, far] = net::memory_streams();
    co_await write_text(far, kNonsense);
    std::string why;
    Result<Tls> server = co_await tls::accept(std::move(near), server_context(), &why);
    EXPECT_EQ(server.error(), tls::Error::protocol_violation);
    EXPECT_NE(why.find("unexpected message"), why.npos) << why;
    std::string alert = co_await read_to_end(far);
    EXPECT_EQ(alert.substr(0, 1), "\x15") << "a record of type alert";
  });
}

TEST(TlsStream, AFailureIsToldToBothSides) {
  on_loop([]() -> Task<void> {
    auto [near, far] = net::memory_streams();
    std::string why;
    auto connecting = [&]() -> Task<std::error_code> {
      Result<Tls> client =
          co_await tls::connect(std::move(near), client_context(), "example.org", &why);
      co_return client ? std::error_code() : client.error();
    };
    auto accepting = [&]() -> Task<std::error_code> {
      Result<Tls> server = co_await tls::accept(std::move(far), server_context());
      co_return server ? std::error_code() : server.error();
    };
    auto [client, server] = co_await all_of(connecting(), accepting());
    EXPECT_EQ(client, tls::Error::certificate_wrong_host);
    EXPECT_NE(why.find("example.org"), why.npos) << why;
    EXPECT_EQ(server, tls::Error::own_certificate_refused);
  });
}

// The alert of a failure must not hold the failure up for ever.
TEST(TlsStream, AFailureIsToldEvenIfThePeerDoesNotReadTheAlert) {
  std::chrono::nanoseconds took = on_loop([]() -> Task<void> {
    MemoryStreamOptions narrow{.bytes_max = 5};
    auto [near, far] = net::memory_streams(narrow);
    Tls server(std::move(near), server_context());
    auto shake = [&]() -> Task<std::error_code> {
      Result<void> done = co_await server.handshake();
      co_return done ? std::error_code() : done.error();
    };
    auto [sent, error] = co_await all_of(write_text(far, kNonsense), shake());
    EXPECT_EQ(error, tls::Error::protocol_violation);
  });
  EXPECT_EQ(took, tls::kAlertTimeout);
}

TEST(TlsStream, UseBeforeTheHandshakeIsAMistake) {
  on_loop([]() -> Task<void> {
    Ends ends = make_ends();
    std::array<std::byte, 8> buffer;
    bool refused = false;
    try {
      Result<std::size_t> got = co_await ends.client.read_some(buffer);
      static_cast<void>(got);
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
}

// --- The end --------------------------------------------------------------------------------------

TEST(TlsStream, AnEndWithoutCloseNotifyIsTruncation) {
  on_loop([]() -> Task<void> {
    Ends ends = make_ends();
    co_await shake_hands(ends);
    co_await write_text(ends.client, "half");
    Result<void> ended = co_await ends.client.transport().shutdown_write();
    or_throw(ended);
    std::string got = co_await read_count(ends.server, 4);
    EXPECT_EQ(got, "half");
    std::array<std::byte, 8> buffer;
    for (int i = 0; i < 2; ++i) {
      Result<std::size_t> end = co_await ends.server.read_some(buffer);
      EXPECT_EQ(end.error(), tls::Error::truncated);
    }
  });
}

TEST(TlsStream, NothingIsWrittenAfterTheEnd) {
  on_loop([]() -> Task<void> {
    Ends ends = make_ends();
    co_await shake_hands(ends);
    for (int i = 0; i < 2; ++i) {
      Result<void> ended = co_await ends.client.shutdown_write();
      EXPECT_TRUE(ended.has_value()) << "twice is once";
    }
    Result<void> written = co_await net::write_all(ends.client, "more");
    EXPECT_EQ(written.error(), std::errc::broken_pipe);
    std::string got = co_await read_to_end(ends.server);
    EXPECT_EQ(got, "");
  });
}

TEST(TlsStream, AfterCloseEveryOperationIsRefused) {
  on_loop([]() -> Task<void> {
    Ends ends = make_ends();
    co_await shake_hands(ends);
    ends.client.close();
    ends.client.close();
    std::array<std::byte, 8> buffer;
    Result<std::size_t> got = co_await ends.client.read_some(buffer);
    EXPECT_EQ(got.error(), std::errc::bad_file_descriptor);
    Result<void> written = co_await net::write_all(ends.client, "x");
    EXPECT_EQ(written.error(), std::errc::bad_file_descriptor);
    Result<void> ended = co_await ends.client.shutdown_write();
    EXPECT_EQ(ended.error(), std::errc::bad_file_descriptor);
    Tls nothing;
    got = co_await nothing.read_some(buffer);
    EXPECT_EQ(got.error(), std::errc::bad_file_descriptor);
    nothing.close();
  });
}

TEST(TlsStream, ClosedUnderAWriteTheWriteEnds) {
  on_loop([]() -> Task<void> {
    MemoryStreamOptions narrow{.bytes_max = 10};
    Ends ends = make_ends(narrow);
    co_await shake_hands(ends);
    auto close = [&]() -> Task<void> {
      co_await some_turns(5);
      ends.client.close();
    };
    auto write = [&]() -> Task<std::error_code> {
      Result<void> written = co_await net::write_all(ends.client, pattern(1000));
      co_return written ? std::error_code() : written.error();
    };
    auto [error, closed] = co_await all_of(write(), close());
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
  });
}

TEST(TlsStream, ASecondWriterIsRefused) {
  on_loop([]() -> Task<void> {
    MemoryStreamOptions narrow{.bytes_max = 10};
    Ends ends = make_ends(narrow);
    co_await shake_hands(ends);
    auto second = [&]() -> Task<bool> {
      co_await some_turns(5);
      bool refused = false;
      try {
        co_await write_text(ends.client, "second");
      } catch (const UsageError&) {
        refused = true;
      }
      co_return refused;
    };
    auto [sent, refused, got] = co_await all_of(write_text(ends.client, pattern(1000)), second(),
                                                [&]() -> Task<std::string> {
                                                  co_await some_turns(20);
                                                  co_return co_await read_count(ends.server, 1000);
                                                });
    EXPECT_TRUE(refused);
    EXPECT_TRUE(got == pattern(1000)) << "the first is not disturbed";
  });
}

// --- What a cancel leaves -------------------------------------------------------------------------

// Writes `text` and is cancelled in the middle of its record. Returns: what the write said.
Task<std::size_t> write_cancelled(Tls& stream, std::string_view text) {
  auto [count, passed] = co_await any_of(stream.write_some(as_bytes(text)), some_turns(3));
  EXPECT_TRUE(count.has_value()) << "what a record has taken is told (L5)";
  co_return count ? or_throw(*count) : 0;
}

TEST(TlsStream, ACancelledWriteTellsWhatItTookAndTheNextOperationSendsTheRest) {
  enum class Next { write, read, end, flush };
  for (Next next : {Next::write, Next::read, Next::end, Next::flush}) {
    on_loop([&]() -> Task<void> {
      MemoryStreamOptions narrow{.bytes_max = 20};
      Ends ends = make_ends(narrow);
      co_await shake_hands(ends);
      std::size_t count =
          co_await write_cancelled(ends.client, "a request that is longer than the pipe");
      EXPECT_EQ(count, 38u);
      EXPECT_TRUE(ends.client.engine().has_output()) << "the test did not test";
      auto go_on = [&]() -> Task<void> {
        if (next == Next::write) co_await write_text(ends.client, "!");
        if (next == Next::read) {
          std::string answer = co_await read_count(ends.client, 6);
          EXPECT_EQ(answer, "answer");
        }
        if (next == Next::end) {
          Result<void> ended = co_await ends.client.shutdown_write();
          or_throw(ended);
        }
        if (next == Next::flush) {
          Result<void> flushed = co_await ends.client.flush();
          or_throw(flushed);
        }
      };
      auto serve = [&]() -> Task<void> {
        std::string got = co_await read_count(ends.server, 38);
        EXPECT_EQ(got, "a request that is longer than the pipe");
        if (next == Next::read) co_await write_text(ends.server, "answer");
        if (next == Next::write) got = co_await read_count(ends.server, 1);
        if (next == Next::end) got = co_await read_to_end(ends.server);
      };
      co_await all_of(go_on(), serve());
      EXPECT_FALSE(ends.client.engine().has_output());
    });
  }
}

// C2: nobody begins another operation, and a reader waits already.
TEST(TlsStream, AReaderThatWaitsSendsWhatACancelledWriteLeft) {
  on_loop([&]() -> Task<void> {
    MemoryStreamOptions narrow{.bytes_max = 20};
    Ends ends = make_ends(narrow);
    co_await shake_hands(ends);
    // The tickets, too: they would wake the reader.
    co_await all_of(write_text(ends.server, "x"), read_count(ends.client, 1));
    auto write = [&]() -> Task<void> {
      co_await some_turns(10);  // the reader is there first
      std::size_t count =
          co_await write_cancelled(ends.client, "a request that is longer than the pipe");
      EXPECT_EQ(count, 38u);
    };
    auto serve = [&]() -> Task<void> {
      co_await some_turns(30);
      std::string got = co_await read_count(ends.server, 38);
      EXPECT_EQ(got, "a request that is longer than the pipe");
      co_await write_text(ends.server, "answer");
    };
    auto [answer, written, served] = co_await all_of(read_count(ends.client, 6), write(), serve());
    EXPECT_EQ(answer, "answer");
  });
}

// C1: the transport takes one writer at a time.
TEST(TlsStream, AWriterWaitsForAReaderThatSends) {
  on_loop([&]() -> Task<void> {
    MemoryStreamOptions narrow{.bytes_max = 20};
    Ends ends = make_ends(narrow);
    co_await shake_hands(ends);
    std::size_t count =
        co_await write_cancelled(ends.client, "a request that is longer than the pipe");
    EXPECT_EQ(count, 38u);
    auto write = [&]() -> Task<void> {
      co_await some_turns(10);  // the reader sends meanwhile, and finds the pipe full
      co_await write_text(ends.client, ", and more");
    };
    auto serve = [&]() -> Task<void> {
      co_await some_turns(30);
      std::string got = co_await read_count(ends.server, 48);
      EXPECT_EQ(got, "a request that is longer than the pipe, and more");
      co_await write_text(ends.server, "answer");
    };
    auto [answer, written, served] = co_await all_of(read_count(ends.client, 6), write(), serve());
    EXPECT_EQ(answer, "answer");
  });
}

TEST(TlsStream, ACancelledWriteBehindAFullOutputTookNothing) {
  on_loop([&]() -> Task<void> {
    MemoryStreamOptions narrow{.bytes_max = 20};
    Ends ends = make_ends(narrow);
    co_await shake_hands(ends);
    const std::string text = pattern(100'000);
    std::size_t count = co_await write_cancelled(ends.client, text);
    EXPECT_EQ(count, 2 * tls::kRecordBytes);
    auto [more, passed] = co_await any_of(
        ends.client.write_some(as_bytes(std::string_view(text).substr(count))), some_turns(3));
    EXPECT_FALSE(more.has_value());
    auto [sent, got] =
        co_await all_of(write_text(ends.client, std::string_view(text).substr(count)),
                        read_count(ends.server, text.size()));
    EXPECT_TRUE(got == text);
  });
}

// --- Messages that come when they like ------------------------------------------------------------

TEST(TlsStream, BothWaysAtOnceWhileKeysChange) {
  for (std::size_t bytes : {7u, 1000u, 100'000u}) {
    on_loop([&]() -> Task<void> {
      MemoryStreamOptions options{.bytes_max = bytes, .read_bytes_max = bytes / 2 + 1};
      Ends ends = make_ends(options);
      co_await shake_hands(ends);
      const std::string text = pattern(60'000);
      unsigned updates = 0;
      auto send = [&](Tls& stream, unsigned seed) -> Task<void> {
        std::mt19937 random(seed);
        std::string_view rest = text;
        while (!rest.empty()) {
          if (random() % 4 == 0) {
            ++updates;
            EXPECT_EQ(SSL_key_update(stream.engine().native(), random() % 2
                                                                   ? SSL_KEY_UPDATE_REQUESTED
                                                                   : SSL_KEY_UPDATE_NOT_REQUESTED),
                      1);
          }
          std::string_view piece = rest.substr(0, 1 + random() % 3000);
          co_await write_text(stream, piece);
          rest.remove_prefix(piece.size());
        }
        Result<void> ended = co_await stream.shutdown_write();
        or_throw(ended);
      };
      auto [a, b, from_client, from_server] =
          co_await all_of(send(ends.client, 1), send(ends.server, 2), read_to_end(ends.server),
                          read_to_end(ends.client));
      EXPECT_TRUE(from_client == text);
      EXPECT_TRUE(from_server == text);
      EXPECT_GT(updates, 10u);
    });
  }
}

// T3, with a writer that is stuck, and with what a cancelled writer left: the key update wants an answer, for which there is no
// room, and still the bytes behind it are read.
TEST(TlsStream, AReadNeverWaitsForAPeerThatDoesNotRead) {
  for (bool cancelled : {false, true}) {
    on_loop([&]() -> Task<void> {
      MemoryStreamOptions narrow{.bytes_max = 200};
      Ends ends = make_ends(narrow);
      co_await shake_hands(ends);
      const std::string answer = pattern(5000);
      auto stuck = [&]() -> Task<void> {
        if (cancelled) {
          std::size_t count = co_await write_cancelled(ends.server, answer);
          EXPECT_EQ(count, answer.size());
        } else {
          co_await write_text(ends.server, answer);
        }
      };
      auto ask = [&]() -> Task<std::string> {
        co_await some_turns(20);
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ(SSL_key_update(ends.client.engine().native(), SSL_KEY_UPDATE_REQUESTED), 1);
          co_await write_text(ends.client, pattern(1000));
        }
        co_return co_await read_count(ends.client, answer.size());
      };
      auto serve = [&]() -> Task<std::string> {
        std::string got = co_await read_count(ends.server, 3000);
        Result<void> flushed;
        if (cancelled) flushed = co_await ends.server.flush();
        or_throw(flushed);
        co_return got;
      };
      auto [written, got_back, got] = co_await all_of(stuck(), ask(), serve());
      EXPECT_TRUE(got_back == answer);
      EXPECT_EQ(got.size(), 3000u);
    });
  }
}

TEST(TlsStream, TicketsTravelWithTheFirstAnswer) {
  on_loop([]() -> Task<void> {
    Ends ends = make_ends();
    co_await shake_hands(ends);
    EXPECT_TRUE(ends.server.engine().has_output()) << "the tickets wait";
    auto [written, got] =
        co_await all_of(write_text(ends.server, "answer"), read_count(ends.client, 6));
    EXPECT_EQ(got, "answer");
    EXPECT_FALSE(ends.server.engine().has_output());
  });
}

// T4: a server that only reads hands them out too.
TEST(TlsStream, TicketsTravelWithTheFirstRead) {
  on_loop([]() -> Task<void> {
    Ends ends = make_ends();
    co_await shake_hands(ends);
    std::array<std::byte, 8> buffer;
    Result<std::size_t> got = co_await within(1s, ends.server.read_some(buffer));
    EXPECT_EQ(got.error(), std::errc::timed_out);
    EXPECT_FALSE(ends.server.engine().has_output());
  });
}

}  // namespace
