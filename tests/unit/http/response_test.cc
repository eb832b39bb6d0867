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
  std::string a{};  // the value of the field of that name
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.section << " " << c.name;
}

std::string ok(const std::string& rest) { return "HTTP/1.1 200 OK\r\n" + rest; }
std::string chunked(const std::string& rest) {
  return ok("Transfer-Encoding: chunked\r\n\r\n" + rest);
}

Case folded(const char* name, const std::string& lines, const std::string& a) {
  return {"5.2",       name, ok(lines + "Content-Length: 1\r\n\r\nx"), 200, "x", {}, After::kept,
          Method::get, a};
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
      {"4", "NoSpaceBeforeTheReason", "HTTP/1.1 200OK\r\n\r\n", 0, "", bad, closed},
      {"4", "NoStatus", "HTTP/1.1 OK\r\n\r\n", 0, "", bad, closed},
      {"4", "TwoSpaces", "HTTP/1.1  200 OK\r\n\r\n", 0, "", bad, closed},
      {"4", "AnEmptyLineBefore", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, "", bad,
       closed},
      {"4", "ARequest", "GET / HTTP/1.1\r\n\r\n", 0, "", bad, closed},
      {"4", "Nonsense", "SSH-2.0-x\r\n", 0, "", bad, closed},
      {"4", "Nothing", "", 0, "", end, closed},
      {"4", "EndsInTheHead", "HTTP/1.1 200 OK\r\nContent-Le", 0, "", end, closed},
      {"4", "AReason", "HTTP/1.1 200 It \x80 was\tfine\r\nContent-Length: 1\r\n\r\na", 200, "a"},
      {"4", "NulInTheReason",
       "HTTP/1.1 200 O" + std::string(1, '\0') + "K\r\nContent-Length: 0\r\n\r\n", 0, "", bad,
       closed},
      {"4", "AControlCharacterInTheReason", "HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n", 0,
       "", bad, closed},
      {"4", "BareCrInTheReason", "HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n", 0, "", bad,
       closed},
      {"4", "TwoCrsBehindTheReason", "HTTP/1.1 200 OK\r\r\nContent-Length: 0\r\n\r\n", 0, "", bad,
       closed},
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
      // 5.2: each fold is spaces to a user agent. What frames the message, or ends the connection, is not believed if it is folded.
      folded("FoldedLine", "A: b\r\n c\r\n", "b   c"),
      folded("FoldedWithATab", "A: b\r\n\tc\r\n", "b  \tc"),
      folded("FoldedTwice", "A: b \r\n  c\r\n d\r\n", "b     c   d"),
      folded("FoldedAndNothingBehindIt", "A: b\r\n \r\n", "b"),
      folded("FoldedBeforeTheValue", "A:\r\n b\r\n", "b"),
      folded("FoldedAndEmpty", "A:\r\n \r\n", ""),
      folded("FoldedLast", "B: c\r\nA: b\r\n c\r\n", "b   c"),
      folded("FoldedBesideOthers", "B:\r\n c\r\nA: b\r\nC: d\r\n\te\r\n", "b"),
      {"5.2",
       "FoldedUntilTheEnd",
       ok("A: b\r\n c\r\n\r\nabc"),
       200,
       "abc",
       {},
       closed,
       Method::get,
       "b   c"},
      {"5.2", "FoldedLength", ok("Content-Length:\r\n 3\r\n\r\nabc"), 0, "", bad, closed},
      {"5.2", "FoldedBehindTheLength", ok("Content-Length: 3\r\n \r\n\r\nabc"), 0, "", bad, closed},
      {"5.2", "ALengthInTwoLines", ok("Content-Length: 3\r\n 4\r\n\r\nabc"), 0, "", bad, closed},
      {"5.2", "FoldedCoding", ok("Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"), 0, "", bad,
       closed},
      {"5.2", "ACodingInTwoLines", ok("Transfer-Encoding: chunked\r\n , gzip\r\n\r\n0\r\n\r\n"), 0,
       "", bad, closed},
      {"5.2",
       "ALengthInAFold",
       ok("A: b\r\n Content-Length: 3\r\nContent-Length: 0\r\n\r\n"),
       200,
       "",
       {},
       kept,
       Method::get,
       "b   Content-Length: 3"},
      {"5.2",
       "FoldedClose",
       ok("Connection: x,\r\n close\r\nContent-Length: 1\r\n\r\na"),
       200,
       "a",
       {},
       closed},
      {"5.2", "BareLfBeforeAFold", ok("A: b\n c\r\nContent-Length: 0\r\n\r\n"), 0, "", bad, closed},
      {"5.2", "BareCrInAFold", ok("A: b\r\n c\rd\r\nContent-Length: 0\r\n\r\n"), 0, "", bad,
       closed},
      {"2.2", "SpaceBeforeTheFirstField", ok(" A: b\r\nContent-Length: 0\r\n\r\n"), 0, "", bad,
       closed},
      {"2.2", "ALineOfSpaceBeforeTheFirstField", ok(" \r\nContent-Length: 0\r\n\r\n"), 0, "", bad,
       closed},
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
      {"7.1.1", "Extensions", chunked("3 ; a = b;c=\"x\\\"y\" ;d\r\nabc\r\n0;e=f;g\r\n\r\n"), 200,
       "abc"},
      {"7.1.1", "NoValueBehindTheEquals", chunked("3;a=\r\nabc\r\n0\r\n\r\n"), 200, "", bad_body,
       closed},
      {"7.1.1", "AQuotedLineBreak", chunked("3;a=\"\r\nabc\r\n0\r\n\r\n"), 200, "", bad_body,
       closed},
      {"7.1.1", "BareLfInAnExtension", chunked("3;a\nabc\r\n0\r\n\r\n"), 200, "", bad_body, closed},
      {"6.1", "AnEmptyElementBeforeTheCoding",
       ok("Transfer-Encoding: ,chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"), 200, "x"},
      {"6.1", "AnEmptyElementBehindTheCoding",
       ok("Transfer-Encoding: chunked, \r\n\r\n1\r\nx\r\n0\r\n\r\n"), 200, "x"},
      {"6.3", "AnEmptyElementAndALength",
       ok("Transfer-Encoding: chunked,\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), 0, "", bad, closed},
      {"6.3", "ALengthAndAnEmptyElement",
       ok("Content-Length: 5\r\nTransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"), 0, "", bad, closed},
      {"6.1", "OnlyEmptyElements", ok("Transfer-Encoding: ,\r\n\r\nabc"), 0, "", bad, closed},
      {"6.1", "NoCoding", ok("Transfer-Encoding:\r\n\r\nabc"), 0, "", bad, closed},
      {"5.2", "FoldedTrailer", chunked("0\r\nA: b\r\n c\r\n\r\n"), 200, ""},
      {"5.2", "SpaceBeforeTheFirstTrailer", chunked("0\r\n A: b\r\n\r\n"), 200, "", bad_body,
       closed},
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
      // Incomplete messages
      {"8", "Nothing", "", 0, "", end, closed},
      {"8", "EndsInTheStatusLine", "HTTP/1.1 2", 0, "", end, closed},
      {"8", "EndsInTheFields", ok("Content-Length: 0\r\n"), 0, "", end, closed},
      {"8", "EndsBehindAnInterimOne", "HTTP/1.1 103 Early Hints\r\n\r\n", 0, "", end, closed},
      {"8", "EndsBeforeItsLength", ok("Content-Length: 4\r\n\r\nabc"), 200, "", end, closed},
      {"8", "EndsBeforeItsFirstByte", ok("Content-Length: 4\r\n\r\n"), 200, "", end, closed},
      {"8", "EndsInASize", chunked("3"), 200, "", end, closed},
      {"8", "EndsInAChunk", chunked("3\r\nab"), 200, "", end, closed},
      {"8", "EndsBetweenChunks", chunked("3\r\nabc\r\n"), 200, "", end, closed},
      {"8", "EndsInTheLastChunk", chunked("3\r\nabc\r\n0\r\n"), 200, "", end, closed},
      {"8", "EndsInTheTrailers", chunked("3\r\nabc\r\n0\r\nA: b\r\n"), 200, "", end, closed},
      {"8", "NeitherLengthNorChunks", ok("\r\nabc"), 200, "abc", {}, closed},
      // The end of a connection
      {"9.2",
       "MoreThanOneAnswer",
       ok("Content-Length: 0\r\n\r\n") + ok("\r\n"),
       200,
       "",
       {},
       closed},
      {"9.3", "Http11IsKept", ok("Content-Length: 1\r\n\r\na"), 200, "a"},
      {"9.3", "AlmostClose", ok("Connection: closed, xclose\r\nContent-Length: 1\r\n\r\na"), 200,
       "a"},
      {"9.3", "Http10", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 200, "a", {}, closed},
      {"9.3", "Http10KeptAlive",
       "HTTP/1.0 200 OK\r\nConnection: x, Keep-Alive\r\nContent-Length: 1\r\n\r\na", 200, "a"},
      {"9.3",
       "Http10KeptAliveUntilTheEnd",
       "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc",
       200,
       "abc",
       {},
       closed},
      {"9.3",
       "Http10CloseBesideKeepAlive",
       "HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 1\r\n\r\na",
       200,
       "a",
       {},
       closed},
      {"9.6",
       "CloseBesideKeepAlive",
       ok("Connection: close\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na"),
       200,
       "a",
       {},
       closed},
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
  std::string a;
  friend bool operator==(const Got&, const Got&) = default;
};
std::ostream& operator<<(std::ostream& out, const Got& got) {
  return out << got.status << " \"" << got.body << "\" " << got.error.message()
             << (got.after == After::kept ? ", kept" : ", closed") << ", A: [" << got.a << "]";
}

// In pieces of one size, or as one piece and the rest: `first` of the bytes are read before the others are sent.
Got ask(const Case& c, std::size_t piece, std::size_t first = 0) {
  Got got;
  ClientTalk talk;
  talk.wire.read_bytes_max = piece;
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_request();
    if (first > 0) {
      co_await peer.write(c.bytes.substr(0, first));
      co_await sleep_for(std::chrono::milliseconds(1));  // until everybody waits
    }
    co_await peer.write(c.bytes.substr(first));
    peer.close();
  };
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(c.method, url("http://server/"));
    Result<ClientResponse> response = co_await client.request(std::move(request));
    if (response) {
      got.status = response->status();
      got.a = response->headers().find("a").value_or("");
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
  Got expected{c.status, c.body, c.error, c.after, c.a};
  EXPECT_EQ(ask(c, 4096), expected);
}

// What comes behind a response, and at which moment, decides whether that is seen in time. All else is the same.
TEST_P(Rfc9112Response, IsTheSameHoweverItIsTorn) {
  const Case& c = GetParam();
  Got whole = ask(c, 4096);
  std::string name = c.name;
  bool has_more = name == "HeadWithABodyAllTheSame" || name == "MoreThanTheLength" ||
                  name == "ASecondResponse" || name == "MoreBehindTheLast" ||
                  name == "MoreThanOneAnswer";
  for (std::size_t piece = 1; piece < c.bytes.size(); ++piece) {
    Got torn = ask(c, piece);
    if (has_more) torn.after = whole.after;
    ASSERT_EQ(torn, whole) << "in pieces of " << piece;
    Got in_two = ask(c, 4096, piece);
    if (has_more) in_two.after = whole.after;
    ASSERT_EQ(in_two, whole) << "torn behind " << piece;
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
