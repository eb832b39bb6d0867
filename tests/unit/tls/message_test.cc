// SPDX-License-Identifier: MIT
// A message that follows the handshake, in several records of which the last has not come: OpenSSL encrypts nothing
// meanwhile. Tickets are the ones that are long enough: with a client's certificate in them, and records of 512 bytes.
#include <gtest/gtest.h>

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
#include "weft/tls/stream.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::MemoryStream;
using Tls = tls::Stream<MemoryStream>;

const tls::ClientContext& torn_client() {
  static const tls::ClientContext one = [] {
    tls::ClientOptions options = client_options();
    options.identity = authority().issue("alice", "DNS:alice.test");
    options.resume_sessions = false;  // every handshake is a whole one
    return client_context(options);
  }();
  return one;
}
const tls::ServerContext& torn_server() {
  static const tls::ServerContext one = [] {
    tls::ServerOptions options = server_options();
    options.client_certificate = tls::ClientCertificate::required;
    options.client_roots_pem = authority().pem();
    return server_context(options);
  }();
  return one;
}
void tear(tls::Engine& engine) { ASSERT_EQ(SSL_set_max_send_fragment(engine.native(), 512), 1); }

// What the engine has to send, taken out of it.
std::string taken_from(tls::Engine& engine) {
  std::string bytes;
  while (engine.has_output()) {
    std::span<const std::byte> front = engine.output();
    bytes.append(reinterpret_cast<const char*>(front.data()), front.size());
    engine.sent(front.size());
  }
  return bytes;
}
// Where each record ends.
std::vector<std::size_t> ends_of_records(std::string_view bytes) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at + 5 <= bytes.size();) {
    at += 5 + static_cast<unsigned char>(bytes[at + 3]) * 256u +
          static_cast<unsigned char>(bytes[at + 4]);
    ends.push_back(at);
  }
  return ends;
}

// --- Without a transport --------------------------------------------------------------------------

TEST(TlsEngine, InTheMiddleOfAMessageItTakesNothingAndGoesOnWithTheRest) {
  std::size_t torn = 0;
  for (bool ends : {false, true}) {
    for (std::size_t record = 0;; ++record) {
      EnginePair pair(torn_client(), torn_server());
      tear(pair.server);
      pair.shake_hands();
      ASSERT_TRUE(pair.done()) << pair.server.failure();
      write(pair.server, "answer");
      const std::string tickets = taken_from(pair.server);
      const std::vector<std::size_t> cuts = ends_of_records(tickets);
      if (record + 1 == cuts.size()) break;
      const std::string first = tickets.substr(0, cuts[record]),
                        last = tickets.substr(first.size());
      std::array<std::byte, 100> buffer;
      pair.client.feed(std::as_bytes(std::span(first)));
      EXPECT_EQ(or_throw(pair.client.read(buffer)), std::nullopt);
      if (pair.client.is_within_message()) {
        ++torn;
        EXPECT_EQ(write(pair.client, "question"), 0u);
        EXPECT_EQ(pair.client.end().error(), std::errc::resource_unavailable_try_again);
        EXPECT_FALSE(pair.client.has_output());
        pair.client.feed(std::as_bytes(std::span(last)));
      }
      if (ends) {
        or_throw(pair.client.end());
      } else {
        EXPECT_EQ(write(pair.client, "question"), 8u);
      }
      Received received = receive(pair.client, pair.server, pair.there);
      EXPECT_EQ(received.text, ends ? "" : "question");
      EXPECT_EQ(received.ended, ends);
      if (pair.client.needs_input()) pair.client.feed(std::as_bytes(std::span(last)));
      EXPECT_EQ(receive(pair.server, pair.client, pair.back).text, "answer");
    }
  }
  EXPECT_GE(torn, 4u) << "the test did not test";
}

TEST(TlsEngine, AnEndInTheMiddleOfAMessageIsTruncation) {
  EnginePair pair(torn_client(), torn_server());
  tear(pair.server);
  pair.shake_hands();
  const std::string tickets = taken_from(pair.server);
  const std::string first = tickets.substr(0, ends_of_records(tickets).front());
  std::array<std::byte, 100> buffer;
  pair.client.feed(std::as_bytes(std::span(first)));
  EXPECT_EQ(or_throw(pair.client.read(buffer)), std::nullopt);
  ASSERT_TRUE(pair.client.is_within_message()) << "the test did not test";
  pair.client.feed_end();
  net::Part part("question");
  EXPECT_EQ(pair.client.write(std::span<const net::Part>(&part, 1)).error(), tls::Error::truncated);
}

// --- With one -------------------------------------------------------------------------------------

Task<void> some_turns(unsigned count) {
  for (unsigned i = 0; i < count; ++i) co_await yield();
}
// A client that has read a part of a ticket, and the rest of it.
struct Torn {
  Tls client, server;
  std::string rest;

  Task<void> set_up() {
    auto [near, far] = net::memory_streams();
    client = Tls(std::move(near), torn_client(), "localhost");
    server = Tls(std::move(far), torn_server());
    tear(server.engine());
    auto done = co_await all_of(client.handshake(), server.handshake());
    or_throw(std::move(done));
    rest = taken_from(server.engine());
    co_await deliver(ends_of_records(rest).front());
    std::array<std::byte, 8> buffer;
    Result<std::size_t> nothing = co_await within(1s, client.read_some(buffer));
    EXPECT_EQ(nothing.error(), std::errc::timed_out);
    EXPECT_TRUE(client.engine().is_within_message()) << "the test did not test";
  }
  Task<void> deliver(std::size_t count) {
    co_await write_text(server.transport(), std::string_view(rest).substr(0, count));
    rest.erase(0, count);
  }
};

template <class Body>
void with_torn(Body body) {
  weft::testing::VirtualLoop loop;
  auto root = [&]() -> Task<void> {
    Torn torn;
    co_await torn.set_up();
    co_await body(torn);
  };
  run(loop, root());
}

enum class Reader { none, before, after, leaves };

TEST(TlsStream, AWriteWaitsForTheRestOfAMessageWhoeverReads) {
  for (bool ends : {false, true}) {
    for (Reader reader : {Reader::none, Reader::before, Reader::after, Reader::leaves}) {
      SCOPED_TRACE(static_cast<int>(reader));
      with_torn([&](Torn& torn) -> Task<void> {
        std::string answer;
        auto read = [&]() -> Task<void> {
          if (reader == Reader::none) co_return;
          if (reader == Reader::after) co_await some_turns(6);
          if (reader == Reader::leaves) {
            std::array<std::byte, 8> buffer;
            auto [got, passed] = co_await any_of(torn.client.read_some(buffer), some_turns(6));
            EXPECT_FALSE(got.has_value());
          } else {
            answer = co_await read_count(torn.client, 6);
          }
        };
        bool wrote = false;
        auto operate = [&]() -> Task<void> {
          co_await some_turns(2);
          if (ends) {
            Result<void> ended = co_await torn.client.shutdown_write();
            or_throw(ended);
          } else {
            co_await write_text(torn.client, "question");
          }
          wrote = true;
        };
        auto serve = [&]() -> Task<void> {
          co_await some_turns(20);
          EXPECT_FALSE(wrote);
          while (!torn.rest.empty()) {
            co_await torn.deliver(std::min<std::size_t>(torn.rest.size(), 100));
            co_await some_turns(3);
          }
          std::string got;
          if (ends) got = co_await read_to_end(torn.server);
          if (!ends) got = co_await read_count(torn.server, 8);
          EXPECT_EQ(got, ends ? "" : "question");
          co_await write_text(torn.server, "answer");
        };
        co_await all_of(read(), operate(), serve());
        if (answer.empty()) answer = co_await read_count(torn.client, 6);
        EXPECT_EQ(answer, "answer");
      });
    }
  }
}

TEST(TlsStream, AWriteThatIsCancelledInTheMiddleOfAMessageTookNothing) {
  for (bool reads : {false, true}) {
    with_torn([&](Torn& torn) -> Task<void> {
      auto twice = [&]() -> Task<void> {
        for (int i = 0; i < 2; ++i) {
          auto [count, passed] = co_await any_of(
              torn.client.write_some(std::as_bytes(std::span("never", 5))), some_turns(5));
          EXPECT_FALSE(count.has_value());
        }
        co_await torn.deliver(torn.rest.size());
        co_await all_of(write_text(torn.client, "question"), write_text(torn.server, "answer"));
        std::string got = co_await read_count(torn.server, 8);
        EXPECT_EQ(got, "question");
      };
      auto read = [&]() -> Task<std::string> {
        if (!reads) co_await some_turns(50);
        co_return co_await read_count(torn.client, 6);
      };
      auto [done, answer] = co_await all_of(twice(), read());
      EXPECT_EQ(answer, "answer");
    });
  }
}

TEST(TlsStream, ClosedInTheMiddleOfAMessageEverybodyIsTold) {
  for (bool reads_first : {false, true}) {
    with_torn([&](Torn& torn) -> Task<void> {
      auto read = [&]() -> Task<std::error_code> {
        if (!reads_first) co_await some_turns(3);
        std::array<std::byte, 8> buffer;
        Result<std::size_t> count = co_await torn.client.read_some(buffer);
        co_return count ? std::error_code() : count.error();
      };
      auto write = [&]() -> Task<std::error_code> {
        Result<void> written = co_await net::write_all(torn.client, "question");
        co_return written ? std::error_code() : written.error();
      };
      auto close = [&]() -> Task<void> {
        co_await some_turns(8);
        torn.client.close();
      };
      auto [read_error, write_error, closed] = co_await all_of(read(), write(), close());
      EXPECT_EQ(read_error, std::errc::bad_file_descriptor);
      EXPECT_EQ(write_error, std::errc::bad_file_descriptor);
    });
  }
}

TEST(TlsStream, ThePeersEndInTheMiddleOfAMessageIsAWritersToo) {
  with_torn([&](Torn& torn) -> Task<void> {
    Result<void> ended = co_await torn.server.transport().shutdown_write();
    or_throw(ended);
    Result<void> written = co_await net::write_all(torn.client, "question");
    EXPECT_EQ(written.error(), tls::Error::truncated);
  });
}

// Both ends write all the time, and every operation may be cancelled, while tickets come in pieces.
template <class S>
Task<void> exchange_among_tickets(S& client, S& server, unsigned seed) {
  std::string text(14'000, '\0');
  std::mt19937 random(seed);
  for (char& each : text) each = static_cast<char>(random());
  unsigned tickets = 0;
  auto send = [&](S& stream, bool hands_out) -> Task<void> {
    std::span<const std::byte> rest = std::as_bytes(std::span(text));
    while (!rest.empty()) {
      if (hands_out && random() % 2 == 0) {
        ++tickets;
        EXPECT_EQ(SSL_new_session_ticket(stream.engine().native()), 1);
      }
      std::span<const std::byte> piece = rest.first(std::min<std::size_t>(rest.size(), 700));
      rest = rest.subspan(piece.size());
      while (!piece.empty()) {
        auto [done, passed] =
            co_await any_of(net::write_all(stream, piece), some_turns(random() % 20));
        if (done) or_throw(*done);
      }
    }
    Result<void> ended = co_await stream.shutdown_write();
    or_throw(ended);
  };
  auto [a, b, from_client, from_server] = co_await all_of(send(client, false), send(server, true),
                                                          read_to_end(server), read_to_end(client));
  EXPECT_TRUE(from_client == text) << "seed " << seed;
  EXPECT_TRUE(from_server == text) << "seed " << seed;
  EXPECT_GT(tickets, 5u);
}

TEST(TlsStream, BothWaysAtOnceWhileTicketsComeInPieces) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    weft::testing::VirtualLoop loop;
    auto root = [&]() -> Task<void> {
      const std::size_t bytes = seed % 3 == 0 ? 40 : 600;
      net::MemoryStreamOptions options{.bytes_max = bytes, .read_bytes_max = bytes / 2};
      auto [near, far] = net::memory_streams(options);
      Tls client(std::move(near), torn_client(), "localhost");
      Tls server(std::move(far), torn_server());
      tear(server.engine());
      auto done = co_await all_of(client.handshake(), server.handshake());
      or_throw(std::move(done));
      co_await exchange_among_tickets(client, server, seed);
    };
    run(loop, root());
  }
}

TEST(TlsStream, BothWaysAtOnceOverTcpWhileTicketsComeInPieces) {
  EventLoop loop;
  auto root = [&]() -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    net::Address where = or_throw(listener.local_address());
    for (unsigned seed = 1; seed <= 4; ++seed) {
      auto both = co_await all_of(net::TcpStream::connect(where), listener.accept());
      auto [near, far] = or_throw(std::move(both));
      tls::Stream client(std::move(near), torn_client(), "localhost");
      tls::Stream server(std::move(far), torn_server());
      tear(server.engine());
      auto done = co_await all_of(client.handshake(), server.handshake());
      or_throw(std::move(done));
      co_await exchange_among_tickets(client, server, seed);
    }
  };
  run(loop, root());
}

}  // namespace
