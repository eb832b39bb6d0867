// SPDX-License-Identifier: MIT
// RFC 6455 and RFC 7692 byte by byte: what a client must take from a server, and what it must not.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/ws_fixture.h"
#include "weft/net/buffered.h"
#include "weft/testing/virtual_loop.h"
#include "weft/time/sleep.h"

namespace {

using namespace weft;
using test::close_payload;
using test::Frame;
using weft::testing::VirtualLoop;

constexpr std::size_t kMessageBytesMax = 1000;

struct Case {
  const char* section;  // of RFC 6455, unless it says otherwise
  std::string name;
  std::string bytes;
  // What the coroutine received, and the Close that the server got: "T:hello B:… C:1000". "C:" alone: one without a code.
  std::string seen;
  bool deflate = false;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.section << " " << c.name;
}

// As a server sends them: not masked.
std::string frame(int opcode, std::string payload, bool fin = true, int rsv = 0,
                  int length_bytes = -1) {
  Frame made;
  made.opcode = opcode;
  made.payload = std::move(payload);
  made.fin = fin;
  made.rsv = rsv;
  made.masked = false;
  made.length_bytes = length_bytes;
  return test::to_bytes(made);
}
std::string masked(int opcode, std::string payload) {
  Frame made;
  made.opcode = opcode;
  made.payload = std::move(payload);
  return test::to_bytes(made);
}
std::string close_with(int code, std::string_view reason = "") {
  return frame(8, close_payload(code, reason));
}
// A header that promises `length` bytes, and the first of them.
std::string promise(std::uint64_t length) {
  std::string bytes("\x82\x7f", 2);
  for (int i = 7; i >= 0; --i) bytes += static_cast<char>(length >> (8 * i));
  return bytes + "x";
}

const std::string kBye = close_with(1000);
const std::string kHello = frame(1, "Hello");

std::vector<Case> frame_cases() {
  std::vector<Case> cases = {
      // Masking
      {"5.1", "AFrameThatIsNotMaskedIsTaken", kHello + kBye, "T:Hello C:1000"},
      {"5.1", "AMaskedTextIsRefused", masked(1, "Hello") + kBye, "C:1002"},
      {"5.1", "AMaskedEmptyTextIsRefused", masked(1, "") + kBye, "C:1002"},
      {"5.1", "AMaskedPingIsRefused", masked(9, "") + kBye, "C:1002"},
      {"5.1", "AMaskedCloseIsRefused", masked(8, close_payload(1000)), "C:1002"},
      {"5.1", "AMaskedContinuationIsRefused", frame(1, "a", false) + masked(0, "b") + kBye,
       "C:1002"},
      // Base framing
      {"5.2", "Rsv1WithoutAnExtension", frame(1, "a", true, 4) + kBye, "C:1002"},
      {"5.2", "Rsv2", frame(1, "a", true, 2) + kBye, "C:1002"},
      {"5.2", "Rsv3", frame(1, "a", true, 1) + kBye, "C:1002"},
      {"5.2", "RsvOfAControlFrame", frame(9, "a", true, 1) + kBye, "C:1002"},
      {"5.2", "Rsv1OfAClose", frame(8, close_payload(1000), true, 4), "C:1002"},
      {"5.2", "AnEmptyText", frame(1, "") + kBye, "T: C:1000"},
      {"5.2", "AnEmptyBinary", frame(2, "") + kBye, "B: C:1000"},
      {"5.2", "Of125Bytes", frame(1, std::string(125, 'x')) + kBye,
       "T:" + std::string(125, 'x') + " C:1000"},
      {"5.2", "Of126Bytes", frame(1, std::string(126, 'x')) + kBye,
       "T:" + std::string(126, 'x') + " C:1000"},
      {"5.2", "SixteenBitsThatAreNotNeeded", frame(1, std::string(125, 'x'), true, 0, 2) + kBye,
       "C:1002"},
      {"5.2", "SixtyFourBitsThatAreNotNeeded", frame(1, std::string(300, 'x'), true, 0, 8) + kBye,
       "C:1002"},
      {"5.2", "TheHighestBitOfTheLength", promise(std::uint64_t{1} << 63), "C:1002"},
      {"5.2", "ReservedOpcodeWithinAMessage",
       frame(1, "a", false) + frame(3, "b") + frame(0, "c") + kBye, "C:1002"},
      // Fragmentation
      {"5.4", "TwoFragments", frame(1, "Hel", false) + frame(0, "lo") + kBye, "T:Hello C:1000"},
      {"5.4", "EmptyFragments", frame(1, "", false) + frame(0, "", false) + frame(0, "") + kBye,
       "T: C:1000"},
      {"5.4", "APongBetweenFragments",
       frame(1, "Hel", false) + frame(10, "p") + frame(0, "lo") + kBye, "T:Hello C:1000"},
      {"5.4", "ACloseBetweenFragments", frame(1, "Hel", false) + kBye + frame(0, "lo"), "C:1000"},
      {"5.4", "AContinuationOfNothing", frame(0, "a") + kBye, "C:1002"},
      {"5.4", "AContinuationOfNothingThatGoesOn", frame(0, "a", false) + kBye, "C:1002"},
      {"5.4", "AContinuationAfterTheLast",
       frame(1, "a", false) + frame(0, "b") + frame(0, "c") + kBye, "T:ab C:1002"},
      {"5.4", "AMessageWithinAnother", frame(1, "a", false) + frame(1, "b") + kBye, "C:1002"},
      {"5.4", "AnotherKindWithinAMessage", frame(1, "a", false) + frame(2, "b") + kBye, "C:1002"},
      {"5.4", "ATornPing", frame(9, "a", false) + frame(0, "b") + kBye, "C:1002"},
      {"5.4", "ATornPong", frame(10, "a", false) + frame(0, "b") + kBye, "C:1002"},
      {"5.4", "ATornClose", frame(8, close_payload(1000), false), "C:1002"},
      // Control frames
      {"5.5", "AControlFrameOf126Bytes", frame(9, std::string(126, 'p')) + kBye, "C:1002"},
      {"5.5", "ACloseOf126Bytes", close_with(1000, std::string(124, 'r')), "C:1002"},
      {"5.5.1", "ACloseWithoutACode", frame(8, ""), "C:"},
      {"5.5.1", "ACloseOfOneByte", frame(8, "x"), "C:1002"},
      {"5.5.1", "ACloseWithTheLongestReason", close_with(1000, std::string(123, 'r')), "C:1000"},
      {"5.5.1", "WhatComesBehindACloseIsDropped", kHello + kBye + kHello, "T:Hello C:1000"},
      {"5.5.1", "ASecondCloseIsDropped", kBye + close_with(1001), "C:1000"},
      {"5.5.2", "APingIsAnswered", frame(9, "") + kBye, "P: C:1000"},
      {"5.5.3", "WithTheSameData", frame(9, std::string("a\0\xff", 3)) + kBye,
       "P:" + std::string("a\0\xff", 3) + " C:1000"},
      {"5.5.3", "APongThatNobodyAskedForIsIgnored", frame(10, "x") + kHello + kBye,
       "T:Hello C:1000"},
      // Text
      {"5.6", "BinaryIsNotText", frame(2, "\xff\xfe") + kBye, "B:\xff\xfe C:1000"},
      {"8.1", "ACharacterTornBetweenFragments",
       frame(1, "\xf0\x9f", false) + frame(0, "\x98\x80") + kBye, "T:\xf0\x9f\x98\x80 C:1000"},
      {"8.1", "ATextThatEndsWithinACharacter", frame(1, "a\xe2\x82") + kBye, "C:1007"},
      {"8.1", "FailsAtTheFirstBadByte", frame(1, "a\xff", false), "C:1007"},
      {"8.1", "AnOverlongForm", frame(1, "\xc0\xaf") + kBye, "C:1007"},
      {"8.1", "ASurrogate", frame(1, "\xed\xa0\x80") + kBye, "C:1007"},
      {"8.1", "BeyondTheLastCharacter", frame(1, "\xf4\x90\x80\x80") + kBye, "C:1007"},
      {"8.1", "AReasonThatIsNoText", close_with(1000, "\xc0\xaf"), "C:1007"},
      {"8.1", "AReasonInUtf8", close_with(1000, "\xe2\x82\xac"), "C:1000"},
      // Limits
      {"10.4", "AMessageAsLargeAsItMayBe", frame(1, std::string(kMessageBytesMax, 'x')) + kBye,
       "T:" + std::string(kMessageBytesMax, 'x') + " C:1000"},
      {"10.4", "AMessageThatIsLarger", frame(1, std::string(kMessageBytesMax + 1, 'x')) + kBye,
       "C:1009"},
      {"10.4", "FragmentsThatAreLargerTogether",
       frame(1, std::string(600, 'x'), false) + frame(0, std::string(401, 'x'), false) + kBye,
       "C:1009"},
      {"10.4", "APromiseOfAllThereIs", promise((std::uint64_t{1} << 63) - 1), "C:1009"},
  };
  for (int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    cases.push_back(
        {"5.2", "ReservedOpcode" + std::to_string(opcode), frame(opcode, "") + kBye, "C:1002"});
  }
  for (int code : {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000,
                   3999, 4000, 4999}) {
    cases.push_back({"7.4.1", "CloseCode" + std::to_string(code), close_with(code),
                     "C:" + std::to_string(code)});
  }
  for (int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}) {
    cases.push_back(
        {"7.4.2", "CloseCodeThatIsNone" + std::to_string(code), close_with(code), "C:1002"});
  }
  return cases;
}

// RFC 7692: the examples of 7.2.3.
std::vector<Case> deflate_cases() {
  const std::string hello("\xf2\x48\xcd\xc9\xc9\x07\x00", 7), again("\xf2\x00\x11\x00\x00", 5);
  std::vector<Case> cases = {
      {"7692 6", "AMessageThatIsNotCompressed", kHello + kBye, "T:Hello C:1000"},
      {"7692 6", "Rsv1OfAContinuation",
       frame(1, hello.substr(0, 3), false, 4) + frame(0, hello.substr(3), true, 4) + kBye,
       "C:1002"},
      {"7692 6", "Rsv1OfAPing", frame(9, "", true, 4) + kBye, "C:1002"},
      {"7692 6", "Rsv2StaysReserved", frame(1, hello, true, 6) + kBye, "C:1002"},
      {"7692 7.2.3.1", "OneBlock", frame(1, hello, true, 4) + kBye, "T:Hello C:1000"},
      {"7692 7.2.3.1", "OneBlockInFragments",
       frame(1, hello.substr(0, 3), false, 4) + frame(0, hello.substr(3)) + kBye, "T:Hello C:1000"},
      {"7692 7.2.3.2", "TheWindowIsShared",
       frame(1, hello, true, 4) + frame(1, again, true, 4) + kBye, "T:Hello T:Hello C:1000"},
      {"7692 7.2.2", "WhatDoesNotInflate", frame(1, "\xff\xff\xff", true, 4) + kBye, "C:1007"},
      {"7692 7.2.2", "WhatIsNotWhole", frame(1, hello.substr(0, 4), true, 4) + kBye, "C:1007"},
      {"8.1", "InflatedTextThatIsNone",
       frame(1, std::string("\x00\x01\x00\xfe\xff\xff\x00", 7), true, 4) + kBye, "C:1007"},
      // 1001 times 'x'.
      {"10.4", "WhatInflatesToMore",
       frame(2, std::string("\xaa\xa8\x18\x05\xa3\x60\x14\x0c\x7b\x00\x00", 11), true, 4) + kBye,
       "C:1009"},
  };
  for (Case& c : cases) c.deflate = true;
  return cases;
}

// What the client sent: each frame masked (5.1), nothing behind the Close.
std::string answers_in(std::string_view bytes) {
  std::string pongs, close;
  for (const Frame& each : test::parse_frames(bytes)) {
    EXPECT_TRUE(each.masked) << "a client masks";
    EXPECT_TRUE(close.empty()) << "a frame behind the Close";
    if (each.opcode == 10) {
      pongs += "P:" + each.payload + " ";
    } else if (each.opcode == 8) {
      close = "C:";
      if (each.payload.size() >= 2) {
        close += std::to_string(static_cast<unsigned char>(each.payload[0]) << 8 |
                                static_cast<unsigned char>(each.payload[1]));
      }
    } else {
      ADD_FAILURE() << "it was not told to send anything: " << each.opcode;
    }
  }
  return pongs + close;
}

// 4.2.2, by a library that is not ours.
std::string accept_for(std::string_view key) {
  std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 32> base64{};
  int size = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  return std::string(base64.begin(), base64.begin() + size);
}

// Reads the request. Returns: the Sec-WebSocket-Accept that answers it.
Task<std::string> read_request(net::MemoryStream& stream) {
  std::string request;
  while (!request.ends_with("\r\n\r\n")) {
    std::array<std::byte, 1> one;
    std::size_t count = or_throw(co_await stream.read_some(one));
    if (count == 0) throw std::runtime_error("the client has gone");
    request += static_cast<char>(one[0]);
  }
  const std::string name = "sec-websocket-key: ";
  co_return accept_for(request.substr(request.find(name) + name.size(), 24));
}

struct Rfc6455Client : ::testing::TestWithParam<Case> {
  // `at`: where the frames are torn in two.
  [[nodiscard]] static std::string seen(const Case& c, net::MemoryStreamOptions wire = {},
                                        std::size_t at = 0) {
    std::string received, answered;
    ws::ClientOptions options;
    options.limits.message_bytes_max = kMessageBytesMax;
    if (c.deflate) options.deflate.emplace();
    VirtualLoop loop;
    auto both = [&]() -> Task<void> {
      auto [near, far] = net::memory_streams(wire);
      net::MemoryStream mine = std::move(near);
      net::MemoryStream theirs = std::move(far);
      auto serve = [&]() -> Task<void> {
        std::string head = co_await answer_handshake(theirs, c.deflate);
        answered = co_await test::ask_in_two(theirs, head + c.bytes, head.size() + at);
      };
      auto ask = [&]() -> Task<void> {
        ws::ClientTalk listen = [&](ws::Connection& socket) -> Task<void> {
          while (true) {
            Result<ws::Message> message = co_await socket.receive();
            if (!message) co_return;
            received += (message->is_text() ? "T:" : "B:") + message->data + " ";
          }
        };
        Task<Result<ws::Close>> talking =
            ws::connect(std::move(mine), "example.org", "/", listen, options);
        Result<ws::Close> end = co_await std::move(talking);
        EXPECT_TRUE(end.has_value());
      };
      co_await all_of(serve(), ask());
    };
    run(loop, both());
    return received + answers_in(answered);
  }

 private:
  // Reads the request. Returns: the head that answers it.
  static Task<std::string> answer_handshake(net::MemoryStream& stream, bool deflate) {
    std::string accept = co_await read_request(stream);
    const char* extension =
        "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=12\r\n";
    co_return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              "Sec-WebSocket-Accept: " +
        accept + "\r\n" + (deflate ? extension : "") + "\r\n";
  }
};

TEST_P(Rfc6455Client, SeesWhatItSays) { EXPECT_EQ(seen(GetParam()), GetParam().seen); }

TEST_P(Rfc6455Client, IsTheSameByteByByte) {
  net::MemoryStreamOptions wire;
  wire.read_bytes_max = 1;
  EXPECT_EQ(seen(GetParam(), wire), GetParam().seen);
}

TEST_P(Rfc6455Client, IsTheSameHoweverItIsTorn) {
  const Case& c = GetParam();
  for (std::size_t at = 0; at <= c.bytes.size(); ++at) {
    EXPECT_EQ(seen(c, {}, at), c.seen) << "torn at " << at;
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name + "_";
  for (char c : std::string(info.param.section)) name += std::isalnum(c) ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Frames, Rfc6455Client, ::testing::ValuesIn(frame_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Deflate, Rfc6455Client, ::testing::ValuesIn(deflate_cases()), name_of);

// --- The answer to the handshake ---------------------------------------------------------------------

struct AnswerCase {
  const char* section;  // of RFC 6455, unless it says otherwise
  const char* name;
  std::string head;  // ACCEPT stands for the right one
  std::error_code error{};
};
std::ostream& operator<<(std::ostream& out, const AnswerCase& c) {
  return out << c.section << " " << c.name;
}

const std::string kStatus = "HTTP/1.1 101 Switching Protocols\r\n";
const std::string kUpgrade = "Upgrade: websocket\r\n";
const std::string kConnection = "Connection: Upgrade\r\n";
const std::string kAccept = "Sec-WebSocket-Accept: ACCEPT\r\n";
const std::string kSwitch = kStatus + kUpgrade + kConnection + kAccept;
const std::string kHints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";

std::string with_extensions(std::string_view value) {
  return kSwitch + "Sec-WebSocket-Extensions: " + std::string(value) + "\r\n\r\n";
}
std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<AnswerCase> answer_cases() {
  const std::error_code bad = make_error_code(ws::Error::bad_handshake);
  const std::error_code refused = make_error_code(ws::Error::refused);
  const std::size_t most = ws::Limits{}.informational_max;
  return {
      {"4.1", "AllOfIt", kSwitch + "\r\n"},
      {"4.1", "NoUpgrade", kStatus + kConnection + kAccept + "\r\n", bad},
      {"4.1", "AnotherUpgrade", kStatus + "Upgrade: h2c\r\n" + kConnection + kAccept + "\r\n", bad},
      {"4.1", "AnUpgradeThatBeginsLikeIt",
       kStatus + "Upgrade: websockets\r\n" + kConnection + kAccept + "\r\n", bad},
      {"4.1", "AnUpgradeToMore",
       kStatus + "Upgrade: h2c, websocket\r\n" + kConnection + kAccept + "\r\n", bad},
      {"4.1", "TwoUpgrades", kStatus + kUpgrade + kUpgrade + kConnection + kAccept + "\r\n", bad},
      {"4.1", "UpgradeDoesNotCareForCase",
       kStatus + "uPGRADE: WebSocket\r\n" + kConnection + kAccept + "\r\n"},
      {"4.1", "NoConnection", kStatus + kUpgrade + kAccept + "\r\n", bad},
      {"4.1", "AnotherConnection",
       kStatus + kUpgrade + "Connection: keep-alive\r\n" + kAccept + "\r\n", bad},
      {"4.1", "AConnectionOfSeveralTokens",
       kStatus + kUpgrade + "Connection: keep-alive, uPGRADE\r\n" + kAccept + "\r\n"},
      {"4.1", "NoAccept", kStatus + kUpgrade + kConnection + "\r\n", bad},
      {"4.1", "AcceptWithSpaceAroundIt",
       kStatus + kUpgrade + kConnection + "Sec-WebSocket-Accept: \t ACCEPT \t\r\n\r\n"},
      {"4.1", "AnAcceptAndMore",
       kStatus + kUpgrade + kConnection + "Sec-WebSocket-Accept: ACCEPT, ACCEPT\r\n\r\n", bad},
      {"11.3.3", "TwoAccepts", kSwitch + kAccept + "\r\n", bad},
      {"11.3.3", "ASecondAcceptThatIsWrong",
       kSwitch + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", bad},
      // RFC 9110, 15.2: what comes before it is none.
      {"9110 15.2", "HintsBeforeIt", kHints + kSwitch + "\r\n"},
      {"9110 15.2", "AContinueBeforeIt", "HTTP/1.1 100 Continue\r\n\r\n" + kSwitch + "\r\n"},
      {"9110 15.2", "OneThatNobodyKnows", "HTTP/1.1 199 What\r\n\r\n" + kSwitch + "\r\n"},
      {"9110 15.2", "HintsBeforeARefusal",
       kHints + "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", refused},
      {"9110 15.2", "AsManyAsThereMayBe", repeated(kHints, most) + kSwitch + "\r\n"},
      {"9110 15.2", "OneMore", repeated(kHints, most + 1) + kSwitch + "\r\n", bad},
      // The fields of one are not those of the other.
      {"9110 15.2", "AnAcceptInTheHintsOnly",
       "HTTP/1.1 103 Early Hints\r\n" + kAccept + "\r\n" + kStatus + kUpgrade + kConnection +
           "\r\n",
       bad},
      // Extensions: the grammar.
      {"9.1", "AnExtension", with_extensions("permessage-deflate; server_max_window_bits=12")},
      {"9.1", "WithSpace", with_extensions("permessage-deflate ;\tserver_max_window_bits = 12 ")},
      {"9.1", "Quoted", with_extensions("permessage-deflate; server_max_window_bits=\"12\"")},
      {"9.1", "EmptyElements",
       with_extensions(", permessage-deflate; server_max_window_bits=12 ,,")},
      {"9.1", "NoElement", with_extensions(""), bad},
      {"9.1", "OnlyCommas", with_extensions(", ,"), bad},
      {"9.1", "NoNameOfAParameter",
       with_extensions("permessage-deflate; server_max_window_bits=12;"), bad},
      {"9.1", "AParameterThatIsEmpty",
       with_extensions("permessage-deflate;; server_max_window_bits=12"), bad},
      {"9.1", "NoValue", with_extensions("permessage-deflate; server_max_window_bits="), bad},
      {"9.1", "ParametersOfNothing", with_extensions("; server_max_window_bits=12"), bad},
      {"9.1", "AnOpenQuote", with_extensions("permessage-deflate; server_max_window_bits=\"12"),
       bad},
  };
}

struct Rfc6455ClientHandshake : ::testing::TestWithParam<AnswerCase> {
  // Sends the first `at` bytes, and when the client has come to rest, the others.
  [[nodiscard]] static std::error_code error_of(const AnswerCase& c, std::size_t at) {
    Result<ws::Close> end = std::unexpected(std::error_code());
    ws::ClientOptions options;
    options.deflate.emplace();
    VirtualLoop loop;
    auto both = [&]() -> Task<void> {
      auto [near, far] = net::memory_streams();
      net::MemoryStream mine = std::move(near);
      net::MemoryStream theirs = std::move(far);
      auto serve = [&]() -> Task<void> {
        std::string accept = co_await read_request(theirs);
        std::string head = c.head;
        for (std::size_t i = head.find("ACCEPT"); i != head.npos; i = head.find("ACCEPT")) {
          head.replace(i, 6, accept);
        }
        std::string first = head.substr(0, at), second = head.substr(first.size()) + kBye;
        Result<void> sent = co_await net::write_all(theirs, first);
        co_await sleep_for(std::chrono::milliseconds(1));
        sent = co_await net::write_all(theirs, second);
        co_await test::read_to_end(theirs);
      };
      auto ask = [&]() -> Task<void> {
        ws::ClientTalk listen = [](ws::Connection& socket) -> Task<void> {
          Result<ws::Message> message = co_await socket.receive();
        };
        Task<Result<ws::Close>> talking =
            ws::connect(std::move(mine), "example.org", "/", listen, options);
        end = co_await std::move(talking);
      };
      co_await all_of(serve(), ask());
    };
    run(loop, both());
    if (end) {
      EXPECT_EQ(end->code, 1000);
    }
    return end ? std::error_code() : end.error();
  }
};

TEST_P(Rfc6455ClientHandshake, IsTakenOrFailsHoweverItIsTorn) {
  const AnswerCase& c = GetParam();
  const std::size_t longest = c.head.size() + 2 * accept_for("").size();  // ACCEPT is there twice
  for (std::size_t at = 0; at <= longest; ++at) {
    EXPECT_EQ(error_of(c, at), c.error) << "torn at " << at;
  }
}
INSTANTIATE_TEST_SUITE_P(All, Rfc6455ClientHandshake, ::testing::ValuesIn(answer_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
