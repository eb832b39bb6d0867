// SPDX-License-Identifier: MIT
#include "weft/http/url.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace weft;
using namespace weft::http;

TEST(Url, HasItsParts) {
  Url url = or_throw(Url::parse("http://Example.ORG:8080/a/b%20c?d=e&f=g#h"));
  EXPECT_EQ(url.scheme(), Scheme::http);
  EXPECT_EQ(url.host(), "example.org");
  EXPECT_EQ(url.port(), 8080);
  EXPECT_EQ(url.target(), "/a/b%20c?d=e&f=g");
  EXPECT_EQ(url.path(), "/a/b%20c");
  EXPECT_EQ(url.query(), "d=e&f=g");
  EXPECT_EQ(url.authority(), "example.org:8080");
  EXPECT_EQ(url.to_string(), "http://example.org:8080/a/b%20c?d=e&f=g");
}

TEST(Url, IsWrittenInOneWay) {
  std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"http://a", "http://a/"},
      {"HTTP://A/", "http://a/"},
      {"https://a", "https://a/"},
      {"http://a:80/", "http://a/"},
      {"https://a:443/", "https://a/"},
      {"http://a:443/", "http://a:443/"},
      {"http://a:/", "http://a/"},
      {"http://a:0080/", "http://a/"},
      {"http://a?b", "http://a/?b"},
      {"http://a?b?c", "http://a/?b?c"},
      {"http://a#b", "http://a/"},
      {"http://a/?", "http://a/?"},
      {"http://a//b", "http://a//b"},
      {"http://a/./b/../c", "http://a/c"},
      {"http://a/..", "http://a/"},
      {"http://a/../../b", "http://a/b"},
      {"http://a/b/.", "http://a/b/"},
      {"http://a/b/..", "http://a/"},
      {"http://a/b?../c", "http://a/b?../c"},
      {"http://a/.../b", "http://a/.../b"},
      {"http://127.0.0.1:1/", "http://127.0.0.1:1/"},
      {"http://[::1]/", "http://[::1]/"},
      {"http://[::1]:81/x", "http://[::1]:81/x"},
      {"http://[2001:DB8:0:0::1]/", "http://[2001:db8::1]/"},
      {"http://a/!$&'()*+,;=:@-._~/", "http://a/!$&'()*+,;=:@-._~/"},
  };
  for (auto [given, written] : cases) {
    Result<Url, UrlError> url = Url::parse(given);
    ASSERT_TRUE(url) << given << ": " << url.error().what();
    EXPECT_EQ(url->to_string(), written) << given;
    EXPECT_EQ(or_throw(Url::parse(url->to_string())), *url) << "it is written as it is read";
  }
  EXPECT_EQ(or_throw(Url::parse("http://[::1]/")).host(), "::1") << "as an Address has it";
}

TEST(Url, SaysWhereItGoesWrong) {
  std::vector<std::pair<std::string, std::size_t>> cases = {
      {"", 0},
      {"a", 0},
      {"/a", 0},
      {"ftp://a/", 0},
      {"httpx://a/", 0},
      {" http://a/", 0},
      {"http", 4},
      {"http:", 5},
      {"http:/a", 5},
      {"http:a", 5},
      {"http://", 7},
      {"http:///a", 7},
      {"http://:80/", 7},
      {"http://?a", 7},
      {"http://me@a/", 9},
      {"http://me:secret@a/", 16},
      {"http://a b/", 8},
      {"http://a%41/", 8},
      {"http://\xc3\xa4/", 7},
      {"http://a\\b/", 8},
      {"http://a:x/", 9},
      {"http://a:0/", 9},
      {"http://a:65536/", 9},
      {"http://a:-1/", 9},
      {"http://a:+1/", 9},
      {"http://a:1 /", 9},
      {"http://a:99999999999/", 9},
      {"http://[::1/", 11},
      {"http://[]/", 8},
      {"http://[1.2.3.4]/", 8},
      {"http://[::1%25eth0]/", 8},
      {"http://[::1%2]/", 8},
      {"http://[v1.a]/", 8},
      {"http://[::1]a/", 12},
      {"http://./", 7},
      {"http://.a/", 7},
      {"http://a..b/", 7},
      {"http://" + std::string(254, 'a') + "/", 7},
      {"http://a/b c", 10},
      {"http://a/b\r\nHost: c", 10},
      {std::string("http://a/\0b", 11), 9},
      {"http://a/\x7f", 9},
      {"http://a/\xc3\xa4", 9},
      {"http://a/\"", 9},
      {"http://a/<", 9},
      {"http://a/{b}", 9},
      {"http://a/b\\c", 10},
      {"http://a/b|c", 10},
      {"http://a/b^c", 10},
      {"http://a/`", 9},
      {"http://a/[", 9},
      {"http://a/%", 9},
      {"http://a/%2", 9},
      {"http://a/%2g", 9},
      {"http://a/%%20", 9},
      {"http://a/?b c", 11},
      {"http://a/%4#1", 9},
      {"http://a/#b c", 11},
      {"http://a/##", 10},
      {"http://a/" + std::string(Url::kBytesMax, 'x'), Url::kBytesMax},
  };
  for (const auto& [text, at] : cases) {
    Result<Url, UrlError> url = Url::parse(text);
    ASSERT_FALSE(url) << text << " was read as " << url->to_string();
    EXPECT_EQ(url.error().at(), at) << text << ": " << url.error().what();
  }
  EXPECT_EQ(
      std::string(Url::parse("http://a/b c").error().what()),
      "no URL: a character that must be written as a %-escape, at byte 10, in \"http://a/b c\"");
  EXPECT_THROW(or_throw(Url::parse("http://a/b c")), UrlError);
}

TEST(Url, AnErrorHasNothingThatATerminalObeys) {
  std::string what = Url::parse("http://a/\x1b[31m\n").error().what();
  EXPECT_EQ(what.find('\x1b'), what.npos);
  EXPECT_EQ(what.find('\n'), what.npos);
}

// RFC 3986, 5.4, of the schemes that we know. Its base has a ';' and a query.
TEST(Url, ResolvesAsTheStandardsExamples) {
  Url base = or_throw(Url::parse("http://a/b/c/d;p?q"));
  std::vector<std::pair<std::string_view, std::string_view>> cases = {
      // 5.4.1
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g/"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q"},
      {"g#s", "http://a/b/c/g"},
      {"g?y#s", "http://a/b/c/g?y"},
      {";x", "http://a/b/c/;x"},
      {"g;x", "http://a/b/c/g;x"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../", "http://a/"},
      {"../../g", "http://a/g"},
      // 5.4.2
      {"../../../g", "http://a/g"},
      {"../../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {".g", "http://a/b/c/.g"},
      {"g..", "http://a/b/c/g.."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"./g/.", "http://a/b/c/g/"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
      {"g;x=1/../y", "http://a/b/c/y"},
      {"g?y/./x", "http://a/b/c/g?y/./x"},
      {"g?y/../x", "http://a/b/c/g?y/../x"},
      {"g#s/./x", "http://a/b/c/g"},
      // And our own.
      {"https://x:1/y", "https://x:1/y"},
      {"//x:8080/y", "http://x:8080/y"},
      {"?a:b", "http://a/b/c/d;p?a:b"},
      {"./a:b", "http://a/b/c/a:b"},
  };
  for (auto [reference, means] : cases) {
    Result<Url, UrlError> url = base.resolve(reference);
    ASSERT_TRUE(url) << reference << ": " << url.error().what();
    EXPECT_EQ(url->to_string(), means) << reference;
  }
  for (auto [reference, at] :
       std::vector<std::pair<std::string_view, std::size_t>>{{"g:h", 0},
                                                             {"http:g", 5},
                                                             {"javascript:x", 0},
                                                             {"//me@x/", 4},
                                                             {"a b", 1},
                                                             {"#a b", 2}}) {
    Result<Url, UrlError> url = base.resolve(reference);
    ASSERT_FALSE(url) << reference << " was read as " << url->to_string();
    EXPECT_EQ(url.error().at(), at) << reference << ": " << url.error().what();
  }
}

TEST(Url, TheOriginIsSchemeHostAndPort) {
  auto origin = [](std::string_view text) { return or_throw(Url::parse(text)).origin(); };
  EXPECT_EQ(origin("http://a/b"), origin("http://A:80/c?d"));
  EXPECT_NE(origin("http://a/"), origin("https://a/"));
  EXPECT_NE(origin("http://a/"), origin("http://a:81/"));
  EXPECT_NE(origin("http://a/"), origin("http://b/"));
}

TEST(Url, EncodesWhatAPathCannotHave) {
  EXPECT_EQ(percent_encoded("a b/c?d=ä~"), "a%20b%2Fc%3Fd%3D%C3%A4~");
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_TRUE(Url::parse("http://a/" + percent_encoded(all)));
}

}  // namespace
