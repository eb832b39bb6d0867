// SPDX-License-Identifier: MIT
// RFC 6455 and RFC 7692 byte by byte: what a server must take, and what it must not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/ws_fixture.h"

namespace {

using namespace weft;
using test::close_frame;
using test::close_payload;
using test::control_frame;
using test::Frame;
using test::FrameTalk;
using test::text_frame;
using test::to_bytes;
using test::transcript;

struct Case {
  const char* section;  // of RFC 6455, unless it says otherwise
  std::string name;
  std::string bytes;
  std::string answer;  // as transcript(). "…": whatever of the messages before it has left
  bool deflate = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.section << " " << c.name;
}

constexpr std::size_t kMessageBytesMax = 1000;

Frame data(int opcode, std::string payload, bool fin = true, int rsv = 0) {
  Frame frame;
  frame.opcode = opcode;
  frame.payload = std::move(payload);
  frame.fin = fin;
  frame.rsv = rsv;
  return frame;
}
std::string bytes_of(int opcode, std::string payload, bool fin = true, int rsv = 0) {
  return to_bytes(data(opcode, std::move(payload), fin, rsv));
}
std::string with_length(std::string payload, int length_bytes) {
  Frame frame = data(1, std::move(payload));
  frame.length_bytes = length_bytes;
  return to_bytes(frame);
}
std::string unmasked(int opcode, std::string payload) {
  Frame frame = data(opcode, std::move(payload));
  frame.masked = false;
  return to_bytes(frame);
}
// A masked header that promises `length` bytes, and the first of them.
std::string promise(std::uint64_t length) {
  std::string bytes("\x82\xff", 2);
  for (int i = 7; i >= 0; --i) bytes += static_cast<char>(length >> (8 * i));
  return bytes + std::string("\0\0\0\0x", 5);
}

const std::string kBye = close_frame(1000);
const std::string kHello = text_frame("Hello");

std::vector<Case> frame_cases() {
  std::vector<Case> cases = {
      // Masking
      {"5.1", "AMaskedFrameIsTaken", kHello + kBye, "T:Hello C:1000"},
      {"5.1", "AnUnmaskedTextIsRefused", unmasked(1, "Hello") + kBye, "C:1002"},
      {"5.1", "AnUnmaskedPingIsRefused", unmasked(9, "") + kBye, "C:1002"},
      {"5.1", "AnUnmaskedCloseIsRefused", unmasked(8, close_payload(1000)), "C:1002"},
      {"5.1", "AnUnmaskedContinuationIsRefused", bytes_of(1, "a", false) + unmasked(0, "b") + kBye,
       "C:1002"},
      // Base framing
      {"5.2", "Rsv1WithoutAnExtension", bytes_of(1, "a", true, 4) + kBye, "C:1002"},
      {"5.2", "Rsv2", bytes_of(1, "a", true, 2) + kBye, "C:1002"},
      {"5.2", "Rsv3", bytes_of(1, "a", true, 1) + kBye, "C:1002"},
      {"5.2", "RsvOfAControlFrame", bytes_of(9, "a", true, 1) + kBye, "C:1002"},
      {"5.2", "Rsv1OfAClose", bytes_of(8, close_payload(1000), true, 4), "C:1002"},
      {"5.2", "AnEmptyText", text_frame("") + kBye, "T: C:1000"},
      {"5.2", "AnEmptyBinary", bytes_of(2, "") + kBye, "B: C:1000"},
      {"5.2", "Of125Bytes", text_frame(std::string(125, 'x')) + kBye,
       "T:" + std::string(125, 'x') + " C:1000"},
      {"5.2", "Of126Bytes", text_frame(std::string(126, 'x')) + kBye,
       "T:" + std::string(126, 'x') + " C:1000"},
      {"5.2", "SixteenBitsThatAreNotNeeded", with_length(std::string(125, 'x'), 2) + kBye,
       "C:1002"},
      {"5.2", "SixtyFourBitsThatAreNotNeeded", with_length(std::string(300, 'x'), 8) + kBye,
       "C:1002"},
      {"5.2", "TheHighestBitOfTheLength", promise(std::uint64_t{1} << 63), "C:1002"},
      // Fragmentation
      {"5.4", "TwoFragments", bytes_of(1, "Hel", false) + bytes_of(0, "lo") + kBye,
       "T:Hello C:1000"},
      {"5.4", "ManyFragments",
       bytes_of(2, "a", false) + bytes_of(0, "b", false) + bytes_of(0, "c", false) +
           bytes_of(0, "d") + kBye,
       "B:abcd C:1000"},
      {"5.4", "EmptyFragments",
       bytes_of(1, "", false) + bytes_of(0, "", false) + bytes_of(0, "") + kBye, "T: C:1000"},
      {"5.4", "AnEmptyLastFragment", bytes_of(1, "a", false) + bytes_of(0, "") + kBye,
       "T:a C:1000"},
      {"5.4", "APingBetweenFragments",
       bytes_of(1, "Hel", false) + control_frame(9, "p") + bytes_of(0, "lo") + kBye,
       "T:Hello P:p C:1000"},
      {"5.4", "APongBetweenFragments",
       bytes_of(1, "Hel", false) + control_frame(10, "p") + bytes_of(0, "lo") + kBye,
       "T:Hello C:1000"},
      {"5.4", "ACloseBetweenFragments", bytes_of(1, "Hel", false) + kBye + bytes_of(0, "lo"),
       "C:1000"},
      {"5.4", "AContinuationOfNothing", bytes_of(0, "a") + kBye, "C:1002"},
      {"5.4", "AContinuationOfNothingThatGoesOn", bytes_of(0, "a", false) + kBye, "C:1002"},
      {"5.4", "AContinuationAfterTheLast",
       bytes_of(1, "a", false) + bytes_of(0, "b") + bytes_of(0, "c") + kBye, "…C:1002"},
      {"5.4", "AMessageWithinAnother", bytes_of(1, "a", false) + bytes_of(1, "b") + kBye, "C:1002"},
      {"5.4", "AnotherKindWithinAMessage", bytes_of(1, "a", false) + bytes_of(2, "b") + kBye,
       "C:1002"},
      {"5.4", "ATornControlFrame", bytes_of(9, "a", false) + bytes_of(0, "b") + kBye, "C:1002"},
      {"5.4", "ATornClose", bytes_of(8, close_payload(1000), false), "C:1002"},
      // Control frames
      {"5.5", "AControlFrameOf125Bytes", control_frame(9, std::string(125, 'p')) + kBye,
       "P:" + std::string(125, 'p') + " C:1000"},
      {"5.5", "AControlFrameOf126Bytes", control_frame(9, std::string(126, 'p')) + kBye, "C:1002"},
      {"5.5", "ACloseOf126Bytes", close_frame(1000, std::string(124, 'r')), "C:1002"},
      {"5.5.1", "ACloseWithoutACode", control_frame(8, ""), "C:"},
      {"5.5.1", "ACloseOfOneByte", control_frame(8, "x"), "C:1002"},
      {"5.5.1", "ACloseOfHalfACode", control_frame(8, "\x0f"), "C:1002"},
      {"5.5.1", "ACloseWithAReason", close_frame(1001, "going"), "C:1001"},
      {"5.5.1", "ACloseWithTheLongestReason", close_frame(1000, std::string(123, 'r')), "C:1000"},
      {"5.5.1", "WhatComesBehindACloseIsDropped", kHello + kBye + kHello, "T:Hello C:1000"},
      {"5.5.1", "ASecondCloseIsDropped", kBye + close_frame(1001), "C:1000"},
      {"5.5.2", "APingIsAnswered", control_frame(9, "") + kBye, "P: C:1000"},
      {"5.5.3", "WithTheSameData", control_frame(9, std::string("a\0\xff", 3)) + kBye,
       "P:" + std::string("a\0\xff", 3) + " C:1000"},
      {"5.5.3", "APongThatNobodyAskedForIsIgnored", control_frame(10, "x") + kHello + kBye,
       "T:Hello C:1000"},
      // Text
      {"5.6", "BinaryIsNotText", bytes_of(2, "\xff\xfe") + kBye, "B:\xff\xfe C:1000"},
      {"8.1", "ACharacterTornBetweenFragments",
       bytes_of(1, "\xf0\x9f", false) + bytes_of(0, "\x98\x80") + kBye,
       "T:\xf0\x9f\x98\x80 C:1000"},
      {"8.1", "ACharacterTornByAPing",
       bytes_of(1, "\xe2\x82", false) + control_frame(9, "") + bytes_of(0, "\xac") + kBye,
       "T:\xe2\x82\xac P: C:1000"},
      {"8.1", "ATextThatEndsWithinACharacter", text_frame("a\xe2\x82") + kBye, "C:1007"},
      {"8.1", "AnEndWithinACharacterInTheLastFragment",
       bytes_of(1, "\xe2", false) + bytes_of(0, "\x82") + kBye, "C:1007"},
      // Nothing behind the first fragment is waited for.
      {"8.1", "FailsAtTheFirstBadByte", bytes_of(1, "a\xff", false), "C:1007"},
      {"8.1", "FailsAtTheFirstByteThatCannotFollow", bytes_of(1, "\xf4\x90", false), "C:1007"},
      {"8.1", "AReasonThatIsNoText", close_frame(1000, "\xc0\xaf"), "C:1007"},
      {"8.1", "AReasonThatEndsWithinACharacter", close_frame(1000, "\xe2\x82"), "C:1007"},
      {"8.1", "AReasonInUtf8", close_frame(1000, "\xe2\x82\xac"), "C:1000"},
      // Limits
      {"10.4", "AMessageAsLargeAsItMayBe", text_frame(std::string(kMessageBytesMax, 'x')) + kBye,
       "T:" + std::string(kMessageBytesMax, 'x') + " C:1000"},
      {"10.4", "AMessageThatIsLarger", text_frame(std::string(kMessageBytesMax + 1, 'x')) + kBye,
       "C:1009"},
      {"10.4", "FragmentsThatAreLargerTogether",
       bytes_of(1, std::string(600, 'x'), false) + bytes_of(0, std::string(401, 'x'), false) + kBye,
       "C:1009"},
      {"10.4", "APromiseOfAllThereIs", promise((std::uint64_t{1} << 63) - 1), "C:1009"},
      {"10.4", "APromiseThatOverflowsTogether",
       bytes_of(2, "ab", false) + std::string("\x80", 1) +
           promise((std::uint64_t{1} << 63) - 1).substr(1),
       "C:1009"},
  };
  for (int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    cases.push_back(
        {"5.2", "ReservedOpcode" + std::to_string(opcode), bytes_of(opcode, "") + kBye, "C:1002"});
  }
  cases.push_back({"5.2", "ReservedOpcodeWithinAMessage",
                   bytes_of(1, "a", false) + bytes_of(3, "b") + bytes_of(0, "c") + kBye, "C:1002"});
  for (int code : {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000,
                   3999, 4000, 4999}) {
    cases.push_back({"7.4.1", "CloseCode" + std::to_string(code), close_frame(code),
                     "C:" + std::to_string(code)});
  }
  for (int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}) {
    cases.push_back(
        {"7.4.2", "CloseCodeThatIsNone" + std::to_string(code), close_frame(code), "C:1002"});
  }
  // RFC 3629: the bounds of each length, and what lies just beyond.
  for (std::string good :
       {std::string("\0", 1), std::string("\x7f"), std::string("\xc2\x80"), std::string("\xdf\xbf"),
        std::string("\xe0\xa0\x80"), std::string("\xed\x9f\xbf"), std::string("\xee\x80\x80"),
        std::string("\xef\xbf\xbf"), std::string("\xf0\x90\x80\x80"),
        std::string("\xf4\x8f\xbf\xbf"),
        std::string("12345678\xc3\xa9"
                    "12345678")}) {
    cases.push_back({"8.1", "Utf8Good" + std::to_string(cases.size()), text_frame(good) + kBye,
                     "T:" + good + " C:1000"});
  }
  for (std::string bad :
       {std::string("\x80"), std::string("\xbf"), std::string("\xc0\x80"), std::string("\xc1\xbf"),
        std::string("\xc2\x7f"), std::string("\xc2\xc0"), std::string("\xe0\x9f\xbf"),
        std::string("\xed\xa0\x80"), std::string("\xed\xbf\xbf"), std::string("\xf0\x8f\xbf\xbf"),
        std::string("\xf4\x90\x80\x80"), std::string("\xf5\x80\x80\x80"), std::string("\xfe"),
        std::string("\xff"), std::string("\xe2\x28\xa1"),
        std::string("12345678\xff"
                    "12345678"),
        std::string("12345678abc\x80")}) {
    cases.push_back(
        {"8.1", "Utf8Bad" + std::to_string(cases.size()), text_frame(bad) + kBye, "C:1007"});
  }
  return cases;
}

std::string hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// RFC 7692: the examples of 7.2.3, masked. Answers are shorter than bytes_min, and not compressed.
std::vector<Case> deflate_cases() {
  std::string hello = hex("f248cdc9c90700");
  std::vector<Case> cases = {
      {"7692 6", "AMessageThatIsNotCompressed", kHello + kBye, "T:Hello C:1000"},
      {"7692 6", "Rsv1OfAContinuation",
       bytes_of(1, hello.substr(0, 3), false, 4) + bytes_of(0, hello.substr(3), true, 4) + kBye,
       "C:1002"},
      {"7692 6", "Rsv1OfAContinuationOnly",
       bytes_of(1, "a", false) + bytes_of(0, "b", true, 4) + kBye, "C:1002"},
      {"7692 6", "Rsv1OfAPing", bytes_of(9, "", true, 4) + kBye, "C:1002"},
      {"7692 6", "Rsv2StaysReserved", bytes_of(1, hello, true, 6) + kBye, "C:1002"},
      {"7692 7.2.3.1", "OneBlock", bytes_of(1, hello, true, 4) + kBye, "T:Hello C:1000"},
      {"7692 7.2.3.1", "OneBlockInFragments",
       bytes_of(1, hello.substr(0, 3), false, 4) + bytes_of(0, hello.substr(3)) + kBye,
       "T:Hello C:1000"},
      {"7692 7.2.3.2", "TheWindowIsShared",
       bytes_of(1, hello, true, 4) + bytes_of(1, hex("f200110000"), true, 4) + kBye,
       "T:Hello T:Hello C:1000"},
      {"7692 7.2.3.2", "AMessageBetweenDoesNotDisturbIt",
       bytes_of(1, hello, true, 4) + text_frame("plain") + bytes_of(1, hex("f200110000"), true, 4) +
           kBye,
       "T:Hello T:plain T:Hello C:1000"},
      {"7692 7.2.3.3", "ABlockThatIsNotCompressed",
       bytes_of(1, hex("000500faff48656c6c6f00"), true, 4) + kBye, "T:Hello C:1000"},
      {"7692 7.2.3.4", "ABlockThatSaysItIsTheLast",
       bytes_of(1, hex("f348cdc9c9070000"), true, 4) + kBye, "T:Hello C:1000"},
      {"7692 7.2.3.4", "AndAnotherMessageBehindIt",
       bytes_of(1, hex("f348cdc9c9070000"), true, 4) + bytes_of(1, hello, true, 4) + kBye,
       "T:Hello T:Hello C:1000"},
      {"7692 7.2.3.5", "TwoBlocks", bytes_of(1, hex("f24805000000ffffcac9c90700"), true, 4) + kBye,
       "T:Hello C:1000"},
      {"7692 7.2.3.6", "AnEmptyMessage", bytes_of(1, hex("00"), true, 4) + kBye, "T: C:1000"},
      {"7692 7.2.2", "WhatDoesNotInflate", bytes_of(1, hex("ffffff"), true, 4) + kBye, "C:1007"},
      {"7692 7.2.2", "WhatIsNotWhole", bytes_of(1, hello.substr(0, 4), true, 4) + kBye, "C:1007"},
      {"7692 7.2.2", "NothingAtAll", bytes_of(1, "", true, 4) + kBye, "C:1007"},
      // A block that is not compressed, of one byte.
      {"8.1", "InflatedTextThatIsNone", bytes_of(1, hex("000100feffff00"), true, 4) + kBye,
       "C:1007"},
      {"8.1", "InflatedTextThatEndsWithinACharacter",
       bytes_of(1, hex("000100feffe200"), true, 4) + kBye, "C:1007"},
      {"8.1", "InflatedBinaryIsNotText", bytes_of(2, hex("000100feffff00"), true, 4) + kBye,
       "B:\xff C:1000"},
      // 1001 times 'x'.
      // At the first byte too many: before the rule is broken that comes behind it.
      {"10.4", "WhatInflatesToMoreBeforeItsEnd",
       bytes_of(2, hex("aaa81805a360140c7b0000"), false, 4) + kHello + kBye, "C:1009"},
      {"10.4", "WhatInflatesToMore", bytes_of(2, hex("aaa81805a360140c7b0000"), true, 4) + kBye,
       "C:1009"},
  };
  for (Case& c : cases) c.deflate = true;
  return cases;
}

struct Rfc6455 : ::testing::TestWithParam<Case> {
  [[nodiscard]] static std::string answer(const Case& c, net::MemoryStreamOptions wire = {}) {
    return written(c, talk_of(c, wire)(c.bytes));
  }
  // The same, torn in two behind `at` bytes of the frames.
  [[nodiscard]] static std::string torn_answer(const Case& c, std::size_t at) {
    FrameTalk talk = talk_of(c, {});
    return written(c, talk.torn(c.bytes, test::handshake(talk.fields).size() + at));
  }

 private:
  static FrameTalk talk_of(const Case& c, net::MemoryStreamOptions wire) {
    FrameTalk talk;
    talk.options.limits.message_bytes_max = kMessageBytesMax;
    if (c.deflate) {
      talk.options.deflate.emplace();
      talk.fields = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    }
    talk.wire = wire;
    return talk;
  }
  static std::string written(const Case& c, std::string_view bytes) {
    std::string said = transcript(bytes);
    if (!c.answer.starts_with("…")) return said;
    return "…" + said.substr(std::min(said.size(), said.find("C:")));
  }
};

TEST_P(Rfc6455, IsAnsweredAsItSays) { EXPECT_EQ(answer(GetParam()), GetParam().answer); }

TEST_P(Rfc6455, IsTheSameByteByByte) {
  net::MemoryStreamOptions wire;
  wire.read_bytes_max = 1;
  EXPECT_EQ(answer(GetParam(), wire), GetParam().answer);
  wire.write_bytes_max = 1;
  wire.bytes_max = 3;
  EXPECT_EQ(answer(GetParam(), wire), GetParam().answer);
}

// In two, at every byte of the frames: the second part comes when the first has been dealt with.
TEST_P(Rfc6455, IsTheSameHoweverItIsTorn) {
  const Case& c = GetParam();
  for (std::size_t at = 0; at <= c.bytes.size(); ++at) {
    EXPECT_EQ(torn_answer(c, at), c.answer) << "torn at " << at;
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name + "_";
  for (char c : std::string(info.param.section)) name += std::isalnum(c) ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Frames, Rfc6455, ::testing::ValuesIn(frame_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Deflate, Rfc6455, ::testing::ValuesIn(deflate_cases()), name_of);

// The handshake, too: what was read ahead of the frames is theirs.
TEST(WebSocketTorn, WithinTheHandshake) {
  FrameTalk talk;
  std::size_t head = test::handshake().size();
  for (std::size_t at = 0; at <= head; ++at) {
    EXPECT_EQ(transcript(talk.torn(kHello + kBye, at)), "T:Hello C:1000") << "torn at " << at;
  }
}

}  // namespace
