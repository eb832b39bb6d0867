// SPDX-License-Identifier: MIT
// Bodies that come compressed, as other people's programs have written them (node's zlib).
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "support/http_client_fixture.h"
#include "support/http_fixture.h"
#include "weft/http/compression.h"
#include "weft/net/error.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;

const std::string kPlain = "Hello, hello, hello. Hello, hello, hello. Hello, hello, hello. ";

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}
const std::string kGzip =
    from_hex("1f8b0800000000000003f348cdc9c9d751c840a2f4143c88160400026f17183f000000");
const std::string kBrotli =
    from_hex("1b3e00f81da9539fba590d825486a6d8de8ac5a535f880187c540224ac11238a5b");

std::string coded(std::string_view coding, std::string_view body) {
  std::string text = "HTTP/1.1 200 OK\r\nContent-Encoding: " + std::string(coding) +
                     "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return text.append(body);
}

// "200 body", or the error.
struct How {
  ClientOptions options{.proxies = {}};
  net::MemoryStreamOptions wire{};
};
std::string got(std::string answer, const How& how = {}) {
  std::string result;
  ClientTalk talk;
  talk.options = how.options;
  talk.wire = how.wire;
  talk(always(std::move(answer)), [&](Client& client, ScriptedConnector&) -> Task<void> {
    result = co_await fetch(client, "http://server/");
  });
  return result;
}

std::string message_of(std::error_code error) { return error.message(); }

TEST(HttpClientCoding, DecodesWhatItAsksFor) {
  EXPECT_EQ(got(coded("gzip", kGzip)), "200 " + kPlain);
  EXPECT_EQ(got(coded("GZIP", kGzip)), "200 " + kPlain);
  EXPECT_EQ(got(coded("x-gzip", kGzip)), "200 " + kPlain);
  if (has_brotli()) {
    EXPECT_EQ(got(coded("br", kBrotli)), "200 " + kPlain);
  }
}

TEST(HttpClientCoding, SaysWhatItKnows) {
  std::string seen;
  auto script = [&](Peer& peer) -> Task<void> {
    seen = co_await peer.read_request();
    co_await peer.write(kHello);
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    co_await fetch(client, "http://server/");
  });
  EXPECT_TRUE(has_line(seen, has_brotli() ? "accept-encoding: br, gzip" : "accept-encoding: gzip"))
      << seen;
}

TEST(HttpClientCoding, TheFieldsFitTheBody) {
  ClientTalk()(always(coded("gzip", kGzip)), [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientResponse response = or_throw(co_await client.get("http://server/"));
    EXPECT_FALSE(response.headers().contains("content-encoding"));
    EXPECT_FALSE(response.headers().contains("content-length"));
    EXPECT_FALSE(response.body().length().has_value());
  });
}

TEST(HttpClientCoding, WhoAsksForItselfGetsWhatWasSent) {
  struct Case {
    const char *name, *value;
  };
  for (Case one : {Case{"accept-encoding", "gzip"}, Case{"range", "bytes=0-99"}}) {
    std::string seen;
    auto script = [&](Peer& peer) -> Task<void> {
      seen = co_await peer.read_request();
      co_await peer.write(coded("gzip", kGzip));
    };
    ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
      HeaderLines fields{{one.name, one.value}};
      ClientRequest request(Method::get, url("http://server/"), fields);
      ClientResponse response = or_throw(co_await client.request(std::move(request)));
      EXPECT_EQ(response.headers().find("content-encoding"), "gzip");
      EXPECT_EQ(response.body().length(), kGzip.size());
      std::string body = or_throw(co_await response.body().read_all());
      EXPECT_EQ(body, kGzip);
    });
    EXPECT_EQ(seen.find("br, gzip"), seen.npos) << seen;
  }
  How off;
  off.options.decodes = false;
  EXPECT_EQ(got(coded("gzip", kGzip), off), "200 " + kGzip);
}

TEST(HttpClientCoding, WhatItDoesNotKnowStaysAsItIs) {
  EXPECT_EQ(got(coded("zstd", kGzip)), "200 " + kGzip);
  EXPECT_EQ(got(coded("gzip, gzip", kGzip)), "200 " + kGzip);
  EXPECT_EQ(got(coded("gzip\r\ncontent-encoding: gzip", kGzip)), "200 " + kGzip);
  EXPECT_EQ(got(coded("identity", kPlain)), "200 " + kPlain);
}

TEST(HttpClientCoding, NothingIsNothing) {
  EXPECT_EQ(got(coded("gzip", "")), "200 ");
  EXPECT_EQ(got("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
                "0\r\n\r\n"),
            "200 ");
  ClientTalk()(always("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 33\r\n\r\n"),
               [&](Client& client, ScriptedConnector&) -> Task<void> {
                 ClientRequest head(Method::head, url("http://server/"));
                 ClientResponse response = or_throw(co_await client.request(std::move(head)));
                 EXPECT_EQ(response.headers().find("content-encoding"), "gzip");
                 EXPECT_EQ(response.headers().find("content-length"), "33");
               });
}

// RFC 1952, 2.2.
TEST(HttpClientCoding, GzipMayHaveSeveralMembers) {
  EXPECT_EQ(got(coded("gzip", kGzip + kGzip)), "200 " + kPlain + kPlain);
}

// Split at each byte, and in chunks of one byte.
TEST(HttpClientCoding, TornAnywhere) {
  for (bool is_brotli : {false, true}) {
    if (is_brotli && !has_brotli()) continue;
    const std::string& bytes = is_brotli ? kBrotli : kGzip;
    std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: ";
    chunked += is_brotli ? "br\r\n\r\n" : "gzip\r\n\r\n";
    for (char c : bytes) chunked.append("1\r\n").append(1, c).append("\r\n");
    chunked += "0\r\n\r\n";
    EXPECT_EQ(got(chunked), "200 " + kPlain);
    for (std::size_t size : {1u, 2u, 3u, 7u}) {
      How torn;
      torn.wire.read_bytes_max = size;
      EXPECT_EQ(got(chunked, torn), "200 " + kPlain);
    }
  }
}

TEST(HttpClientCoding, ReadsIntoASmallBuffer) {
  ClientTalk()(always(coded("gzip", kGzip)), [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientResponse response = or_throw(co_await client.get("http://server/"));
    std::string all;
    std::array<std::byte, 1> buffer;
    while (true) {
      Result<std::size_t> count = co_await response.body().read_some(buffer);
      if (or_throw(count) == 0) break;
      all += static_cast<char>(buffer[0]);
    }
    EXPECT_EQ(all, kPlain);
    EXPECT_EQ(client.idle_connections(), 1u) << "the connection is good for another";
  });
}

TEST(HttpClientCoding, WhatIsNotThatCodingIsAnError) {
  std::string bad = message_of(Error::bad_coding);
  EXPECT_EQ(got(coded("gzip", "this is no gzip")), bad);
  EXPECT_EQ(got(coded("gzip", kGzip + "behind it")), bad);
  for (std::size_t size = 1; size < kGzip.size(); ++size) {
    EXPECT_EQ(got(coded("gzip", kGzip.substr(0, size))), bad) << size;
  }
  std::string wrong = kGzip;
  wrong[wrong.size() - 5] ^= 1;  // the checksum
  EXPECT_EQ(got(coded("gzip", wrong)), bad);
  if (!has_brotli()) return;
  EXPECT_EQ(got(coded("br", kGzip)), bad);
  EXPECT_EQ(got(coded("br", kBrotli + "x")), bad);
  for (std::size_t size = 1; size < kBrotli.size(); ++size) {
    EXPECT_EQ(got(coded("br", kBrotli.substr(0, size))), bad) << size;
  }
}

TEST(HttpClientCoding, ABodyThatWasCutOffIsNoBadCoding) {
  std::string cut = coded("gzip", kGzip);
  cut.resize(cut.size() - 3);
  auto script = [&](Peer& peer) -> Task<void> {
    std::string request = co_await peer.read_request();
    co_await peer.write(cut);
    peer.close();
  };
  std::string result;
  ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    result = co_await fetch(client, "http://server/");
  });
  EXPECT_EQ(result, message_of(net::Error::unexpected_end));
}

// An error is the same again, and its connection is not kept.
TEST(HttpClientCoding, AnErrorIsForGood) {
  ClientTalk()(always(coded("gzip", kGzip + "behind it")),
               [&](Client& client, ScriptedConnector&) -> Task<void> {
                 ClientResponse response = or_throw(co_await client.get("http://server/"));
                 Result<std::string> body = co_await response.body().read_all();
                 EXPECT_EQ(body.error(), Error::bad_coding);
                 body = co_await response.body().read_all();
                 EXPECT_EQ(body.error(), Error::bad_coding);
               });
}

// 4 MiB of zeroes: deflate makes 4 KiB of it, brotli a dozen bytes. Made by our own server.
TEST(HttpClientCoding, ABombIsDefused) {
  for (const char* coding : {"gzip", "br"}) {
    if (!has_brotli() && std::string_view(coding) == "br") continue;
    Router routes;
    routes.use(Compression());
    routes.get("/", [](const Request&, Response& response) -> Task<void> {
      response.body("text/plain", std::string(4 * 1024 * 1024, '\0'));
      co_return;
    });
    std::string answer =
        Talk{}(routes,
               "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: " + std::string(coding) + "\r\n\r\n");
    EXPECT_LT(answer.size(), 8000u);
    EXPECT_EQ(got(answer), message_of(Error::expanded_too_much)) << coding;
    How trusting;
    trusting.options.limits.expansion_max = 1'000'000'000;
    EXPECT_EQ(got(answer, trusting).size(), 4u + 4 * 1024 * 1024) << coding;
    // What is small may be as dense as it likes, and read_all() has its own bound.
    How bounded;
    bounded.options.limits.expansion_max = 1'000'000'000;
    bounded.options.limits.body_bytes_max = 1024 * 1024;
    EXPECT_EQ(got(answer, bounded), message_of(Error::body_too_large)) << coding;
  }
}

}  // namespace
