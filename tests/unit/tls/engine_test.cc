// SPDX-License-Identifier: MIT
// The engine alone: bytes in, bytes out.
#include "weft/tls/engine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/tls_engines.h"
#include "weft/base/assert.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace weft::tls;

constexpr Versions kOnly12{Version::tls_1_2, Version::tls_1_2};
constexpr Versions kOnly13{Version::tls_1_3, Version::tls_1_3};

std::string pattern(std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}

class TlsEngineVersions : public ::testing::TestWithParam<Versions> {};
INSTANTIATE_TEST_SUITE_P(Versions, TlsEngineVersions, ::testing::Values(kOnly12, kOnly13),
                         [](const auto& info) {
                           return info.param.to == Version::tls_1_2 ? "Tls12" : "Tls13";
                         });

TEST_P(TlsEngineVersions, CarriesBytesBothWays) {
  ServerOptions options = server_options();
  options.versions = GetParam();
  EnginePair pair(client_context(), server_context(options));
  pair.shake_hands();
  ASSERT_TRUE(pair.done()) << pair.client.failure() << pair.server.failure();
  EXPECT_EQ(pair.client.version(), GetParam().to);
  EXPECT_EQ(pair.server.version(), GetParam().to);
  EXPECT_EQ(write(pair.client, "there"), 5u);
  EXPECT_EQ(receive(pair.client, pair.server, pair.there).text, "there");
  EXPECT_EQ(write(pair.server, "back"), 4u);
  EXPECT_EQ(receive(pair.server, pair.client, pair.back).text, "back");
}

// Each flight in pieces of each size, down to single bytes.
TEST_P(TlsEngineVersions, TheHandshakeMayBeTornAtEveryByte) {
  ServerOptions options = server_options();
  options.versions = GetParam();
  ServerContext server = server_context(options);
  ClientContext client = client_context();
  for (std::size_t piece : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 11u, 64u, 255u, 256u, 511u, 1399u}) {
    EnginePair pair(client, server, "localhost", piece);
    pair.shake_hands();
    ASSERT_TRUE(pair.done()) << piece << ": " << pair.client.failure() << pair.server.failure();
    write(pair.server, "ok");
    EXPECT_EQ(receive(pair.server, pair.client, pair.back).text, "ok") << piece;
  }
}

// A cut after each byte of the handshake is an error of its own, on the side that was left waiting.
TEST_P(TlsEngineVersions, ACutAtEveryByteOfTheHandshakeIsToldApart) {
  ServerOptions options = server_options();
  options.versions = GetParam();
  ServerContext context = server_context(options);
  ClientContext client = client_context();
  Engine asking(client, "localhost");
  static_cast<void>(asking.handshake());
  const std::string whole(reinterpret_cast<const char*>(asking.output().data()),
                          asking.output().size());
  ASSERT_GT(whole.size(), 100u);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    Engine server(context);
    std::string hello = whole.substr(0, cut);
    server.feed(std::as_bytes(std::span(hello)));
    EXPECT_FALSE(or_throw(server.handshake())) << "it needs more";
    server.feed_end();
    Result<bool> done = server.handshake();
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error(), Error::closed_in_handshake);
    EXPECT_EQ(server.handshake().error(), Error::closed_in_handshake) << "and again (T5)";
  }
}

TEST(TlsEngine, SmallPartsBecomeOneRecord) {
  EnginePair pair(client_context(), server_context());
  pair.shake_hands();
  ASSERT_TRUE(pair.done());
  std::vector<net::Part> parts{net::Part("head: 1\r\n"), net::Part(""), net::Part("\r\n"),
                               net::Part("body")};
  std::size_t before = pair.client.output_size();
  EXPECT_EQ(or_throw(pair.client.write(parts)), 15u);
  // One head of 5 bytes, one tag of 16, one byte for the kind of content (RFC 8446, 5.2).
  EXPECT_EQ(pair.client.output_size() - before, 15u + 5 + 1 + 16);
  EXPECT_EQ(receive(pair.client, pair.server, pair.there).text, "head: 1\r\n\r\nbody");
}

TEST(TlsEngine, ALargeWriteIsTakenInPartAndTheCountSaysHowMuch) {
  EnginePair pair(client_context(), server_context());
  pair.shake_hands();
  const std::string text = pattern(200'000);
  std::string got;
  std::string_view rest = text;
  // A small part first: then the records do not begin where the big part does.
  while (!rest.empty()) {
    std::array<net::Part, 2> parts{net::Part(rest.substr(0, 10)), net::Part(rest.substr(10))};
    if (rest.size() < 10) parts = {net::Part(rest), net::Part("")};
    std::size_t count = or_throw(pair.client.write(parts));
    EXPECT_LE(pair.client.output_size(), kOutputBytes) << "T6";
    EXPECT_TRUE(count > 0 || pair.client.has_output());
    rest.remove_prefix(count);
    got += receive(pair.client, pair.server, pair.there).text;
  }
  EXPECT_TRUE(got == text);
}

TEST(TlsEngine, FullOutputTakesNoMore) {
  EnginePair pair(client_context(), server_context());
  pair.shake_hands();
  const std::string text = pattern(100'000);
  EXPECT_EQ(write(pair.client, text), 2 * kRecordBytes);
  EXPECT_EQ(write(pair.client, text), 0u);
  EXPECT_EQ(receive(pair.client, pair.server, pair.there).text.size(), 2 * kRecordBytes);
  EXPECT_EQ(write(pair.client, text), 2 * kRecordBytes);
}

TEST(TlsEngine, OneReadTakesSeveralRecords) {
  EnginePair pair(client_context(), server_context());
  pair.shake_hands();
  write(pair.client, "one ");
  write(pair.client, "two ");
  write(pair.client, "three");
  pair.there.carry(pair.client, pair.server);
  std::array<std::byte, 100> buffer;
  Result<std::optional<std::size_t>> got = pair.server.read(buffer);
  EXPECT_EQ(or_throw(got), 13u);
}

TEST_P(TlsEngineVersions, TheEndIsAMessageAndTheOtherWayStaysOpen) {
  ServerOptions options = server_options();
  options.versions = GetParam();
  EnginePair pair(client_context(), server_context(options));
  pair.shake_hands();
  write(pair.client, "last");
  or_throw(pair.client.end());
  or_throw(pair.client.end());
  Received received = receive(pair.client, pair.server, pair.there);
  EXPECT_EQ(received.text, "last");
  EXPECT_TRUE(received.ended);
  EXPECT_TRUE(receive(pair.client, pair.server, pair.there).ended) << "again and again";
  net::Part more("more");
  EXPECT_EQ(pair.client.write(std::span<const net::Part>(&more, 1)).error(),
            std::errc::broken_pipe);
  // The tickets of TLS 1.3, which the client has not read yet, come first.
  write(pair.server, "still here");
  EXPECT_EQ(receive(pair.server, pair.client, pair.back).text, "still here");
}

TEST_P(TlsEngineVersions, AnEndWithoutTheMessageIsTruncation) {
  ServerOptions options = server_options();
  options.versions = GetParam();
  EnginePair pair(client_context(), server_context(options));
  pair.shake_hands();
  write(pair.client, "half");
  EXPECT_EQ(receive(pair.client, pair.server, pair.there).text, "half");
  pair.server.feed_end();
  EXPECT_EQ(receive(pair.client, pair.server, pair.there).error, Error::truncated);
  EXPECT_EQ(receive(pair.client, pair.server, pair.there).error, Error::truncated) << "T5";
}

TEST(TlsEngine, ACutInTheMiddleOfARecordIsTruncation) {
  EnginePair pair(client_context(), server_context());
  pair.shake_hands();
  write(pair.client, "whole");
  std::string cut(reinterpret_cast<const char*>(pair.client.output().data()),
                  pair.client.output().size() - 1);
  pair.server.feed(std::as_bytes(std::span(cut)));
  std::array<std::byte, 10> buffer;
  EXPECT_EQ(or_throw(pair.server.read(buffer)), std::nullopt);
  pair.server.feed_end();
  EXPECT_EQ(pair.server.read(buffer).error(), Error::truncated);
}

TEST(TlsEngine, AChangedByteIsAViolationAndWhatCameBeforeItIsDelivered) {
  EnginePair pair(client_context(), server_context());
  pair.shake_hands();
  write(pair.client, "good");
  std::size_t good = pair.client.output_size();
  write(pair.client, "evil");
  std::string wire(reinterpret_cast<const char*>(pair.client.output().data()),
                   pair.client.output_size());
  wire[good + 7] ^= 1;
  pair.server.feed(std::as_bytes(std::span(wire)));
  std::array<std::byte, 10> buffer;
  EXPECT_EQ(or_throw(pair.server.read(buffer)), 4u);
  EXPECT_EQ(pair.server.read(buffer).error(), Error::protocol_violation);
  EXPECT_TRUE(pair.server.has_output()) << "the alert";
  net::Part part("x");
  EXPECT_EQ(pair.server.write(std::span<const net::Part>(&part, 1)).error(),
            Error::protocol_violation)
      << "T5";
}

// OpenSSL marks the end of the peer's bytes in both cases.
TEST(TlsEngine, AFatalAlertIsNoEnd) {
  for (Versions versions : {kOnly12, kOnly13}) {
    ServerOptions options = server_options();
    options.versions = versions;
    EnginePair pair(client_context(), server_context(options));
    pair.shake_hands();
    std::string evil("\x17\x03\x03\0\x20", 5);
    evil += std::string(32, 'x');
    pair.server.feed(std::as_bytes(std::span(evil)));
    std::array<std::byte, 10> buffer;
    EXPECT_EQ(pair.server.read(buffer).error(), Error::protocol_violation);
    Received received = receive(pair.server, pair.client, pair.back);
    EXPECT_FALSE(received.ended);
    EXPECT_EQ(received.error, Error::peer_reported) << pair.client.failure();
  }
}

TEST(TlsEngine, WhatIsNoTlsIsRefused) {
  for (std::string garbage :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string(100, '\0'),
        std::string(100, '\xff'), std::string("\x16\x03\x01\xff\xff") + std::string(100, 'a'),
        pattern(1000)}) {
    Engine server(server_context());
    server.feed(std::as_bytes(std::span(garbage)));
    Result<bool> done = server.handshake();
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error(), Error::protocol_violation) << server.failure();
    Engine client(client_context(), "localhost");
    static_cast<void>(client.handshake());
    client.feed(std::as_bytes(std::span(garbage)));
    EXPECT_EQ(client.handshake().error(), Error::protocol_violation) << client.failure();
  }
}

TEST(TlsEngine, ReadsAndWritesBeforeTheHandshakeAreMistakes) {
  Engine server(server_context());
  std::array<std::byte, 10> buffer;
  net::Part part("x");
  EXPECT_THROW(static_cast<void>(server.read(buffer)), UsageError);
  EXPECT_THROW(static_cast<void>(server.write(std::span<const net::Part>(&part, 1))), UsageError);
  EXPECT_THROW(static_cast<void>(server.end()), UsageError);
}

// --- What comes after the handshake ---------------------------------------------------------------

TEST(TlsEngine, KeyUpdatesAreAnsweredAndBytesGoOn) {
  EnginePair pair(client_context(), server_context());
  pair.shake_hands();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(SSL_key_update(pair.client.native(), SSL_KEY_UPDATE_REQUESTED), 1);
    write(pair.client, "new keys");
    EXPECT_EQ(receive(pair.client, pair.server, pair.there).text, "new keys");
    write(pair.server, "mine too");
    EXPECT_EQ(receive(pair.server, pair.client, pair.back).text, "mine too");
  }
}

TEST(TlsEngine, TicketsAndKeyUpdatesAfterOurEndAreNoEnd) {
  EnginePair pair(client_context(), server_context());
  pair.shake_hands();
  or_throw(pair.client.end());
  EXPECT_TRUE(receive(pair.client, pair.server, pair.there).ended);
  ASSERT_EQ(SSL_key_update(pair.server.native(), SSL_KEY_UPDATE_REQUESTED), 1);
  write(pair.server, "answer");
  Received received = receive(pair.server, pair.client, pair.back);
  EXPECT_EQ(received.text, "answer");
  EXPECT_FALSE(received.ended);
  EXPECT_FALSE(pair.client.has_output()) << "nothing follows our end (I3)";
}

TEST(TlsEngine, RenegotiationIsRefused) {
  ServerOptions options = server_options();
  options.versions = kOnly12;
  EnginePair pair(client_context(), server_context(options));
  pair.shake_hands();
  ASSERT_TRUE(pair.done());
  // OpenSSL would not even begin: NO_RENEGOTIATION is ours too.
  EXPECT_EQ(SSL_renegotiate(pair.client.native()), 0);
  SSL_clear_options(pair.client.native(), SSL_OP_NO_RENEGOTIATION);
  ASSERT_EQ(SSL_renegotiate(pair.client.native()), 1);
  SSL_do_handshake(pair.client.native());
  EXPECT_EQ(receive(pair.client, pair.server, pair.there).text, "") << "a warning, and no new keys";
  EXPECT_TRUE(pair.server.has_output());
  EXPECT_EQ(SSL_total_renegotiations(pair.server.native()), 0);
}

}  // namespace
