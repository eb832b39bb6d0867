// SPDX-License-Identifier: MIT
// RFC 9112 byte by byte: what a server must take, and what it must not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_fixture.h"
#include "weft/testing/virtual_loop.h"

namespace {

using namespace weft;
using namespace weft::http;
using test::Answer;
using test::parse_answers;
using test::Talk;

// Answers with what it was asked.
class Mirror final : public Handler {
  Task<void> handle_request(const Request& request, Response& response, Connection&) override {
    Result<std::string> body = co_await request.body().read_all();
    std::string text(request.method_name());
    text.append(" ").append(request.path()).append(" ?").append(request.query());
    text.append(" @").append(request.authority());
    for (const Header& field : request.headers()) {
      text.append(" ").append(field.name).append("=[").append(field.value).append("]");
    }
    text.append(" ").append(or_throw(std::move(body)));
    response.body("text/plain", text);
  }
};

struct Case {
  const char* section;  // of RFC 9112, unless it says otherwise
  const char* name;
  std::string bytes;
  int status;
  std::string body{};  // checked if it is not empty
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.section << " " << c.name;
}

const std::string kHost = "Host: a\r\n";
std::string get(const std::string& fields) { return "GET / HTTP/1.1\r\n" + fields + "\r\n"; }
std::string post(const std::string& fields, const std::string& body) {
  return "POST / HTTP/1.1\r\n" + kHost + fields + "\r\n" + body;
}

std::vector<Case> cases() {
  return {
      // Message format
      {"2.2", "EmptyLinesBeforeARequestAreSkipped", "\r\n\r\n" + get(kHost), 200},
      {"2.2", "BareLfAfterTheRequestLine", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
      {"2.2", "BareLfAfterAField", "GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n", 400},
      {"2.2", "BareLfAtTheEndOfTheHead", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400},
      {"2.2", "BareLfEverywhere", "GET / HTTP/1.1\nHost: a\n\n", 400},
      {"2.2", "BareCrInAValue", get(kHost + "A: b\rc\r\n"), 400},
      {"2.2", "SpaceBeforeTheFirstField", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {"2.3", "Http12", "GET / HTTP/1.2\r\n" + kHost + "\r\n", 505},
      {"2.3", "Http20", "GET / HTTP/2.0\r\n" + kHost + "\r\n", 505},
      {"2.3", "Http09", "GET / HTTP/0.9\r\n\r\n", 505},
      {"2.3", "Http2Preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"2.3", "NoVersion", "GET /\r\n\r\n", 400},
      {"2.3", "LowerCase", "GET / http/1.1\r\n" + kHost + "\r\n", 400},
      {"2.3", "AnotherProtocol", "DESCRIBE / RTSP/1.0\r\n\r\n", 400},
      {"2.3", "Icecast", "SOURCE / ICE/1.0\r\n\r\n", 400},
      // Request line
      {"3", "TwoSpacesBeforeTheTarget", "GET  / HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3", "TwoSpacesBeforeTheVersion", "GET /  HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3", "ATabBetween", "GET\t/ HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3", "ASpaceAfterTheVersion", "GET / HTTP/1.1 \r\n" + kHost + "\r\n", 505},
      {"3", "ASpaceInTheTarget", "GET /a b HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3.1", "AnUnknownMethod", "BREW / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "MethodsCareForCase", "get / HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3.1", "Nonsense", std::string("\x16\x03\x01\x02\x00\x01\x00", 7) + "\r\n\r\n", 400},
      {"3.2", "NoHost", get(""), 400},
      {"3.2", "NoHostIn10", "GET / HTTP/1.0\r\n\r\n", 200},
      {"3.2", "TwoHosts", get(kHost + kHost), 400},
      {"3.2", "AHostWithASlash", get("Host: a/b\r\n"), 400},
      {"3.2", "AHostWithAUser", get("Host: me@a\r\n"), 400},
      {"3.2", "AnEmptyHost", get("Host:\r\n"), 200},
      {"3.2", "BytesAbove127", "GET /\x80 HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3.2.1", "OriginForm", "GET /where?q=now HTTP/1.1\r\nHost: www.example.org\r\n\r\n", 200,
       "GET /where ?q=now @www.example.org Host=[www.example.org] "},
      {"3.2.2", "AbsoluteForm", "GET http://b:81/x?y HTTP/1.1\r\nHost: a\r\n\r\n", 200,
       "GET /x ?y @b:81 Host=[a] "},
      {"3.2.2", "AbsoluteFormWithoutAPath", "GET http://b?y HTTP/1.1\r\nHost: a\r\n\r\n", 200,
       "GET / ?y @b Host=[a] "},
      {"3.2.3", "AuthorityForm", "CONNECT a:80 HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.2.4", "AsteriskForm", "OPTIONS * HTTP/1.1\r\n" + kHost + "\r\n", 200,
       "OPTIONS * ? @a Host=[a] "},
      {"3.2.4", "AsteriskFormOfAnotherMethod", "GET * HTTP/1.1\r\n" + kHost + "\r\n", 400},
      // Field lines
      {"5", "SpaceAroundAValueIsDropped", get(kHost + "A: \t b c \t \r\n"), 200,
       "GET / ? @a Host=[a] A=[b c] "},
      {"5", "AnEmptyValue", get(kHost + "A:\r\nB: c\r\n"), 200, "GET / ? @a Host=[a] A=[] B=[c] "},
      {"5.1", "SpaceBeforeTheColon", get("Host : a\r\n"), 400},
      {"5.1", "TabBeforeTheColon", get("Host\t: a\r\n"), 400},
      {"5.1", "NoName", get(kHost + ": b\r\n"), 400},
      {"5.1", "NoColon", get(kHost + "b\r\n"), 400},
      {"5.2", "FoldedLine", get(kHost + "A: b\r\n c\r\n"), 400},
      {"5.2", "FoldedLineWithATab", get(kHost + "A: b\r\n\tc\r\n"), 400},
      {"2.2", "BareLfAfterAnEmptyValue", get(kHost + "A:\nB: c\r\n"), 400},
      {"5.2", "FoldedAfterAnEmptyValue", get(kHost + "A:\r\n \r\n"), 400},
      {"5.2", "FoldedBeforeTheValue", get(kHost + "A:\r\n b\r\n"), 400},
      {"9110 5.5", "NulInAValue", get(kHost + "A: b" + std::string(1, '\0') + "\r\n"), 400},
      {"9110 5.5", "ControlCharacterInAValue", get(kHost + "A: b\x01\r\n"), 400},
      {"9110 5.6.2", "ParenthesisInAName", get(kHost + "A(: b\r\n"), 400},
      // Body
      {"6.1", "CodingAndLength",
       post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"), 400},
      {"6.1", "LengthAfterCoding",
       post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "3\r\nabc\r\n0\r\n\r\n"), 400},
      {"6.1", "AnUnknownCoding", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501},
      {"6.1", "ACodingWithoutAName", post("Transfer-Encoding:\r\nContent-Length: 3\r\n", "abc"),
       400},
      {"6.1", "AnotherCase", post("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n"), 200},
      {"6.1", "CodingFromHttp10", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"6.3", "ChunkedIsNotTheLast", post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"),
       400},
      {"6.3", "NotChunked", post("Transfer-Encoding: gzip\r\n", "abc"), 400},
      {"6.3", "AlmostChunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), 400},
      {"6.3", "ChunkedTwice",
       post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
      {"6.3", "ChunkedOnTheNextLine", post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"), 400},
      {"6.3", "ChunkedAfterAVerticalTab",
       post("Transfer-Encoding: \x0b"
            "chunked\r\n",
            "0\r\n\r\n"),
       400},
      {"6.3", "LengthTwice", post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), 400},
      {"6.3", "TwoLengths", post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), 400},
      {"6.3", "AListOfLengths", post("Content-Length: 3, 3\r\n", "abc"), 400},
      {"6.3", "LengthWithASign", post("Content-Length: +3\r\n", "abc"), 400},
      {"6.3", "ANegativeLength", post("Content-Length: -3\r\n", "abc"), 400},
      {"6.3", "LengthInHex", post("Content-Length: 0x3\r\n", "abc"), 400},
      {"6.3", "NoLengthAtAll", post("Content-Length:\r\n", "abc"), 400},
      {"6.3", "ALengthThatOverflows", post("Content-Length: 99999999999999999999\r\n", "abc"), 400},
      {"6.3", "ASpaceInTheLength", post("Content-Length: 1 2\r\n", "abc"), 400},
      {"6.3", "LengthZero", post("Content-Length: 0\r\n", ""), 200},
      {"6.3", "NoBody", post("", ""), 200},
      // Chunks
      {"7.1", "Chunks",
       post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), 200,
       "POST / ? @a Host=[a] Transfer-Encoding=[chunked] abc0123456789"},
      {"7.1", "LeadingZeros", post("Transfer-Encoding: chunked\r\n", "0003\r\nabc\r\n000\r\n\r\n"),
       200},
      {"7.1", "ChunkSizeWithASign",
       post("Transfer-Encoding: chunked\r\n", "+3\r\nabc\r\n0\r\n\r\n"), 400},
      {"7.1", "ChunkSizeWithAPrefix",
       post("Transfer-Encoding: chunked\r\n", "0x3\r\nabc\r\n0\r\n\r\n"), 400},
      {"7.1", "ChunkSizeWithASpace",
       post("Transfer-Encoding: chunked\r\n", "3 \r\nabc\r\n0\r\n\r\n"), 400},
      {"7.1", "ASpaceBeforeTheSize",
       post("Transfer-Encoding: chunked\r\n", " 3\r\nabc\r\n0\r\n\r\n"), 400},
      {"7.1", "AnEmptySize", post("Transfer-Encoding: chunked\r\n", "\r\nabc\r\n0\r\n\r\n"), 400},
      {"7.1", "ASizeWithoutAnEnd",
       post("Transfer-Encoding: chunked\r\n", std::string(20'000, '0') + "3\r\nabc\r\n0\r\n\r\n"),
       400},
      {"7.1", "ChunkSizeThatOverflows",
       post("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n"), 400},
      {"7.1", "ChunkLongerThanItsSize",
       post("Transfer-Encoding: chunked\r\n", "3\r\nabcd\r\n0\r\n\r\n"), 400},
      {"7.1", "ChunkWithoutItsEnd", post("Transfer-Encoding: chunked\r\n", "3\r\nabc0\r\n\r\n"),
       400},
      {"7.1", "BareLfAfterTheSize", post("Transfer-Encoding: chunked\r\n", "3\nabc\r\n0\r\n\r\n"),
       400},
      {"7.1", "BareLfAfterTheChunk", post("Transfer-Encoding: chunked\r\n", "3\r\nabc\n0\r\n\r\n"),
       400},
      {"7.1.1", "Extensions",
       post("Transfer-Encoding: chunked\r\n", "3;a=\"b\";c=d\r\nabc\r\n0;e\r\n\r\n"), 200},
      {"7.1.1", "BareLfInAnExtension",
       post("Transfer-Encoding: chunked\r\n", "3;a\nabc\r\n0\r\n\r\n"), 400},
      {"7.1.1", "EndlessExtensions",
       post("Transfer-Encoding: chunked\r\n",
            "3;a=" + std::string(20'000, 'x') + "\r\nabc\r\n0\r\n\r\n"),
       400},
      {"7.1.2", "Trailers",
       post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nExpires: never\r\n\r\n"), 200},
      {"2.2", "BareLfInATrailer", post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\nC: d\r\n\r\n"),
       400},
      {"2.2", "BareLfBeforeTheTrailers",
       post("Transfer-Encoding: chunked\r\n", "0\r\n\nA: b\r\n\r\n"), 400},
      {"2.2", "BareLfAsTheEnd", post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\r\n\n"), 400},
      {"5.2", "FoldedTrailer", post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\r\n c\r\n\r\n"),
       400},
      {"7.1.2", "EndlessTrailers",
       post("Transfer-Encoding: chunked\r\n", "0\r\nA: " + std::string(20'000, 'x') + "\r\n\r\n"),
       400},
  };
}

struct Rfc9112 : ::testing::TestWithParam<Case> {};

TEST_P(Rfc9112, IsAnsweredAsItSays) {
  Mirror mirror;
  const Case& c = GetParam();
  std::vector<Answer> answers = parse_answers(Talk{}(mirror, c.bytes));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].status, c.status) << answers[0].body;
  if (!c.body.empty()) {
    EXPECT_EQ(answers[0].body, c.body);
  }
  if (c.status >= 400) {
    EXPECT_EQ(answers[0].field("connection"), "close");
  }
}

// In pieces of one size, or as one piece and the rest: `first` of the bytes are read before the others are sent.
std::string torn(Handler& handler, std::string_view bytes, std::size_t first) {
  std::string answer;
  weft::testing::VirtualLoop loop;
  Server server(handler);
  auto both = [&]() -> Task<void> {
    auto [client, served] = net::memory_streams();
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    auto question = [&]() -> Task<void> {
      Result<void> sent = co_await net::write_all(mine, bytes.substr(0, first));
      or_throw(sent);
      co_await sleep_for(std::chrono::milliseconds(1));  // until everybody waits
      answer = co_await test::ask(mine, std::string(bytes.substr(first)));
    };
    co_await all_of(serve(), question());
  };
  run(loop, both());
  return answer;
}

// Torn behind each byte, and into pieces of each size: the answer is the same. Of a long case the bytes at its beginning and its end, and
// some in between.
TEST_P(Rfc9112, IsTheSameHoweverItIsTorn) {
  Mirror mirror;
  const Case& c = GetParam();
  auto without_date = [](std::string text) {
    std::size_t at = text.find("date: ");
    return at == text.npos ? text : text.erase(at, 37);
  };
  std::string whole = without_date(Talk{}(mirror, c.bytes));
  constexpr std::size_t kEnds = 150, kStride = 997;
  for (std::size_t size = 1; size < c.bytes.size(); ++size) {
    bool is_inside = size > kEnds && size + kEnds < c.bytes.size();
    if (is_inside && size % kStride != 0) continue;
    Talk talk{.wire = {.read_bytes_max = size}};
    ASSERT_EQ(without_date(talk(mirror, c.bytes)), whole) << "in pieces of " << size;
    ASSERT_EQ(without_date(torn(mirror, c.bytes, size)), whole) << "torn behind " << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Sections, Rfc9112, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = std::string("s") + info.param.section + "_" + info.param.name;
  for (char& c : name) {
    if (c == '.' || c == ' ') c = '_';
  }
  return name;
});

}  // namespace
