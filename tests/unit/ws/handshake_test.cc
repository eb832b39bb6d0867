// SPDX-License-Identifier: MIT
// RFC 6455, 4: what a server must answer, and what a client must believe.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/ws_fixture.h"
#include "weft/net/buffered.h"
#include "weft/testing/virtual_loop.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using test::Answer;
using test::close_frame;
using test::handshake;
using test::kKey;
using test::parse_answers;
using test::Talk;

std::string request(std::string_view line, std::vector<std::string> fields) {
  std::string text(line);
  text += "\r\n";
  for (const std::string& field : fields) text += field + "\r\n";
  return text + "\r\n";
}
const std::string kGet = "GET / HTTP/1.1";
const std::string kHost = "Host: example.org";
const std::string kUpgrade = "Upgrade: websocket";
const std::string kConnection = "Connection: keep-alive, Upgrade";
const std::string kVersion = "Sec-WebSocket-Version: 13";
const std::string kKeyField = "Sec-WebSocket-Key: " + kKey;

struct Case {
  const char* section;
  const char* name;
  std::string bytes;
  int status;
  const char* versions = "";  // 4.4: those that the server speaks, if that is what is wrong
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.section << " " << c.name;
}

std::vector<Case> cases() {
  std::vector<Case> all = {
      {"4.2.1", "AllOfIt", request(kGet, {kHost, kUpgrade, kConnection, kVersion, kKeyField}), 101},
      {"4.2.1", "NamesDoNotCareForCase",
       request(kGet, {kHost, "uPGRADE: WebSocket", "cONNECTION: uPGRADE", kVersion, kKeyField}),
       101},
      {"4.2.1", "Http10",
       request("GET / HTTP/1.0", {kHost, kUpgrade, kConnection, kVersion, kKeyField}), 426},
      {"4.2.1", "AnotherMethod",
       request("POST / HTTP/1.1",
               {kHost, kUpgrade, kConnection, kVersion, kKeyField, "Content-Length: 0"}),
       426},
      {"4.2.1", "NoUpgrade", request(kGet, {kHost, kConnection, kVersion, kKeyField}), 426},
      {"4.2.1", "AnotherProtocol",
       request(kGet, {kHost, "Upgrade: h2c", kConnection, kVersion, kKeyField}), 426},
      {"4.2.1", "NoConnection", request(kGet, {kHost, kUpgrade, kVersion, kKeyField}), 426},
      {"4.2.1", "NoKey", request(kGet, {kHost, kUpgrade, kConnection, kVersion}), 400},
      {"4.2.1", "TwoKeys",
       request(kGet, {kHost, kUpgrade, kConnection, kVersion, kKeyField, kKeyField}), 400},
      {"4.2.1", "NoVersion", request(kGet, {kHost, kUpgrade, kConnection, kKeyField}), 426, "13"},
      {"4.2.1", "TwoVersions",
       request(kGet, {kHost, kUpgrade, kConnection, kVersion, kVersion, kKeyField}), 426, "13"},
      {"4.4", "AnOlderVersion",
       request(kGet, {kHost, kUpgrade, kConnection, "Sec-WebSocket-Version: 8", kKeyField}), 426,
       "13"},
      {"4.4", "AVersionToCome",
       request(kGet, {kHost, kUpgrade, kConnection, "Sec-WebSocket-Version: 130", kKeyField}), 426,
       "13"},
      {"4.2.1", "ABody",
       request(kGet, {kHost, kUpgrade, kConnection, kVersion, kKeyField, "Content-Length: 3"}) +
           "abc",
       400},
  };
  for (const char* key :
       {"", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZ===",
        "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25jZ*==", "dGhlIHNhbXBsZSBub25jZQ==AAAA",
        "dGhlIHNhbXBsZSBub25jZSE="}) {
    all.push_back({"4.2.1", "ABadKey",
                   request(kGet, {kHost, kUpgrade, kConnection, kVersion,
                                  "Sec-WebSocket-Key: " + std::string(key)}),
                   400});
  }
  // 9.1: the grammar of extensions, whether one is known or not.
  for (const char* good : {"x", "x, y;a;b=c", "x; a = \"b\" ;c", ",x,,", "x;a=\"\\b\""}) {
    all.push_back({"9.1", "Extensions",
                   handshake("Sec-WebSocket-Extensions: " + std::string(good) + "\r\n"), 101});
  }
  all.push_back({"9.1", "ExtensionsOfWhichOneIsEmpty",
                 handshake("Sec-WebSocket-Extensions:\r\nSec-WebSocket-Extensions: x\r\n"), 101});
  for (const char* bad :
       {"", ",", "x y", "x;", "x;;a", "x;=b", "x;a=", "x;a=b c", "x;a=\"b", "x;a=\"b c\"",
        "x;a=\"\"", "x;a=\"b\"c", "x;a=b=c", ";a", "x, ;a", "(x)", "x;a=\"b\\", "x;a=\"b,c\""}) {
    all.push_back({"9.1", "BadExtensions",
                   handshake("Sec-WebSocket-Extensions: " + std::string(bad) + "\r\n"), 400});
  }
  return all;
}

struct Rfc6455Handshake : ::testing::TestWithParam<Case> {};

TEST_P(Rfc6455Handshake, IsAnsweredAsItSays) {
  ws::Endpoint endpoint(test::echo);
  bool is_accepted = GetParam().status == 101;
  std::string bytes = GetParam().bytes + (is_accepted ? close_frame(1000) : "");
  std::string text = Talk{}(endpoint, bytes);
  Answer answer = parse_answers(text.substr(0, text.find("\r\n\r\n") + 4), true).at(0);
  EXPECT_EQ(answer.status, GetParam().status) << text;
  if (is_accepted) {
    EXPECT_EQ(answer.field("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // 1.3
    EXPECT_EQ(answer.field("upgrade"), "websocket");
    EXPECT_EQ(answer.field("connection"), "upgrade");
  } else {
    EXPECT_EQ(answer.field("sec-websocket-accept"), "");
  }
  if (answer.status == 426) {
    EXPECT_EQ(answer.field("upgrade"), "websocket");  // RFC 9110, 15.5.22
    EXPECT_TRUE(answer.field("connection").ends_with("upgrade")) << answer.head;  // 7.8
    EXPECT_EQ(answer.field("sec-websocket-version"), GetParam().versions);
  }
}
INSTANTIATE_TEST_SUITE_P(All, Rfc6455Handshake, ::testing::ValuesIn(cases()));

// --- Options of a server ----------------------------------------------------------------------------

Answer answer_to(const ws::EndpointOptions& options, std::string_view fields) {
  ws::Endpoint endpoint(test::echo, options);
  std::string text = Talk{}(endpoint, handshake(fields) + close_frame(1000));
  return parse_answers(text.substr(0, text.find("\r\n\r\n") + 4), true).at(0);
}

TEST(WebSocketOrigin, IsTheHostsOwnByDefault) {
  struct {
    const char* origin;
    int status;
  } cases[] = {{"http://example.org", 101},
               {"https://example.org", 101},
               {"https://EXAMPLE.org:443", 101},
               {"http://example.org:80", 101},
               {"http://example.org:8080", 403},
               {"http://evil.example.org", 403},
               {"http://example.org.evil", 403},
               {"null", 403},
               {"", 403},
               {"example.org", 403}};
  for (const auto& [origin, status] : cases) {
    std::string field = "Origin: " + std::string(origin) + "\r\n";
    EXPECT_EQ(answer_to({}, field).status, status) << origin;
  }
  EXPECT_EQ(answer_to({}, "").status, 101) << "no browser";
  EXPECT_EQ(answer_to({}, "Origin: http://example.org\r\nOrigin: http://evil\r\n").status, 403);
}

TEST(WebSocketOrigin, MayBeNamed) {
  ws::EndpointOptions options;
  options.allowed_origins = {"https://a.example", "https://b.example:8443"};
  EXPECT_EQ(answer_to(options, "Origin: https://a.example\r\n").status, 101);
  EXPECT_EQ(answer_to(options, "Origin: https://b.example:8443\r\n").status, 101);
  EXPECT_EQ(answer_to(options, "Origin: http://a.example\r\n").status, 403);
  EXPECT_EQ(answer_to(options, "Origin: http://example.org\r\n").status, 403);
  options.allowed_origins = {"*"};
  EXPECT_EQ(answer_to(options, "Origin: http://anybody\r\n").status, 101);
}

TEST(WebSocketSubprotocol, IsTheServersFavouriteOfThoseOffered) {
  ws::EndpointOptions options;
  options.subprotocols = {"v2", "v1"};
  auto chosen = [&](const char* offered) {
    return answer_to(options, std::string("Sec-WebSocket-Protocol: ") + offered + "\r\n")
        .field("sec-websocket-protocol");
  };
  EXPECT_EQ(chosen("v1, v2"), "v2");
  EXPECT_EQ(chosen("v1"), "v1");
  EXPECT_EQ(chosen("v1\r\nSec-WebSocket-Protocol: v2"), "v2");
  EXPECT_EQ(chosen("v3"), "");
  EXPECT_EQ(chosen("V2"), "") << "they care for case";
}

TEST(WebSocketDeflate, IsAgreedOn) {
  struct {
    const char* offer;
    const char* answer;
  } cases[] = {
      {"permessage-deflate", "permessage-deflate; server_max_window_bits=12"},
      {"permessage-deflate; client_max_window_bits",
       "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12"},
      {"permessage-deflate; client_max_window_bits=10; server_max_window_bits=9",
       "permessage-deflate; server_max_window_bits=9; client_max_window_bits=10"},
      {"permessage-deflate; server_max_window_bits=\"10\"",
       "permessage-deflate; server_max_window_bits=10"},
      {"permessage-deflate; server_no_context_takeover; client_no_context_takeover",
       "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
       "server_max_window_bits=12"},
      // 7.1: each of these offers is declined; the next one may be taken.
      {"permessage-deflate; server_max_window_bits=8", ""},
      {"permessage-deflate; server_max_window_bits=16", ""},
      {"permessage-deflate; server_max_window_bits=09", ""},
      {"permessage-deflate; server_max_window_bits", ""},
      {"permessage-deflate; server_max_window_bits=10; server_max_window_bits=10", ""},
      {"permessage-deflate; client_max_window_bits; client_max_window_bits", ""},
      {"permessage-deflate; server_no_context_takeover=1", ""},
      {"permessage-deflate; unknown", ""},
      {"x-webkit-deflate-frame", ""},
      {"permessage-deflate; unknown, permessage-deflate",
       "permessage-deflate; server_max_window_bits=12"},
  };
  ws::EndpointOptions options;
  options.deflate.emplace();
  for (const auto& [offer, expected] : cases) {
    std::string field = "Sec-WebSocket-Extensions: " + std::string(offer) + "\r\n";
    EXPECT_EQ(answer_to(options, field).field("sec-websocket-extensions"), expected) << offer;
  }
  EXPECT_EQ(answer_to({}, "Sec-WebSocket-Extensions: permessage-deflate\r\n")
                .field("sec-websocket-extensions"),
            "")
      << "off by default";
}

TEST(WebSocketOptions, OutOfRangeAreRefused) {
  ws::EndpointOptions options;
  options.limits.fragment_bytes = 0;
  EXPECT_THROW(ws::Endpoint(test::echo, options), UsageError);
  options.limits.fragment_bytes = 1;
  options.deflate.emplace().server_window_bits_max = 8;
  EXPECT_THROW(ws::Endpoint(test::echo, options), UsageError);
}

// --- A client ---------------------------------------------------------------------------------------

struct ClientResult {
  Result<ws::Close> end = std::unexpected(std::error_code());
  bool talked = false;
  std::string request;
};

// Our client, and a server that answers `head` (KEY stands for the right accept) and whatever bytes follow, and stays.
ClientResult ask_server(std::string head, ws::ClientOptions options = {}) {
  ClientResult result;
  weft::testing::VirtualLoop loop;
  auto both = [&]() -> Task<void> {
    auto [near, far] = net::memory_streams();
    net::MemoryStream mine = std::move(near);
    net::MemoryStream server = std::move(far);
    auto answer = [&]() -> Task<void> {
      net::BufferedReader<net::MemoryStream> reader(server);
      std::span<const std::byte> asked = or_throw(co_await reader.read_until("\r\n\r\n"));
      result.request.assign(reinterpret_cast<const char*>(asked.data()), asked.size());
      [[maybe_unused]] Result<void> sent = co_await net::write_all(server, head);
      co_await test::read_to_end(server);
    };
    auto ask = [&]() -> Task<void> {
      ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
        result.talked = true;
        Result<ws::Message> message = co_await socket.receive();
      };
      Task<Result<ws::Close>> talking =
          ws::connect(std::move(mine), "example.org", "/chat?x", talk, options);
      result.end = co_await std::move(talking);
    };
    co_await all_of(answer(), ask());
  };
  run(loop, both());
  return result;
}

TEST(WebSocketClient, AsksAsItMust) {
  ws::ClientOptions options;
  options.subprotocols = {"a", "b"};
  options.origin = "https://example.org";
  options.deflate.emplace();
  options.headers.add("authorization", "Basic xyz");
  std::string asked = ask_server("HTTP/1.1 400 No\r\n\r\n", options).request;
  EXPECT_EQ(asked.substr(0, 23), "GET /chat?x HTTP/1.1\r\nh");
  for (const char* field :
       {"host: example.org\r\n", "upgrade: websocket\r\n", "connection: Upgrade\r\n",
        "sec-websocket-version: 13\r\n", "sec-websocket-protocol: a, b\r\n",
        "origin: https://example.org\r\n", "authorization: Basic xyz\r\n",
        "sec-websocket-extensions: permessage-deflate; server_max_window_bits=12; "
        "client_max_window_bits=12\r\n"}) {
    EXPECT_NE(asked.find(field), asked.npos) << field << " in " << asked;
  }
  std::string other = ask_server("HTTP/1.1 400 No\r\n\r\n", options).request;
  EXPECT_NE(asked, other) << "4.1: the key is another one each time";
}

TEST(WebSocketClient, TellsWhatItWasRefusedWith) {
  ws::ClientOptions options;
  int status = 0;
  std::string realm;
  options.on_refused = [&](int code, const http::Headers& headers) {
    status = code;
    realm = headers.find("www-authenticate").value_or("");
  };
  ClientResult result =
      ask_server("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\n\r\n", options);
  EXPECT_EQ(result.end.error(), ws::Error::refused);
  EXPECT_EQ(status, 401);
  EXPECT_EQ(realm, "Basic");
  EXPECT_FALSE(result.talked);
}

// The server does not know our key beforehand: none of these has the right accept, and the first says so.
TEST(WebSocketClient, DoesNotBelieveAWrongAccept) {
  std::string head =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
  ClientResult result = ask_server(head);
  EXPECT_EQ(result.end.error(), ws::Error::bad_handshake);
  EXPECT_FALSE(result.talked);
  EXPECT_EQ(ask_server("HTTP/1.1 101 Switching Protocols\r\n\r\n").end.error(),
            ws::Error::bad_handshake);
  EXPECT_EQ(ask_server("SSH-2.0-OpenSSH_9.2\r\n").end.error(), ws::Error::bad_handshake);
}

TEST(WebSocketClient, DoesNotWaitForEver) {
  EXPECT_EQ(ask_server("HTTP/1.1 101 Switch").end.error(), std::errc::timed_out);
}

TEST(WebSocketClient, DoesNotSendWhatWouldBeAnotherRequest) {
  weft::testing::VirtualLoop loop;
  auto try_path = [&](std::string host, std::string path) -> Task<void> {
    auto [near, far] = net::memory_streams();
    net::MemoryStream mine = std::move(near);
    ws::ClientTalk talk = [](ws::Connection&) -> Task<void> { co_return; };
    Task<Result<ws::Close>> talking = ws::connect(std::move(mine), host, path, talk);
    Result<ws::Close> end = co_await std::move(talking);
  };
  EXPECT_THROW(run(loop, try_path("a", "/ HTTP/1.1\r\nX: y")), UsageError);
  EXPECT_THROW(run(loop, try_path("a\r\nX: y", "/")), UsageError);
  EXPECT_THROW(run(loop, try_path("a", "no-slash")), UsageError);
  EXPECT_THROW(run(loop, try_path("a", "")), UsageError);
}

// What `options` are refused with; nothing if they are not.
std::string refusal_of(const ws::ClientOptions& options) {
  try {
    [[maybe_unused]] ClientResult result = ask_server("HTTP/1.1 400 No\r\n\r\n", options);
    EXPECT_EQ(result.end.error(), ws::Error::refused);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

// 4.1, 10: they are tokens, and each is another one.
TEST(WebSocketClient, OffersSubprotocolsThatCanBeTold) {
  using Offers = std::vector<std::string>;
  for (const Offers& good : {Offers{}, Offers{"a"}, Offers{"a", "A"}, Offers{"v1.chat", "v2"}}) {
    ws::ClientOptions options;
    options.subprotocols = good;
    EXPECT_EQ(refusal_of(options), "");
  }
  for (const Offers& bad :
       {Offers{""}, Offers{"a", ""}, Offers{"a, b"}, Offers{"a b"}, Offers{"a", "b", "a"},
        Offers{"a\r\nx: y"}, Offers{"\"a\""}, Offers{"\xc3\xa4"}}) {
    ws::ClientOptions options;
    options.subprotocols = bad;
    EXPECT_NE(refusal_of(options).find("subprotocol"), std::string::npos) << bad.back();
    ws::EndpointOptions server;
    server.subprotocols = bad;
    EXPECT_THROW(ws::Endpoint(test::echo, server), UsageError) << bad.back();
  }
}

// What it says itself would be there twice, and which of them counts is the server's guess.
TEST(WebSocketClient, SaysOnceWhatItSaysItself) {
  for (const char* name :
       {"host", "Host", "upgrade", "connection", "origin", "content-length", "transfer-encoding",
        "sec-websocket-key", "Sec-WebSocket-Version", "sec-websocket-protocol",
        "sec-websocket-extensions", "sec-websocket-accept"}) {
    ws::ClientOptions options;
    options.headers.add(name, "x");
    EXPECT_NE(refusal_of(options).find("ClientOptions"), std::string::npos) << name;
  }
}

// Upgrades like an Endpoint, but with these fields instead.
class Liar final : public http::Handler {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  explicit Liar(Fields fields) : fields_(std::move(fields)) {}
  Task<void> handle_request(const http::Request& request, http::Response& response,
                            http::Connection& connection) override {
    std::string key(request.headers().find("sec-websocket-key").value_or(""));
    std::string text = accept_for(key);
    response.header("sec-websocket-accept", text);
    for (const auto& [name, value] : fields_) response.header(name, value);
    Result<http::Connection::Upgraded> upgraded =
        co_await connection.upgrade(response, "websocket");
    if (!upgraded) co_return;
    std::string frames = to_send;
    net::Part part(frames);
    std::span<const net::Part> parts(&part, 1);
    [[maybe_unused]] Result<std::size_t> sent = co_await upgraded->transport->write_some(parts);
    for (Result<PooledBytes> bytes = co_await upgraded->transport->read(); bytes && !bytes->empty();
         bytes = co_await upgraded->transport->read()) {
      received.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }
  }
  std::string to_send = std::string("\x88\x02\x03\xe8", 4);
  std::string received;

 private:
  // Computed by an Endpoint that we ask aside: a thread has one loop at a time.
  static std::string accept_for(const std::string& key) {
    ws::Endpoint endpoint(test::echo);
    std::string asked = handshake();
    asked.replace(asked.find(kKey), kKey.size(), key);
    std::string text;
    std::thread aside([&] { text = Talk{}(endpoint, asked + close_frame(1000)); });
    aside.join();
    return parse_answers(text.substr(0, text.find("\r\n\r\n") + 4), true)
        .at(0)
        .field("sec-websocket-accept");
  }
  std::vector<std::pair<std::string, std::string>> fields_;
};

Result<ws::Close> ask_liar(Liar& liar, ws::ClientOptions options = {}) {
  weft::testing::VirtualLoop loop;
  ws::ClientTalk talk = [](ws::Connection& socket) -> Task<void> {
    Result<ws::Message> message = co_await socket.receive();
  };
  return test::converse(loop, liar, talk, options);
}

TEST(WebSocketClient, BelievesWhatItAskedForOnly) {
  Liar honest(Liar::Fields{});
  EXPECT_EQ(ask_liar(honest).value().code, 1000);
  Liar protocol(Liar::Fields{{"sec-websocket-protocol", "chat"}});
  EXPECT_EQ(ask_liar(protocol).error(), ws::Error::bad_handshake);
  ws::ClientOptions offers;
  offers.subprotocols = {"chat"};
  offers.deflate.emplace();
  EXPECT_EQ(ask_liar(protocol, offers).value().code, 1000);
  Liar two(Liar::Fields{{"sec-websocket-protocol", "chat"}, {"sec-websocket-protocol", "chat"}});
  EXPECT_EQ(ask_liar(two, offers).error(), ws::Error::bad_handshake);
  Liar extension(
      Liar::Fields{{"sec-websocket-extensions", "permessage-deflate; server_max_window_bits=12"}});
  EXPECT_EQ(ask_liar(extension).error(), ws::Error::bad_handshake);
  EXPECT_EQ(ask_liar(extension, offers).value().code, 1000);
  for (const char* answer :
       {"permessage-deflate", "permessage-deflate; server_max_window_bits=15",
        "permessage-deflate; server_max_window_bits=12; client_max_window_bits",
        "permessage-deflate; server_max_window_bits=12; client_max_window_bits=8",
        "permessage-deflate; server_max_window_bits=12, permessage-deflate", "x-other",
        "permessage-deflate; server_max_window_bits=12; x"}) {
    Liar wrong(Liar::Fields{{"sec-websocket-extensions", answer}});
    EXPECT_EQ(ask_liar(wrong, offers).error(), ws::Error::bad_handshake) << answer;
  }
}

// 5.1: a server does not mask; 5.3: a client does, each frame by a key of its own.
TEST(WebSocketClient, MasksAndIsNotMasked) {
  Liar masking(Liar::Fields{});
  masking.to_send = close_frame(1000);
  EXPECT_EQ(ask_liar(masking).value().code, 1002);
  Liar honest(Liar::Fields{});
  honest.to_send = std::string("\x89\x01x\x89\x01y\x88\x02\x03\xe8", 10);
  EXPECT_EQ(ask_liar(honest).value().code, 1000);
  std::string_view rest = honest.received;
  std::vector<std::string> masks;
  test::Frame frame;
  for (std::string_view before = rest; test::take_frame(rest, frame); before = rest) {
    EXPECT_TRUE(frame.masked);
    masks.emplace_back(before.substr(2, 4));
  }
  ASSERT_GE(masks.size(), 2u);
  EXPECT_NE(masks[0], masks[1]);
  for (const std::string& mask : masks) EXPECT_NE(mask, std::string(4, '\0'));
}

}  // namespace
