// SPDX-License-Identifier: MIT
// RFC 9112 byte by byte, the client's side: what of a response is taken, and what is not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_client_fixture.h"
#include "weft/net/error.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;

enum class After { kept, closed };

struct Case {
  const char* section;  // of RFC 9112, unless it says otherwise
  const char* name;
  std::string bytes;
  int status = 0;  // 0: an error of the head
  std::string body{};
  std::error_code error{};
  After after = After::kept;
  Method method = Method::get;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.section << " " << c.name;
}

std::string ok(const std::string& rest) { return "HTTP/1.1 200 OK\r\n" + rest; }
std::string chunked(const std::string& rest) {
  return ok("Transfer-Encoding: chunked\r\n\r\n" + rest);
}

std::vector<Case> cases() {
  std::error_code bad = make_error_code(Error::bad_response);
  std::error_code bad_body = make_error_code(Error::bad_body);
  std::error_code end = make_error_code(net::Error::unexpected_end);
  constexpr After closed = After::closed;
  constexpr After kept = After::kept;
  return {
      // Status line
      {"4", "Length", ok("Content-Length: 3\r\n\r\nabc"), 200, "abc"},
      {"4", "LengthZero", ok("Content-Length: 0\r\n\r\n"), 200, ""},
      {"4", "NoReason", "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na", 200, "a"},
      {"4", "NoReasonAndNoSpace", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", 200, "a"},
      {"4", "AnUnknownStatus", "HTTP/1.1 799 Odd\r\nContent-Length: 1\r\n\r\na", 799, "a"},
      {"4", "TwoDigits", "HTTP/1.1 20 OK\r\n\r\n", 0, "", bad, closed},
      {"4", "FourDigits", "HTTP/1.1 2000 OK\r\n\r\n", 0, "", bad, closed},
      {"4", "BelowOneHundred", "HTTP/1.1 099 OK\r\n\r\n", 0, "", bad, closed},
      {"4", "NoStatus", "HTTP/1.1 OK\r\n\r\n", 0, "", bad, closed},
      {"4", "TwoSpaces", "HTTP/1.1  200 OK\r\n\r\n", 0, "", bad, closed},
      {"4", "AnEmptyLineBefore", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, "", bad,
       closed},
      {"4", "ARequest", "GET / HTTP/1.1\r\n\r\n", 0, "", bad, closed},
      {"4", "Nonsense", "SSH-2.0-x\r\n", 0, "", bad, closed},
      {"4", "Nothing", "", 0, "", end, closed},
      {"4", "EndsInTheHead", "HTTP/1.1 200 OK\r\nContent-Le", 0, "", end, closed},
      {"2.3", "Http10", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 200, "a", {}, closed},
      {"2.3", "Http10KeptAlive",
       "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", 200, "a"},
      {"2.3", "Http20", "HTTP/2.0 200 OK\r\n\r\n", 0, "", bad, closed},
      {"2.3", "Http09", "HTTP/0.9 200 OK\r\n\r\n", 0, "", bad, closed},
      {"2.3", "Icecast", "ICY 200 OK\r\n\r\n", 0, "", bad, closed},
      {"2.3", "Rtsp", "RTSP/1.0 200 OK\r\n\r\n", 0, "", bad, closed},
      // Field lines
      {"2.2", "BareLf", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", 0, "", bad, closed},
      {"2.2", "BareLfAfterAField", ok("Content-Length: 0\nA: b\r\n\r\n"), 0, "", bad, closed},
      {"5.1", "SpaceBeforeTheColon", ok("Content-Length : 3\r\n\r\nabc"), 0, "", bad, closed},
      {"5.2", "FoldedLine", ok("A: b\r\n c\r\nContent-Length: 0\r\n\r\n"), 0, "", bad, closed},
      {"5.5", "NulInAValue", ok("A: b" + std::string(1, '\0') + "\r\n\r\n"), 0, "", bad, closed},
      // Where a body ends
      {"6.3", "NoContent", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
      {"6.3", "NoContentWithALength", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", 204,
       ""},
      {"6.3", "NotModified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", 304, ""},
      {"6.3", "NotModifiedAndChunked",
       "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", 304, ""},
      {"6.3",
       "HeadWithALength",
       ok("Content-Length: 100\r\n\r\n"),
       200,
       "",
       {},
       kept,
       Method::head},
      {"6.3", "HeadWithoutALength", ok("\r\n"), 200, "", {}, kept, Method::head},
      {"6.3", "HeadAndChunked", chunked(""), 200, "", {}, kept, Method::head},
      {"6.3",
       "HeadWithABodyAllTheSame",
       ok("Content-Length: 3\r\n\r\nabc"),
       200,
       "",
       {},
       closed,
       Method::head},
      {"6.3", "UntilTheEnd", ok("\r\nall that comes"), 200, "all that comes", {}, closed},
      {"6.3", "UntilTheEndAndNothing", ok("\r\n"), 200, "", {}, closed},
      {"6.3", "UntilTheEndInHttp10", "HTTP/1.0 200 OK\r\n\r\nabc", 200, "abc", {}, closed},
      {"6.3", "TooShort", ok("Content-Length: 4\r\n\r\nabc"), 200, "", end, closed},
      {"6.3", "MoreThanTheLength", ok("Content-Length: 3\r\n\r\nabcd"), 200, "abc", {}, closed},
      {"6.3",
       "ASecondResponse",
       ok("Content-Length: 1\r\n\r\na") + ok("Content-Length: 1\r\n\r\nb"),
       200,
       "a",
       {},
       closed},
      {"6.3", "TwoLengths", ok("Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), 0, "", bad,
       closed},
      {"6.3", "TheSameLengthTwice", ok("Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), 0, "",
       bad, closed},
      {"6.3", "AListOfLengths", ok("Content-Length: 3, 3\r\n\r\nabc"), 0, "", bad, closed},
      {"6.3", "LengthWithASign", ok("Content-Length: +3\r\n\r\nabc"), 0, "", bad, closed},
      {"6.3", "ALengthThatOverflows", ok("Content-Length: 99999999999999999999\r\n\r\n"), 0, "",
       bad, closed},
      {"6.3", "LengthAndCoding",
       ok("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 0, "",
       bad, closed},
      {"6.3", "CodingAndLength",
       ok("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 0, "",
       bad, closed},
      {"6.1", "AnotherCoding", ok("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 0, "", bad,
       closed},
      {"6.1", "NotChunkedAtLast", ok("Transfer-Encoding: gzip\r\n\r\nabc"), 0, "", bad, closed},
      {"6.1", "AlmostChunked", ok("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 0, "", bad,
       closed},
      {"6.1", "CodingFromHttp10", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       0, "", bad, closed},
      // Chunks
      {"7.1", "Chunks", chunked("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), 200, "abc0123456789"},
      {"7.1", "NoChunks", chunked("0\r\n\r\n"), 200, ""},
      {"7.1", "ExtensionsAndTrailers", chunked("3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n"), 200, "abc"},
      {"7.1", "ChunksWithoutTheirEnd", chunked("3\r\nabc\r\n"), 200, "", end, closed},
      {"7.1", "ChunksTorn", chunked("3\r\nab"), 200, "", end, closed},
      {"7.1", "ABadSize", chunked("3\r\nabc\r\nx\r\n"), 200, "", bad_body, closed},
      {"7.1", "ChunkLongerThanItsSize", chunked("3\r\nabcd\r\n0\r\n\r\n"), 200, "", bad_body,
       closed},
      {"7.1", "ASizeThatOverflows", chunked("fffffffffffffffff\r\n"), 200, "", bad_body, closed},
      {"7.1", "BareLfAfterTheSize", chunked("3\nabc\r\n0\r\n\r\n"), 200, "", bad_body, closed},
      {"7.1", "MoreBehindTheLast", chunked("3\r\nabc\r\n0\r\n\r\nx"), 200, "abc", {}, closed},
      // Before the response
      {"9110 15.2", "Continue", "HTTP/1.1 100 Continue\r\n\r\n" + ok("Content-Length: 1\r\n\r\na"),
       200, "a"},
      {"9110 15.2", "EarlyHints",
       "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" +
           ok("Content-Length: 1\r\n\r\na"),
       200, "a"},
      {"9110 15.2", "InformationalWithALength",
       "HTTP/1.1 102 Processing\r\nContent-Length: 5\r\n\r\n" + ok("Content-Length: 1\r\n\r\na"),
       200, "a"},
      {"9110 15.2.2", "ASwitchThatNobodyAskedFor",
       "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 0, "", bad,
       closed},
      {"9110 15.2", "TooManyOfThem",
       [] {
         std::string many;
         for (int i = 0; i < 17; ++i) many += "HTTP/1.1 103 Early Hints\r\n\r\n";
         return many + ok("Content-Length: 1\r\n\r\na");
       }(),
       0, "", bad, closed},
      // The end of a connection
      {"9.6", "Close", ok("Connection: close\r\nContent-Length: 1\r\n\r\na"), 200, "a", {}, closed},
      {"9.6",
       "CloseInAList",
       ok("Connection: x, Close\r\nContent-Length: 1\r\n\r\na"),
       200,
       "a",
       {},
       closed},
  };
}

struct Got {
  int status = 0;
  std::string body;
  std::error_code error;
  After after = After::closed;
  friend bool operator==(const Got&, const Got&) = default;
};
std::ostream& operator<<(std::ostream& out, const Got& got) {
  return out << got.status << " \"" << got.body << "\" " << got.error.message()
             << (got.after == After::kept ? ", kept" : ", closed");
}

Got ask(const Case& c, std::size_t piece) {
  Got got;
  ClientTalk talk;
  talk.wire.read_bytes_max = piece;
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    co_await peer.write(c.bytes);
    peer.close();
  };
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(c.method, url("http://server/"));
    Result<ClientResponse> response = co_await client.request(std::move(request));
    if (response) {
      got.status = response->status();
      Result<std::string> body = co_await response->body().read_all();
      if (body) got.body = *body;
      if (!body) got.error = body.error();
      std::array<std::byte, 8> more;
      Result<std::size_t> again = co_await response->body().read_some(more);
      if (body) {
        EXPECT_EQ(again, 0u) << "after the end there is nothing";
      } else {
        EXPECT_EQ(again.error(), body.error()) << "an error stays";
      }
    } else {
      got.error = response.error();
    }
    got.after = client.idle_connections() == 1 ? After::kept : After::closed;
    EXPECT_EQ(client.connections(), client.idle_connections());
  });
  return got;
}

struct Rfc9112Response : ::testing::TestWithParam<Case> {};

TEST_P(Rfc9112Response, IsTakenAsItSays) {
  const Case& c = GetParam();
  Got expected{c.status, c.body, c.error, c.after};
  EXPECT_EQ(ask(c, 4096), expected);
}

// What comes behind a response, and at which moment, decides whether that is seen in time. All else is the same.
TEST_P(Rfc9112Response, IsTheSameHoweverItIsTorn) {
  const Case& c = GetParam();
  Got whole = ask(c, 4096);
  std::string name = c.name;
  bool has_more = name == "HeadWithABodyAllTheSame" || name == "MoreThanTheLength" ||
                  name == "ASecondResponse" || name == "MoreBehindTheLast";
  for (std::size_t piece = 1; piece < c.bytes.size(); ++piece) {
    Got torn = ask(c, piece);
    if (has_more) torn.after = whole.after;
    ASSERT_EQ(torn, whole) << "in pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(Sections, Rfc9112Response, ::testing::ValuesIn(cases()),
                         [](const auto& info) {
                           std::string name =
                               std::string("s") + info.param.section + "_" + info.param.name;
                           for (char& c : name) {
                             if (c == '.' || c == ' ') c = '_';
                           }
                           return name;
                         });

}  // namespace
