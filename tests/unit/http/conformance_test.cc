// SPDX-License-Identifier: MIT
// RFC 9112 byte by byte: what a server must take, and what it must not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_fixture.h"
#include "support/loop_fixture.h"
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

// Whose idea the end of the connection was. The server's, too, after every refusal.
enum class End { peers, servers };

struct Case {
  const char* section;  // of RFC 9112, unless it says otherwise
  const char* name;
  std::string bytes;
  int status;               // of the last answer
  std::string body{};       // of all answers, one behind the other; checked if it is not empty
  std::size_t answers = 1;  // before the connection ends
  End end = End::peers;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.section << " " << c.name;
}

const std::string kHost = "Host: a\r\n";
std::string get(const std::string& fields) { return "GET / HTTP/1.1\r\n" + fields + "\r\n"; }
std::string post(const std::string& fields, const std::string& body) {
  return "POST / HTTP/1.1\r\n" + kHost + fields + "\r\n" + body;
}

const std::string kClose = "Connection: close\r\n";
const std::string kKeepAlive = "Connection: keep-alive\r\n";
const std::string kMirrored = "GET / ? @a Host=[a] ";
std::string old(const std::string& fields) { return "GET / HTTP/1.0\r\n" + fields + "\r\n"; }
std::string in_order(int number) {
  return "GET /" + std::to_string(number) + " HTTP/1.1\r\n" + kHost + "\r\n";
}

std::string chunked(const std::string& body) {
  return post("Transfer-Encoding: chunked\r\n", body);
}
// A chunk of three bytes, whose line this is, and the last one.
Case chunk_line(const char* name, const std::string& line, int status) {
  return {"7.1.1", name, chunked(line + "\r\nabc\r\n0\r\n\r\n"), status,
          status == 200 ? "POST / ? @a Host=[a] Transfer-Encoding=[chunked] abc" : ""};
}
// Each is one that a recipient must ignore: behind both sizes.
Case extended(const char* name, const std::string& extension) {
  return {"7.1.1",
          name,
          chunked("3;" + extension + "\r\nabc\r\n0;" + extension + "\r\n\r\n") + get(kHost),
          200,
          "POST / ? @a Host=[a] Transfer-Encoding=[chunked] abc" + kMirrored,
          2};
}
Case host(const char* name, const std::string& value, int status) {
  return {"3.2", name, get("Host: " + value + "\r\n"), status,
          status == 200 ? "GET / ? @" + value + " Host=[" + value + "] " : ""};
}
Case absolute(const char* name, const std::string& target, int status) {
  return {"3.2.2", name, "GET " + target + " HTTP/1.1\r\n" + kHost + "\r\n", status};
}
std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

std::vector<Case> cases() {
  return {
      // Message format
      {"2.2", "EmptyLinesBeforeARequestAreSkipped", "\r\n\r\n" + get(kHost), 200},
      {"2.2", "AsManyEmptyLinesAsThereMayBe", repeated("\r\n", 32) + get(kHost), 200},
      {"2.2", "OneMoreEmptyLine", repeated("\r\n", 33) + get(kHost), 400},
      {"2.2", "EmptyLinesForEver", repeated("\r\n", 10'000), 400},
      {"2.2", "EmptyLinesForEverBehindARequest", get(kHost) + repeated("\r\n", 33), 400, "", 2},
      {"2.2", "EmptyLinesAreCountedAnewForEachRequest",
       repeated(repeated("\r\n", 20) + get(kHost), 3), 200, "", 3},
      {"2.2", "BareLfBeforeARequest", "\n" + get(kHost), 400},
      {"2.2", "BareCrBeforeARequest", "\r" + get(kHost), 400},
      {"2.2", "TwoBareCrsBeforeARequest", "\r\r" + get(kHost), 400},
      {"2.2", "BareCrBeforeAnEmptyLine", "\r\r\n" + get(kHost), 400},
      {"2.2", "BareLfBeforeAnEmptyLine", "\n\r\n" + get(kHost), 400},
      {"2.2", "BareLfBehindAnEmptyLine", "\r\n\n" + get(kHost), 400},
      {"2.2", "BareCrBehindAnEmptyLine", "\r\n\r" + get(kHost), 400},
      {"2.2", "LfCrBeforeARequest", "\n\r" + get(kHost), 400},
      {"2.2", "BareLfBetweenRequests", get(kHost) + "\n" + get(kHost), 400, "", 2},
      {"2.2", "BareCrBetweenRequests", get(kHost) + "\r" + get(kHost), 400, "", 2},
      {"2.2", "BareCrsBetweenRequests", get(kHost) + "\r\r\r" + get(kHost), 400, "", 2},
      {"2.2", "BareLfBehindABody", post("Content-Length: 1\r\n", "x") + "\n" + get(kHost), 400, "",
       2},
      {"2.2", "EmptyLineBehindABody", post("Content-Length: 1\r\n", "x") + "\r\n" + get(kHost), 200,
       "", 2},
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
      {"2.3", "AnotherProtocolsVersion", "GET / RTSP/1.0\r\n" + kHost + "\r\n", 400},
      // Request line
      {"3", "TwoSpacesBeforeTheTarget", "GET  / HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3", "TwoSpacesBeforeTheVersion", "GET /  HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3", "ATabBetween", "GET\t/ HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3", "ASpaceAfterTheVersion", "GET / HTTP/1.1 \r\n" + kHost + "\r\n", 400},
      {"3", "TwoCrsAfterTheVersion", "GET / HTTP/1.1\r\r\n" + kHost + "\r\n", 400},
      {"3", "ALetterAfterTheVersion", "GET / HTTP/1.1x\r\n" + kHost + "\r\n", 400},
      {"2.3", "ThreeDigits", "GET / HTTP/1.10\r\n" + kHost + "\r\n", 400},
      {"2.3", "TwoDigitsBeforeTheDot", "GET / HTTP/11.1\r\n" + kHost + "\r\n", 400},
      {"2.3", "NoDigits", "GET / HTTP/x.y\r\n" + kHost + "\r\n", 400},
      {"2.3", "NoDot", "GET / HTTP/2\r\n" + kHost + "\r\n", 400},
      {"2.3", "Http30", "GET / HTTP/3.0\r\n" + kHost + "\r\n", 505},
      {"2.3", "Http99", "GET / HTTP/9.9\r\n" + kHost + "\r\n", 505},
      {"3", "ASpaceInTheTarget", "GET /a b HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3.1", "AnUnknownMethod", "BREW / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      // 9110 9.1: what is a token and no method of ours is a 501.
      {"3.1", "AlmostAMethod", "M-SEARCX / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "MethodsCareForCase", "get / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "AMixedCase", "Foo / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "TheBeginningOfAMethod", "GE / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "MoreThanAMethod", "GETX / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "AMethodOfDigitsAndMarks", "1!~ / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "AMethodOfRtsp", "SETUP / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "AMethodOfHttp2", "PRI / HTTP/1.1\r\n" + kHost + "\r\n", 400},  // 9113 3.4: reserved
      {"3.1", "AnUnknownMethodBehindAnEmptyLine", "\r\nBREW / HTTP/1.1\r\n" + kHost + "\r\n", 501},
      {"3.1", "AnUnknownMethodBehindABareLf", "\nBREW / HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3.1", "AMethodThatIsNoToken", "GE(T / HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3.1", "NoMethod", " / HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3.1", "Nonsense", std::string("\x16\x03\x01\x02\x00\x01\x00", 7) + "\r\n\r\n", 400},
      {"3.2", "NoHost", get(""), 400},
      {"3.2", "NoHostIn10", "GET / HTTP/1.0\r\n\r\n", 200, "", 1, End::servers},
      {"3.2", "TwoHosts", get(kHost + kHost), 400},
      {"3.2", "AHostWithASlash", get("Host: a/b\r\n"), 400},
      {"3.2", "AHostWithAUser", get("Host: me@a\r\n"), 400},
      host("AName", "www.example.org", 200),
      host("ANameAndAPort", "a:8080", 200),
      host("APortWithoutDigits", "a:", 200),
      host("TheLastPort", "a:65535", 200),
      host("AnAddress", "192.0.2.1:80", 200),
      host("AnAddressOfVersion6", "[2001:db8::1]:80", 200),
      host("AnAddressOfVersion6WithoutAPort", "[::1]", 200),
      host("AnAddressOfAVersionToCome", "[v1.a:b]", 200),
      host("AnEscape", "a%2Db", 200),
      host("MarksOfANameInAUri", "a!$&'()*+;=~_b", 200),
      host("TwoColons", "a:b:c", 400),
      host("ANameAsAPort", "a:http", 400),
      host("APortThatIsTooLarge", "a:65536", 400),
      host("APortThatIsMuchTooLarge", "a:99999999999999999999", 400),
      host("APortWithASign", "a:+80", 400),
      host("APortAlone", ":80", 400),
      host("AnAddressWithoutAnEnd", "[::1", 400),
      host("AnAddressWithSomethingBehindIt", "[::1]a", 400),
      host("AnAddressOfVersion6WithoutBrackets", "::1", 400),
      host("ANameInBrackets", "[a]", 400),
      host("NothingInBrackets", "[]", 400),
      host("AScope", "[fe80::1%251]", 400),
      host("HalfAnEscape", "a%2", 400),
      host("NoEscape", "a%zz", 400),
      host("AngleBrackets", "<x>", 400),
      host("AQuotation", "\"a\"", 400),
      host("AByteAbove127", "\x80", 400),
      host("TwoInAList", "a,b", 400),
      host("ASpace", "a b", 400),
      host("ABackslash", "a\\b", 400),
      host("AnotherHostBehindIt", "a@b", 400),
      {"3.2", "AnEmptyHost", get("Host:\r\n"), 200},
      {"3.2", "BytesAbove127", "GET /\x80 HTTP/1.1\r\n" + kHost + "\r\n", 400},
      {"3.2.1", "OriginForm", "GET /where?q=now HTTP/1.1\r\nHost: www.example.org\r\n\r\n", 200,
       "GET /where ?q=now @www.example.org Host=[www.example.org] "},
      {"3.2.2", "AbsoluteForm", "GET http://b:81/x?y HTTP/1.1\r\nHost: a\r\n\r\n", 200,
       "GET /x ?y @b:81 Host=[a] "},
      {"3.2.2", "AbsoluteFormWithoutAPath", "GET http://b?y HTTP/1.1\r\nHost: a\r\n\r\n", 200,
       "GET / ?y @b Host=[a] "},
      absolute("AbsoluteFormInCapitals", "HTTP://b/x", 200),
      absolute("AbsoluteFormOfAnAddress", "http://[::1]:80/", 200),
      absolute("AUserInTheTarget", "http://me@b/x", 400),
      absolute("APortInTheTargetThatIsTooLarge", "http://b:99999/", 400),
      absolute("NoHostInTheTarget", "http:///x", 400),
      absolute("APortAloneInTheTarget", "http://:80/x", 400),
      absolute("TwoColonsInTheTarget", "http://a:b:c/", 400),
      absolute("AnAddressWithoutAnEndInTheTarget", "http://[::1/", 400),
      absolute("AnotherScheme", "ftp://b/x", 400),
      absolute("NoScheme", "://b/x", 400),
      absolute("OneSlash", "http:/b/x", 400),
      {"9110 7.4", "HttpsInTheClear", "GET https://b/ HTTP/1.1\r\n" + kHost + "\r\n", 421},
      {"9110 7.4", "HttpsInTheClearFrom10", "GET HTTPS://b/ HTTP/1.0\r\n\r\n", 421},
      {"3.2", "ABadHostBesideAnAbsoluteForm", "GET http://b/ HTTP/1.1\r\nHost: a:b:c\r\n\r\n", 400},
      {"3.2", "NoHostBesideAnAbsoluteForm", "GET http://b/ HTTP/1.1\r\n\r\n", 400},
      {"3.2", "TwoHostsIn10", old(kHost + kHost), 400},
      {"3.2", "ABadHostIn10", old("Host: a:b:c\r\n"), 400},
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
      {"6.1", "AnEmptyElementBeforeTheCoding",
       post("Transfer-Encoding: ,chunked\r\n", "1\r\nx\r\n0\r\n\r\n"), 200,
       "POST / ? @a Host=[a] Transfer-Encoding=[,chunked] x"},
      // llhttp's, and stricter than the standard.
      {"6.1", "AnEmptyElementBehindTheCoding", post("Transfer-Encoding: chunked,\r\n", "0\r\n\r\n"),
       400},
      {"6.3", "AnEmptyElementAndALength",
       post("Transfer-Encoding: ,chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), 400},
      {"6.3", "ALengthAndAnEmptyElement",
       post("Content-Length: 5\r\nTransfer-Encoding: ,chunked\r\n", "0\r\n\r\n"), 400},
      {"6.3", "ATabBehindTheCodingAndALength",
       post("Transfer-Encoding: chunked\t\r\nContent-Length: 5\r\n", "0\r\n\r\n"), 400},
      {"6.3", "ALengthAndATabBehindTheCoding",
       post("Content-Length: 5\r\nTransfer-Encoding: chunked\t\r\n", "0\r\n\r\n"), 400},
      {"6.3", "ChunkedFirstAndLast",
       post("Transfer-Encoding: chunked, gzip, chunked\r\n", "0\r\n\r\n"), 400},
      // llhttp's, and stricter than the standard.
      {"6.3", "ATabBehindTheLength", post("Content-Length: 3\t\r\n", "abc"), 400},
      {"6.3", "ASpaceBehindTheLength", post("Content-Length: 3 \r\n", "abc"), 200},
      {"6.1", "ATabBehindTheCoding",
       post("Transfer-Encoding: chunked\t\r\n", "1\r\nx\r\n0\r\n\r\n"), 200,
       "POST / ? @a Host=[a] Transfer-Encoding=[chunked] x"},
      {"6.1", "OnlyEmptyElements", post("Transfer-Encoding: , ,\r\n", "0\r\n\r\n"), 400},
      {"6.1", "OnlyEmptyElementsAndALength",
       post("Transfer-Encoding: ,\r\nContent-Length: 3\r\n", "abc"), 400},
      {"6.1", "AnEmptyFieldBehindTheCoding",
       post("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n", "1\r\nx\r\n0\r\n\r\n"), 400},
      {"6.1", "AParameterOfTheCoding", post("Transfer-Encoding: chunked;a=b\r\n", "0\r\n\r\n"),
       400},
      {"6.3", "ChunkedTwiceInAList", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
       400},
      {"6.1", "TwoFieldsOfCodings",
       post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 501},
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
      extended("AName", "a"),
      extended("AValue", "a=b"),
      extended("TwoExtensions", "a=b;c=d"),
      extended("AQuotedPair", "a=\"x\\\"y\""),
      extended("AQuotedBackslash", "a=\"x\\\\\""),
      extended("QuotedSemicolons", "a=\";b=\\\";\";c"),
      extended("AnEmptyQuotedValue", "a=\"\""),
      extended("QuotedBytesAbove127", "a=\"\x80\t\""),
      extended("SpaceBehindTheSemicolon", " a=b"),
      extended("SpaceAroundTheEquals", "a \t=  b"),
      extended("SpaceBeforeTheNextSemicolon", "a=b ;c\t;d"),
      chunk_line("SpaceBeforeTheSemicolon", "3 ;a", 200),
      chunk_line("TabBeforeTheSemicolon", "3\t; a", 200),
      chunk_line("NoValueBehindTheEquals", "3;a=", 400),
      chunk_line("NoNameBehindTheSemicolon", "3;", 400),
      chunk_line("NoNameBeforeTheEquals", "3;=a", 400),
      chunk_line("SpaceBehindTheExtension", "3;a ", 400),
      chunk_line("SpaceBehindTheValue", "3;a=b ", 400),
      chunk_line("NoSemicolon", "3 a", 400),
      chunk_line("TwoWords", "3;a b", 400),
      chunk_line("TwoValues", "3;a=b=c", 400),
      chunk_line("NoEndOfTheQuotation", "3;a=\"b", 400),
      chunk_line("SomethingBehindTheQuotation", "3;a=\"b\"c", 400),
      chunk_line("AQuotedLineBreak", "3;a=\"\r\nabc\r\n0\r\n\r\n\"", 400),
      chunk_line("AQuotedBareLf", "3;a=\"\n\"", 400),
      chunk_line("AnEscapedCr", "3;a=\"\\\r\"", 400),
      chunk_line("BareCrInAnExtension", "3;a\rb", 400),
      chunk_line("NulInAQuotation", std::string("3;a=\"\0\"", 7), 400),
      {"7.1.1", "ManyExtensions", chunked(repeated("1;a=123456789\r\nx\r\n", 1500) + "0\r\n\r\n"),
       400},
      {"7.1.1", "BareLfInAnExtension",
       post("Transfer-Encoding: chunked\r\n", "3;a\nabc\r\n0\r\n\r\n"), 400},
      {"7.1.1", "EndlessExtensions",
       post("Transfer-Encoding: chunked\r\n",
            "3;a=" + std::string(20'000, 'x') + "\r\nabc\r\n0\r\n\r\n"),
       400},
      {"7.1.2", "Trailers",
       post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nExpires: never\r\n\r\n"), 200,
       "POST / ? @a Host=[a] Transfer-Encoding=[chunked] abc"},  // and not among the header fields
      {"2.2", "BareLfInATrailer", post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\nC: d\r\n\r\n"),
       400},
      {"2.2", "BareLfBeforeTheTrailers",
       post("Transfer-Encoding: chunked\r\n", "0\r\n\nA: b\r\n\r\n"), 400},
      {"2.2", "BareLfAsTheEnd", post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\r\n\n"), 400},
      {"5.2", "FoldedTrailer", post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\r\n c\r\n\r\n"),
       400},
      {"7.1.2", "ATrailerWithoutAName", chunked("0\r\n: b\r\n\r\n"), 400},
      {"7.1.2", "ATrailerWithoutAColon", chunked("0\r\na\r\n\r\n"), 400},
      {"7.1.2", "ATrailerWithASpaceBeforeTheColon", chunked("0\r\na : b\r\n\r\n"), 400},
      {"7.1.2", "ATrailerWithoutAValue", chunked("0\r\na:\r\nb: c\r\n\r\n") + get(kHost), 200, "",
       2},
      {"7.1.2", "ALengthAsATrailer", chunked("0\r\nContent-Length: 5\r\n\r\n") + get(kHost), 200,
       "", 2},
      {"7.1.2", "NulInATrailer", chunked("0\r\na: " + std::string(1, '\0') + "\r\n\r\n"), 400},
      {"7.1.2", "BareCrInATrailer", chunked("0\r\na: b\rc\r\n\r\n"), 400},
      {"7.1.2", "EndlessTrailers",
       post("Transfer-Encoding: chunked\r\n", "0\r\nA: " + std::string(20'000, 'x') + "\r\n\r\n"),
       400},
      // Incomplete messages
      {"8", "Nothing", "", 0, "", 0},
      {"8", "EndsInTheRequestLine", "GET / HT", 0, "", 0},
      {"8", "EndsInTheFields", "GET / HTTP/1.1\r\nHost: a\r\n", 0, "", 0},
      {"8", "EndsInTheSecond", get(kHost) + "GET / HTTP/1.1\r\nHo", 200, kMirrored, 1},
      {"8", "EndsBeforeItsLength", post("Content-Length: 4\r\n", "abc"), 400},
      {"8", "EndsBeforeItsFirstByte", post("Content-Length: 4\r\n", ""), 400},
      {"8", "EndsInASize", post("Transfer-Encoding: chunked\r\n", "3"), 400},
      {"8", "EndsInAChunk", post("Transfer-Encoding: chunked\r\n", "3\r\nab"), 400},
      {"8", "EndsBetweenChunks", post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n"), 400},
      {"8", "EndsInTheLastChunk", post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n"), 400},
      {"8", "EndsInTheTrailers",
       post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nA: b\r\n"), 400},
      // Connections
      {"9.2", "EachHasOneAnswer", get(kHost) + get(kHost) + get(kHost), 200,
       kMirrored + kMirrored + kMirrored, 3},
      {"9.2", "EmptyLinesBetween", get(kHost) + "\r\n\r\n" + get(kHost), 200, kMirrored + kMirrored,
       2},
      {"9.2", "OneThatIsRefusedHasOneToo", get(kHost) + get(""), 400, "", 2},
      {"9.3", "Http11GoesOn", get(kHost) + get(kHost + "Connection: x\r\n"), 200, "", 2},
      {"9.3", "Close", get(kHost + kClose) + get(kHost), 200, "", 1, End::servers},
      {"9.3", "CloseInAList", get(kHost + "Connection: x, Close\r\n") + get(kHost), 200, "", 1,
       End::servers},
      {"9.3", "CloseInAnotherField",
       get(kHost + "Connection: x\r\n" + kClose + "Connection: y\r\n") + get(kHost), 200, "", 1,
       End::servers},
      {"9.3", "CloseBesideKeepAlive", get(kHost + "Connection: close, keep-alive\r\n") + get(kHost),
       200, "", 1, End::servers},
      {"9.3", "AlmostClose", get(kHost + "Connection: closed, xclose\r\n") + get(kHost), 200, "",
       2},
      {"9.3", "Http10Ends", old("") + old(""), 200, "", 1, End::servers},
      {"9.3", "Http10KeptAlive", old(kKeepAlive) + old(""), 200, "", 2, End::servers},
      {"9.3", "Http10KeptAliveInAList", old("Connection: x, Keep-Alive\r\n") + old(""), 200, "", 2,
       End::servers},
      {"9.3", "Http10CloseBesideKeepAlive", old("Connection: keep-alive, close\r\n") + old(""), 200,
       "", 1, End::servers},
      {"9.3", "Http10KeepAliveBesideClose", old(kClose + kKeepAlive) + old(""), 200, "", 1,
       End::servers},
      {"9.3", "Http11AfterHttp10", old(kKeepAlive) + get(kHost) + get(kHost), 200, "", 3},
      {"9.3", "BehindALength", post("Content-Length: 3\r\n", "abc") + get(kHost), 200,
       "POST / ? @a Host=[a] Content-Length=[3] abc" + kMirrored, 2},
      {"9.3", "BehindChunks",
       post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nA: b\r\n\r\n") + get(kHost), 200,
       "POST / ? @a Host=[a] Transfer-Encoding=[chunked] abc" + kMirrored, 2},
      {"9.3.2", "InTheirOrder", in_order(1) + post("Content-Length: 1\r\n", "x") + in_order(2), 200,
       "GET /1 ? @a Host=[a] POST / ? @a Host=[a] Content-Length=[1] xGET /2 ? @a Host=[a] ", 3},
      {"9.6", "NothingBehindClose", get(kHost + kClose) + "nonsense", 200, "", 1, End::servers},
      {"9.6", "NothingBehindABodyAndClose",
       post(kClose + "Content-Length: 3\r\n", "abc") + get(kHost), 200, "", 1, End::servers},
      {"9.6", "NothingBehindARefusal", get("") + get(kHost), 400},
      {"9.6", "NothingBehindABadBody", post("Transfer-Encoding: chunked\r\n", "x\r\n") + get(kHost),
       400},
  };
}

struct Rfc9112 : ::testing::TestWithParam<Case> {};

TEST_P(Rfc9112, IsAnsweredAsItSays) {
  Mirror mirror;
  const Case& c = GetParam();
  test::LogCapture log;
  std::vector<Answer> answers = parse_answers(Talk{}(mirror, c.bytes));
  EXPECT_EQ(log.take(), std::vector<std::string>()) << "the peer's mistakes are not ours";
  ASSERT_EQ(answers.size(), c.answers);
  if (answers.empty()) return;
  const Answer& last = answers.back();
  EXPECT_EQ(last.status, c.status) << last.body;
  if (!c.body.empty()) {
    std::string bodies;
    for (const Answer& answer : answers) bodies += answer.body;
    EXPECT_EQ(bodies, c.body);
  }
  // 9.6: an answer behind which nothing is read says so, and no other does.
  bool is_ours = c.status >= 400 || c.end == End::servers;
  EXPECT_EQ(last.field("connection") == "close", is_ours) << last.head;
  for (std::size_t i = 0; i + 1 < answers.size(); ++i) {
    EXPECT_NE(answers[i].field("connection"), "close");
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

// Torn behind each byte, with a pause there, and into pieces of each size: the answer is the same. Of a case above kAllBytesMax, which are those
// about a limit, every kStride-th byte and the ends: a talk takes a tenth of a millisecond, and as long again for each KiB.
TEST_P(Rfc9112, IsTheSameHoweverItIsTorn) {
  Mirror mirror;
  const Case& c = GetParam();
  auto without_date = [](std::string text) {
    for (std::size_t at = 0; (at = text.find("date: ", at)) != text.npos;) text.erase(at, 37);
    return text;
  };
  std::string whole = without_date(Talk{}(mirror, c.bytes));
  constexpr std::size_t kAllBytesMax = 2048, kEnds = 150, kStride = 997;
  for (std::size_t size = 1; size < c.bytes.size(); ++size) {
    bool is_inside = size > kEnds && size + kEnds < c.bytes.size();
    if (c.bytes.size() > kAllBytesMax && is_inside && size % kStride != 0) continue;
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
