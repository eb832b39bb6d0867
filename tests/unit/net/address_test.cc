// SPDX-License-Identifier: MIT
#include "weft/net/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace {

using weft::net::Address;

TEST(NetAddress, ReadsAndWritesBothFamilies) {
  for (const char* text :
       {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:8080", "[::]:0",
        "[2001:db8::1]:443", "[fe80::1%3]:22", "[::ffff:192.0.2.1]:1"}) {
    auto address = Address::parse(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(address->to_string(), text);
  }
}

TEST(NetAddress, RefusesWhatIsNone) {
  for (const char* text :
       {"",
        ":",
        ":80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1: 80",
        "127.0.0.1:80 ",
        "127.0.0.1:http",
        "127.0.0:80",
        "127.0.0.1.1:80",
        "01.2.3.400:1",
        "localhost:80",
        "::1:80",
        "[::1]",
        "[::1]80",
        "[::1:80",
        "::1]:80",
        "[127.0.0.1]:80",
        "[]:80",
        "[::1%]:80",
        "[::1%eth0]:80",
        "127.0.0.1%1:80",
        "[:::1]:80",
        "[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd]:1"}) {
    auto address = Address::parse(text);
    EXPECT_FALSE(address.has_value()) << text << " was read as " << address->to_string();
    if (!address) {
      EXPECT_EQ(address.error(), std::errc::invalid_argument) << text;
    }
  }
  EXPECT_FALSE(Address::parse(std::string_view("127.0.0.1\0:80", 13)).has_value());
}

TEST(NetAddress, KnowsItsParts) {
  Address v4 = Address::loopback_v4(80), v6 = Address::loopback_v6(443);
  EXPECT_TRUE(v4.is_v4() && !v4.is_v6() && v4.is_loopback());
  EXPECT_TRUE(v6.is_v6() && !v6.is_v4() && v6.is_loopback());
  EXPECT_FALSE(Address::any_v4(1).is_loopback());
  EXPECT_FALSE(Address::any_v6(1).is_loopback());
  EXPECT_TRUE(Address::parse("127.255.0.9:1")->is_loopback());
  EXPECT_EQ(v4.port(), 80);
  EXPECT_EQ(v6.with_port(1).to_string(), "[::1]:1");
  EXPECT_EQ(v6.host(), "::1");
  EXPECT_EQ(Address().to_string(), "0.0.0.0:0");
}

TEST(NetAddress, ComesBackFromTheKernelAsItWent) {
  for (Address address : {Address::loopback_v4(7), *Address::parse("[fe80::1%3]:22")}) {
    auto again = Address::from(address.native(), address.native_size());
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, address);
    EXPECT_FALSE(Address::from(address.native(), address.native_size() - 1).has_value());
  }
  sockaddr none{};
  none.sa_family = AF_UNIX;
  EXPECT_EQ(Address::from(none, sizeof none).error(), std::errc::address_family_not_supported);
}

TEST(NetAddress, HasAnOrderInWhichNothingIsTwice) {
  std::set<Address> all;
  for (const char* text : {"1.2.3.4:1", "1.2.3.4:2", "1.2.3.5:1", "[::1]:1", "[::1]:2", "[::2]:1",
                           "[fe80::1%1]:1", "[fe80::1%2]:1"}) {
    EXPECT_TRUE(all.insert(*Address::parse(text)).second) << text;
    EXPECT_FALSE(all.insert(*Address::parse(text)).second) << text;
  }
  EXPECT_EQ(all.size(), 8u);
}

}  // namespace
