// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "durable/etcd/json.h"

namespace weft::durable::etcd {
namespace {

std::string why(std::string_view text) {
  auto read = parse_json(text);
  return read ? "" : std::string(read.error().why) + "@" + std::to_string(read.error().at);
}
std::string read_text(std::string_view json) {
  auto read = parse_json(json);
  return read ? std::string(read->text()) : "(error)";
}

TEST(EtcdJson, ReadsWhatTheGatewayWrites) {
  auto reply = parse_json(
      R"({"header":{"revision":"12","raft_term":2},"succeeded":true,"kvs":[{"key":"YQ=="},{}]})"
      "\n");
  ASSERT_TRUE(reply);
  EXPECT_EQ((*reply)["header"]["revision"].integer(), 12);
  EXPECT_EQ((*reply)["header"]["raft_term"].integer(), 2);
  EXPECT_TRUE((*reply)["succeeded"].is_true());
  EXPECT_EQ((*reply)["kvs"].items().size(), 2u);
  EXPECT_EQ((*reply)["kvs"].items()[0]["key"].text(), "YQ==");
}

TEST(EtcdJson, WhatIsLeftOutIsZero) {
  auto reply = parse_json("{}");
  ASSERT_TRUE(reply);
  EXPECT_EQ((*reply)["a"]["b"].integer(), 0);
  EXPECT_FALSE((*reply)["a"].is_true());
  EXPECT_EQ((*reply)["a"].text(), "");
  EXPECT_TRUE((*reply)["a"].items().empty());
}

TEST(EtcdJson, AnIntegerIsWholeAndFits) {
  auto values =
      parse_json(R"(["9223372036854775807", -3, "9223372036854775808", 1.5, "", "7 ", true])");
  ASSERT_TRUE(values);
  auto items = values->items();
  EXPECT_EQ(items[0].integer(), 9223372036854775807);
  EXPECT_EQ(items[1].integer(), -3);
  for (std::size_t i = 2; i < items.size(); ++i) EXPECT_FALSE(items[i].integer()) << i;
}

TEST(EtcdJson, Escapes) {
  EXPECT_EQ(read_text(R"("a\"\\\/\b\f\n\r\té€😀")"), "a\"\\/\b\f\n\r\té€😀");
  EXPECT_EQ(why(R"("\ud83d")"), "half a surrogate pair@7");
  EXPECT_EQ(why(R"("\ude00")"), "half a surrogate pair@7");
  EXPECT_EQ(why(R"("\ud83dA")"), "half a surrogate pair@7");
  EXPECT_EQ(why(R"("\x")"), "no such escape@2");
  EXPECT_EQ(why(R"("\u12")"), "four digits are missing@3");
}

TEST(EtcdJson, WhatIsNotJsonSaysWhere) {
  EXPECT_EQ(why(""), "no value@0");
  EXPECT_EQ(why("{} x"), "something behind the value@3");
  EXPECT_EQ(why("[1,]"), "no value@3");
  EXPECT_EQ(why(R"({"a":1,})"), "a name is missing@7");
  EXPECT_EQ(why(R"({"a" 1})"), "':' is missing@5");
  EXPECT_EQ(why(R"({"a":1,"a":2})"), "a name comes twice@10");
  EXPECT_EQ(why("[1 2]"), "',' or ']' is missing@3");
  EXPECT_EQ(why(R"({"a":1)"), "',' or '}' is missing@6");
  EXPECT_EQ(why("01"), "something behind the value@1");
  EXPECT_EQ(why("1."), "a digit is missing@2");
  EXPECT_EQ(why("1e"), "a digit is missing@2");
  EXPECT_EQ(why("-"), "no value@1");
  EXPECT_EQ(why("nul"), "no value@0");
  EXPECT_EQ(why("NaN"), "no value@0");
  EXPECT_EQ(why("\"a\nb\""), "a control character@2");
  EXPECT_EQ(why("\"abc"), "'\"' is missing@4");
  EXPECT_EQ(why("// 1"), "no value@0");
}

TEST(EtcdJson, StringsAreUtf8) {
  EXPECT_EQ(read_text("\"\xF4\x8F\xBF\xBF\""), "\xF4\x8F\xBF\xBF");
  for (std::string bad :
       {"\x80", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\xC3"}) {
    EXPECT_EQ(why("\"" + bad + "\""), "not UTF-8@1") << bad;
  }
}

TEST(EtcdJson, DepthIsBounded) {
  const std::string fits = std::string(kJsonDepthMax, '[') + std::string(kJsonDepthMax, ']');
  EXPECT_EQ(why(fits), "");
  EXPECT_EQ(why("[" + fits + "]"), "too deep@" + std::to_string(kJsonDepthMax));
  EXPECT_EQ(why(std::string(1'000'000, '[')), "too deep@" + std::to_string(kJsonDepthMax));
}

TEST(EtcdJson, SizeIsBounded) {
  std::string many;
  for (std::size_t i = 0; i <= kJsonMembersMax; ++i) many += ",\"" + std::to_string(i) + "\":0";
  EXPECT_TRUE(why("{" + many.substr(1) + "}").starts_with("too many names"));
  EXPECT_EQ(why(std::string(kJsonBytesMax, ' ') + "1"), "too long@0");
}

TEST(EtcdJson, EveryCutOfATextIsAnErrorAndNotACrash) {
  const std::string whole = R"({"a":[1.5e3,"é\n",{"b":null}],"c":false})";
  ASSERT_EQ(why(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(why(whole.substr(0, size)), "") << size;
}

TEST(EtcdJson, WhatIsWrittenReadsTheSame) {
  const std::string odd = "a\"\\\x01\x1f\n é 😀";
  JsonWriter json;
  json.begin_object().name("t").text(odd).name("n").integer(-5).name("list").begin_array();
  json.begin_object()
      .end_object()
      .boolean(true)
      .boolean(false)
      .end_array()
      .name("b")
      .bytes("\0\xff")
      .end_object();
  const std::string written = json.take();
  auto read = parse_json(written);
  ASSERT_TRUE(read) << written;
  EXPECT_EQ((*read)["t"].text(), odd);
  EXPECT_EQ((*read)["n"].integer(), -5);
  EXPECT_EQ((*read)["list"].items().size(), 3u);
  EXPECT_TRUE((*read)["list"].items()[1].is_true());
}

TEST(EtcdJson, WhatIsNotUtf8IsWrittenAsTheReplacement) {
  JsonWriter json;
  json.text("a\xFFz");
  EXPECT_EQ(json.take(), "\"a\xEF\xBF\xBDz\"");
}

TEST(EtcdBase64, ThereAndBack) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(base64_decoded(base64_encoded(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(base64_encoded("fooba"), "Zm9vYmE=");  // RFC 4648, section 10
  EXPECT_EQ(base64_encoded("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_encoded("foobar"), "Zm9vYmFy");
}

TEST(EtcdBase64, WhatIsNot) {
  for (std::string_view bad : {"Zg", "Zg=", "Z===", "====", "Zm9=Zm9v", "Zm 9", "Zh==", "Zm9-"}) {
    EXPECT_FALSE(base64_decoded(bad)) << bad;
  }
}

}  // namespace
}  // namespace weft::durable::etcd
