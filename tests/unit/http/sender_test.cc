// SPDX-License-Identifier: MIT
// RFC 9112 byte by byte, what we send: a server's answers and a client's requests, as they leave.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/http_client_fixture.h"
#include "support/http_fixture.h"
#include "support/loop_fixture.h"
#include "weft/base/assert.h"

namespace {

using namespace weft;
using namespace weft::http;
using test::ClientTalk;
using test::Peer;
using test::ScriptedConnector;
using test::Talk;
using test::url;

// --- The server -------------------------------------------------------------------------------------

using Answers = Task<void> (*)(const Request&, Response&, Connection&);

struct Answered final : Handler {
  explicit Answered(Answers answers) : answers(answers) {}
  Task<void> handle_request(const Request& request, Response& response,
                            Connection& connection) override {
    return answers(request, response, connection);
  }
  Answers answers;
};

struct ServerCase {
  const char* section;  // of RFC 9112, unless it says otherwise
  const char* name;
  std::string request;
  Answers answers;
  std::string sent;  // without the line of the date
};
std::ostream& operator<<(std::ostream& out, const ServerCase& c) {
  return out << c.section << " " << c.name;
}

template <int kStatus>
Task<void> hello(const Request&, Response& response, Connection&) {
  response.status(kStatus);
  response.body("text/plain", "Hello.\n");
  co_return;
}

// Also a piece that is empty, which is no chunk: that would be the last.
template <int kStatus>
Task<void> two_pieces(const Request&, Response& response, Connection&) {
  response.status(kStatus);
  for (const char* piece : {"abc", "", "0123456789abcdefg"}) {
    Result<void> written = co_await response.write(piece);
    or_throw(written);
  }
}

template <int kStatus>
Task<void> with_length(const Request&, Response& response, Connection&) {
  response.status(kStatus);
  response.content_length(3);
  Result<void> written = co_await response.write("abc");
  or_throw(written);
}

Task<void> closes(const Request&, Response& response, Connection&) {
  response.close_after();
  response.body("abc");
  co_return;
}

Task<void> mirror(const Request& request, Response& response, Connection&) {
  Result<std::string> body = co_await request.body().read_all();
  response.body(or_throw(std::move(body)));
}

Task<void> upgrades(const Request&, Response& response, Connection& connection) {
  response.header("x", "y");
  Result<Connection::Upgraded> upgraded = co_await connection.upgrade(response, "echo");
  EXPECT_TRUE(upgraded.has_value());
}

// Says what it could speak instead, and with that a field that is for this connection only.
template <int kStatus>
Task<void> offers(const Request& request, Response& response, Connection&) {
  response.status(kStatus);
  response.header("Upgrade", "echo");
  if (request.path() == "/not") response.remove_header("upgrade");
  co_return;
}

// What would be another field, or another answer, does not leave: the head is as if it had not been said.
Task<void> injects(const Request&, Response& response, Connection&) {
  response.header("a", "b\tc \x80");
  for (std::string value : {std::string("b\rc"), std::string("b\nc"), std::string("b\r\nc: d"),
                            std::string("b\0c", 3), std::string("b\x01"), std::string("b\x7f")}) {
    EXPECT_THROW(response.header("a", value), UsageError) << value;
    EXPECT_THROW(response.set_header("a", value), UsageError) << value;
    EXPECT_THROW(response.body(value, "text"), UsageError) << value;
  }
  for (std::string name :
       {std::string(""), std::string("a b"), std::string("a:"), std::string("a\r\n"),
        std::string("a\0", 2), std::string("\x80"), std::string(" a")}) {
    EXPECT_THROW(response.header(name, "b"), UsageError) << name;
  }
  for (const char* own : {"Content-Length", "transfer-encoding", "CONNECTION"}) {
    EXPECT_THROW(response.header(own, "3"), UsageError) << own;
    EXPECT_THROW(response.set_header(own, "3"), UsageError) << own;
  }
  for (int status : {0, 99, 100, 101, 199, 600, 1000, -200}) {
    EXPECT_THROW(response.status(status), UsageError) << status;
  }
  response.body("abc");
  co_return;
}

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kHead = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kOld = "GET / HTTP/1.0\r\n\r\n";
const std::string kOldKept = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
const std::string kText = "content-type: text/plain\r\n";

std::vector<ServerCase> server_cases() {
  return {
      // Status line: "HTTP/1.1 SP 3DIGIT SP reason CRLF", to whomever (RFC 9110, 2.5: our own version).
      {"4", "StatusLine", kGet, hello<200>,
       "HTTP/1.1 200 OK\r\n" + kText + "content-length: 7\r\n\r\nHello.\n"},
      {"4", "AnotherStatus", kGet, hello<404>,
       "HTTP/1.1 404 Not Found\r\n" + kText + "content-length: 7\r\n\r\nHello.\n"},
      {"4", "AStatusWithoutAName", kGet, hello<599>,
       "HTTP/1.1 599 Unknown\r\n" + kText + "content-length: 7\r\n\r\nHello.\n"},
      {"2.3", "OurVersionToHttp10", kOld, hello<200>,
       "HTTP/1.1 200 OK\r\n" + kText + "content-length: 7\r\nconnection: close\r\n\r\nHello.\n"},
      // Field lines
      {"5.2", "NoLineBreakInAField", kGet, injects,
       "HTTP/1.1 200 OK\r\na: b\tc \x80\r\ncontent-length: 3\r\n\r\nabc"},
      // Transfer-Encoding
      {"6.1", "Chunked", kGet, two_pieces<200>,
       "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
       "3\r\nabc\r\n11\r\n0123456789abcdefg\r\n0\r\n\r\n"},
      {"6.1", "NoCodingOf204", kGet, two_pieces<204>, "HTTP/1.1 204 No Content\r\n\r\n"},
      {"6.1", "NoCodingOf304", kGet, two_pieces<304>, "HTTP/1.1 304 Not Modified\r\n\r\n"},
      {"6.1", "NoCodingToHttp10", kOld, two_pieces<200>,
       "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc0123456789abcdefg"},
      {"6.1", "NoCodingToHttp10ThatStays", kOldKept, two_pieces<200>,
       "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc0123456789abcdefg"},
      // Content-Length
      {"6.2", "OneLength", kGet, with_length<200>,
       "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"},
      {"6.2", "NoLengthOf204", kGet, hello<204>, "HTTP/1.1 204 No Content\r\n" + kText + "\r\n"},
      {"6.2", "NoPromisedLengthOf204", kGet, with_length<204>, "HTTP/1.1 204 No Content\r\n\r\n"},
      {"6.2", "NoPromisedLengthOf304", kGet, with_length<304>, "HTTP/1.1 304 Not Modified\r\n\r\n"},
      // The body's length
      {"6.3", "NoBodyBehindHead", kHead + kGet, hello<200>,
       "HTTP/1.1 200 OK\r\n" + kText +
           "content-length: 7\r\n\r\n"
           "HTTP/1.1 200 OK\r\n" +
           kText + "content-length: 7\r\n\r\nHello.\n"},
      {"6.3", "NoChunksBehindHead", kHead, two_pieces<200>,
       "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"},
      {"6.3", "NoPiecesBehindHead", kHead, with_length<200>,
       "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"},
      {"6.3", "NoBodyBehind304", kGet, hello<304>,
       "HTTP/1.1 304 Not Modified\r\n" + kText + "\r\n"},
      // Connections
      {"9.3", "KeptAliveForHttp10", kOldKept, hello<200>,
       "HTTP/1.1 200 OK\r\n" + kText +
           "content-length: 7\r\nconnection: keep-alive\r\n\r\nHello.\n"},
      {"9.6", "CloseIsAnsweredWithClose", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
       hello<200>,
       "HTTP/1.1 200 OK\r\n" + kText + "content-length: 7\r\nconnection: close\r\n\r\nHello.\n"},
      {"9.6", "WhoClosesSaysSo", kGet + kGet, closes,
       "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc"},
      {"9.6", "ARefusalSaysSo", "GET / HTTP/1.1\r\n\r\n" + kGet, hello<200>,
       "HTTP/1.1 400 Bad Request\r\n" + kText +
           "content-length: 63\r\nconnection: close\r\n\r\n"
           "Bad Request: there is not exactly one host, or it is malformed\n"},
      {"3.2", "TwoHostsFromHttp10", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", hello<200>,
       "HTTP/1.1 400 Bad Request\r\n" + kText +
           "content-length: 63\r\nconnection: close\r\n\r\n"
           "Bad Request: there is not exactly one host, or it is malformed\n"},
      // RFC 9110
      {"9110 10.1.1", "Continue",
       "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", mirror,
       "HTTP/1.1 100 Continue\r\n\r\n"
       "HTTP/1.1 400 Bad Request\r\n" +
           kText + "content-length: 12\r\nconnection: close\r\n\r\nBad Request\n"},
      {"9110 10.1.1", "NoContinueWithoutABody",
       "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", mirror,
       "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"},
      {"9110 10.1.1", "NoContinueToHttp10",
       "PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", mirror,
       "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc"},
      {"9110 10.1.1", "NoContinueBehindTheBody",
       "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", mirror,
       "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"},
      {"9110 7.8", "SwitchingProtocols",
       "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: other, Echo\r\n\r\n", upgrades,
       "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\nx: y\r\n\r\n"},
      // Whoever sends Upgrade says so in Connection, so that nobody hands it on.
      {"9110 7.8", "AnOfferIsForThisConnection", kGet, offers<426>,
       "HTTP/1.1 426 Upgrade Required\r\nUpgrade: echo\r\ncontent-length: 0\r\n"
       "connection: upgrade\r\n\r\n"},
      {"9110 7.8", "AnOfferWithoutABody", kGet, offers<204>,
       "HTTP/1.1 204 No Content\r\nUpgrade: echo\r\nconnection: upgrade\r\n\r\n"},
      {"9110 7.8", "AnOfferBesideClose", kOld, offers<200>,
       "HTTP/1.1 200 OK\r\nUpgrade: echo\r\ncontent-length: 0\r\nconnection: close, "
       "upgrade\r\n\r\n"},
      {"9110 7.8", "AnOfferBesideKeepAlive", kOldKept, offers<200>,
       "HTTP/1.1 200 OK\r\nUpgrade: echo\r\ncontent-length: 0\r\n"
       "connection: keep-alive, upgrade\r\n\r\n"},
      {"9110 7.8", "AnOfferThatWasTakenBack", "GET /not HTTP/1.1\r\nHost: a\r\n\r\n" + kGet,
       offers<200>,
       "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
       "HTTP/1.1 200 OK\r\nUpgrade: echo\r\ncontent-length: 0\r\nconnection: upgrade\r\n\r\n"},
  };
}

struct Rfc9112Server : ::testing::TestWithParam<ServerCase> {};

TEST_P(Rfc9112Server, SendsExactlyThis) {
  const ServerCase& c = GetParam();
  Answered handler(c.answers);
  std::string sent = Talk{}(handler, c.request);
  // RFC 9110, 6.6.1: one in every answer of a server that has a clock. Its text: server_test.cc.
  constexpr std::size_t kDateLine = 37;
  std::size_t dates = 0;
  for (std::size_t at = 0; (at = sent.find("\r\ndate: ", at)) != sent.npos; ++dates) {
    sent.erase(at, kDateLine);
  }
  std::size_t answers = 0, interim = 0;
  for (std::size_t at = 0; (at = sent.find("HTTP/1.1 ", at)) != sent.npos; ++at) {
    ++answers;
    if (sent[at + 9] == '1') ++interim;
  }
  EXPECT_EQ(dates, answers - interim);
  EXPECT_EQ(sent, c.sent);
}

// --- The client -------------------------------------------------------------------------------------

struct ClientCase {
  const char* section;
  const char* name;
  std::function<ClientRequest()> request;
  std::string sent;
  Proxies proxies{};
};
std::ostream& operator<<(std::ostream& out, const ClientCase& c) {
  return out << c.section << " " << c.name;
}

std::function<ClientRequest()> get(std::string where) {
  return [where] { return ClientRequest(Method::get, url(where)); };
}
std::function<ClientRequest()> sends(Method method, RequestBody body) {
  return [=] { return ClientRequest(method, url("http://server/"), {}, body); };
}

std::vector<ClientCase> client_cases() {
  const std::string host = "host: server\r\n";
  const Proxies proxies{.http = "http://proxy:3128", .https = "http://proxy:3128", .no_proxy = {}};
  auto streamed = [](std::optional<std::uint64_t> length) {
    return RequestBody::stream(test::three_pieces, length);
  };
  return {
      {"3.2", "HostIsTheFirstFieldAndTheOnlyOne",
       [] {
         HeaderLines fields{{"x", "y"}};
         return ClientRequest(Method::get, url("http://server/"), fields);
       },
       "GET / HTTP/1.1\r\n" + host + "x: y\r\n\r\n"},
      {"3.2", "AnotherPort", get("http://server:8080/"),
       "GET / HTTP/1.1\r\nhost: server:8080\r\n\r\n"},
      {"3.2", "TheUsualPort", get("http://server:80/"), "GET / HTTP/1.1\r\n" + host + "\r\n"},
      {"3.2", "AnAddressOfVersion6", get("http://[::1]:81/"),
       "GET / HTTP/1.1\r\nhost: [::1]:81\r\n\r\n"},
      {"3.2.1", "OriginForm", get("http://server/where?q=now#here"),
       "GET /where?q=now HTTP/1.1\r\n" + host + "\r\n"},
      {"3.2.1", "AnEmptyPath", get("http://server"), "GET / HTTP/1.1\r\n" + host + "\r\n"},
      {"3.2.1", "AnEmptyPathAndAQuery", get("http://server?q"),
       "GET /?q HTTP/1.1\r\n" + host + "\r\n"},
      {"3.2.2", "AbsoluteFormToAProxy", get("http://server/where?q=now#here"),
       "GET http://server/where?q=now HTTP/1.1\r\n" + host + "\r\n", proxies},
      {"3.2.2", "AbsoluteFormOfAnEmptyPath", get("http://server:81"),
       "GET http://server:81/ HTTP/1.1\r\nhost: server:81\r\n\r\n", proxies},
      {"3.2.3", "AuthorityFormOfATunnel", get("https://server/where"),
       "CONNECT server:443 HTTP/1.1\r\nhost: server:443\r\n\r\n", proxies},
      {"3.2.3", "AuthorityFormOfAnAddress", get("https://[::1]:444/"),
       "CONNECT [::1]:444 HTTP/1.1\r\nhost: [::1]:444\r\n\r\n", proxies},
      {"3.2.4", "OptionsOfAResource", sends(Method::options, {}),
       "OPTIONS / HTTP/1.1\r\n" + host + "\r\n"},
      {"6.1", "Chunks", sends(Method::post, streamed({})),
       "POST / HTTP/1.1\r\n" + host +
           "transfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n"},
      {"6.2", "ALengthThatIsKnown", sends(Method::put, streamed(11)),
       "PUT / HTTP/1.1\r\n" + host + "content-length: 11\r\n\r\nonetwothree"},
      {"6.2", "ABody", sends(Method::post, "abc"),
       "POST / HTTP/1.1\r\n" + host + "content-length: 3\r\n\r\nabc"},
      {"6.2", "ABodyOfGet", sends(Method::get, "abc"),
       "GET / HTTP/1.1\r\n" + host + "content-length: 3\r\n\r\nabc"},
      {"9110 8.6", "NothingWhereSomethingIsExpected", sends(Method::post, {}),
       "POST / HTTP/1.1\r\n" + host + "content-length: 0\r\n\r\n"},
      {"9110 8.6", "NothingWhereNothingIsExpected", sends(Method::delete_, {}),
       "DELETE / HTTP/1.1\r\n" + host + "\r\n"},
      {"9110 10.1.1", "Expect",
       [] {
         ClientRequest request(Method::put, url("http://server/"), {}, "abc");
         request.expects_continue = true;
         return request;
       },
       "PUT / HTTP/1.1\r\n" + host + "content-length: 3\r\nexpect: 100-continue\r\n\r\nabc"},
      {"9110 10.1.1", "NoExpectWithoutABody",
       [] {
         ClientRequest request(Method::put, url("http://server/"));
         request.expects_continue = true;
         return request;
       },
       "PUT / HTTP/1.1\r\n" + host + "content-length: 0\r\n\r\n"},
      {"9110 7.8", "Upgrade",
       [] {
         ClientRequest request(Method::get, url("http://server/"));
         request.upgrade = "echo";
         return request;
       },
       "GET / HTTP/1.1\r\n" + host + "connection: upgrade\r\nupgrade: echo\r\n\r\n"},
  };
}

struct Rfc9112Client : ::testing::TestWithParam<ClientCase> {};

TEST_P(Rfc9112Client, SendsExactlyThis) {
  const ClientCase& c = GetParam();
  ClientTalk talk;
  talk.options.proxies = c.proxies;
  talk.options.user_agent = "";
  talk.options.decodes = false;
  std::string sent;
  auto script = [&](Peer& peer) -> Task<void> {
    sent = co_await peer.read_until(c.sent.substr(c.sent.size() - 4));
    while (sent.size() < c.sent.size()) {
      std::string more = co_await peer.read_until(c.sent.substr(c.sent.size() - 3));
      if (more.empty()) break;
      sent += more;
    }
    peer.close();
  };
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request = c.request();
    Result<ClientResponse> response = co_await client.request(std::move(request));
    EXPECT_FALSE(response.has_value());
  });
  EXPECT_EQ(sent, c.sent);
}

// The fields that say where a request goes and where it ends are the client's own, and no value ends its line.
TEST(Rfc9112ClientFields, AreNotTheUsers) {
  ClientTalk talk;
  auto script = [](Peer& peer) -> Task<void> {
    peer.close();
    co_return;
  };
  talk(script, [](Client& client, ScriptedConnector&) -> Task<void> {
    for (const char* own :
         {"Host", "connection", "Content-Length", "transfer-encoding", "Expect", "Upgrade", "TE"}) {
      HeaderLines fields{{own, "3"}};
      ClientRequest request(Method::get, url("http://server/"), fields);
      bool is_refused = false;
      try {
        Result<ClientResponse> response = co_await client.request(std::move(request));
      } catch (const UsageError&) {
        is_refused = true;
      }
      EXPECT_TRUE(is_refused) << own;
    }
  });
  HeaderLines fields;
  for (std::string value : {std::string("\r"), std::string("\n"), std::string(1, '\0')}) {
    EXPECT_THROW(fields.add("a", "b" + value + "c"), UsageError);
    EXPECT_THROW(fields.add("a" + value, "b"), UsageError);
  }
  EXPECT_EQ(fields.lines(), "");
}

constexpr auto kNameOf = [](const auto& info) {
  std::string name = std::string("s") + info.param.section + "_" + info.param.name;
  for (char& c : name) {
    if (c == '.' || c == ' ') c = '_';
  }
  return name;
};
INSTANTIATE_TEST_SUITE_P(Sections, Rfc9112Server, ::testing::ValuesIn(server_cases()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Sections, Rfc9112Client, ::testing::ValuesIn(client_cases()), kNameOf);

}  // namespace
