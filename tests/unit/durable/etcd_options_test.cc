// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "durable/etcd/etcd_options.h"
#include "durable/etcd/etcd_store.h"

namespace weft::durable {
namespace {

std::string why(std::string_view url) {
  LockResult<EtcdOptions> options = parse_etcd_url(url);
  if (options) return "";
  EXPECT_EQ(options.error().kind(), LockError::invalid);
  EXPECT_TRUE(std::string(options.error().what()).contains("etcd://[user:password@]host:port"))
      << "it does not say what to do";
  EXPECT_FALSE(make_etcd_store(url));
  return options.error().what();
}

TEST(EtcdOptions, AUrlNamesMembersAndAPrefix) {
  EtcdOptions options =
      or_throw(parse_etcd_url("etcd://127.0.0.1:23790,example.org,[::1]:5/some/where/"));
  ASSERT_EQ(options.endpoints.size(), 3u);
  EXPECT_EQ(options.endpoints[0].authority(), "127.0.0.1:23790");
  EXPECT_EQ(options.endpoints[1].authority(), "example.org:2379");
  EXPECT_EQ(options.endpoints[2].authority(), "[::1]:5");
  EXPECT_EQ(options.endpoints[0].scheme, http::Scheme::http);
  EXPECT_EQ(options.prefix, "some/where");
  EXPECT_EQ(options.url(), "etcd://127.0.0.1:23790,example.org:2379,[::1]:5/some/where");
}

TEST(EtcdOptions, WithoutAPrefixItIsWeft) {
  EXPECT_EQ(or_throw(parse_etcd_url("etcd://a:1")).prefix, "weft");
  EXPECT_EQ(or_throw(parse_etcd_url("etcd://a:1/")).prefix, "weft");
  EXPECT_EQ(or_throw(parse_etcd_url("etcd://[::1]")).endpoints[0].port, 2379);
}

TEST(EtcdOptions, UserAndPasswordAreDecodedAndNotShown) {
  EtcdOptions options = or_throw(parse_etcd_url("etcds://me%40here:p%2Fw%3A@a:1/p%20q"));
  EXPECT_EQ(options.user, "me@here");
  EXPECT_EQ(options.password, "p/w:");
  EXPECT_EQ(options.prefix, "p q");
  EXPECT_EQ(options.endpoints[0].scheme, http::Scheme::https);
  EXPECT_EQ(options.url(), "etcds://me%40here:…@a:1/p q");
}

TEST(EtcdOptions, OptionsFollowAQuestionMark) {
  EtcdOptions options =
      or_throw(parse_etcd_url("etcds://a:1,b:2/p?timeout=1500ms&ca=/etc/a%20b.pem&cert=/c&key=/k"));
  EXPECT_EQ(options.endpoints.size(), 2u);
  EXPECT_EQ(options.prefix, "p");
  EXPECT_EQ(options.call_timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(options.attempt_timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(options.ca_path, "/etc/a b.pem");
  EXPECT_EQ(options.certificate_path, "/c");
  EXPECT_EQ(options.key_path, "/k");
  EXPECT_EQ(options.url(), "etcds://a:1,b:2/p");
  EXPECT_EQ(or_throw(parse_etcd_url("etcd://a:1?timeout=2m")).prefix, "weft");
  EXPECT_EQ(make_etcd_store("etcds://a:1?ca=/no/such/file").error().kind(), LockError::invalid);
}

TEST(EtcdOptions, WhatIsWrongSaysWhatToDo) {
  EXPECT_TRUE(why("http://a:1").contains("no etcd URL"));
  EXPECT_TRUE(why("").contains("no etcd URL"));
  EXPECT_TRUE(why("etcd://").contains("a host is missing"));
  EXPECT_TRUE(why("etcd:///prefix").contains("a host is missing"));
  EXPECT_TRUE(why("etcd://a:1,,b:2").contains("a host is missing"));
  EXPECT_TRUE(why("etcd://a:1,").contains("a host is missing"));
  EXPECT_TRUE(why("etcd://a:port").contains("\"a:port\""));
  EXPECT_TRUE(why("etcd://a:70000").contains("\"a:70000\""));
  EXPECT_TRUE(why("etcd://a b:1").contains("\"a b:1\""));
  EXPECT_TRUE(why("etcd://a:1?x").contains("unknown option \"x\""));
  EXPECT_TRUE(why("etcd://a:1/p?timeout=3").contains("100ms to 10m"));
  EXPECT_TRUE(why("etcd://a:1/p?timeout=99999999999s").contains("100ms to 10m"));
  EXPECT_TRUE(why("etcd://a:1/p?ca=/a").contains("for etcds://"));
  EXPECT_TRUE(why("etcds://a:1/p?cert=/a").contains("without its key"));
  EXPECT_TRUE(why("etcds://a:1/p?ca=&key=%zz").contains("names no file"));
  EXPECT_TRUE(why("etcds://a:1/p?key=%zz").contains("%-escape"));
  EXPECT_TRUE(why("etcd://a:1/p#q").contains("'#'"));
  EXPECT_TRUE(why("etcd://user@a:1").contains("without a password"));
  EXPECT_TRUE(why("etcd://:pw@a:1").contains("without a user"));
  EXPECT_TRUE(why("etcd://u:@a:1").contains("is empty"));
  EXPECT_TRUE(why("etcd://u:%zz@a:1").contains("%-escape"));
  EXPECT_TRUE(why("etcd://a:1/%4").contains("%-escape"));
  EXPECT_TRUE(why("etcd://a:1/" + std::string(300, 'p')).contains("longer than"));
  std::string many = "etcd://a:1";
  for (int i = 0; i < 40; ++i) many += ",a:1";
  EXPECT_TRUE(why(many).contains("too many"));
}

TEST(EtcdOptions, MakingAStoreOpensNothing) {
  LockResult<std::unique_ptr<LockStore>> store = make_etcd_store("etcd://127.0.0.1:1/x");
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->url(), "etcd://127.0.0.1:1/x");
}

}  // namespace
}  // namespace weft::durable
