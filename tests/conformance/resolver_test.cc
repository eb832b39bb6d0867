// SPDX-License-Identifier: MIT
// resolve(), and TcpStream::connect() by a name, on every driver.
#include "weft/net/resolver.h"

#include <cstdlib>
#include <fstream>
#include <random>

#include "dead_end.h"
#include "dns_server.h"
#include "driver_fixture.h"
#include "support/temporary_directory.h"
#include "weft/net/connect.h"

namespace {

using namespace weft;
using namespace weft::test;
using net::Address;
using net::ConnectAttempt;
using net::ConnectOptions;
using net::Error;
using net::Family;
using net::resolve;
using net::ResolveOptions;
using net::TcpListener;
using net::TcpStream;
using Addresses = std::vector<Address>;

struct Resolving : DriverTest {
  // Runs body(dns), a coroutine, beside the server.
  template <class Body>
  void with_dns(DnsServer::Behaviour behaviour, Body body) {
    auto both = [&]() -> Task<void> {
      DnsServer dns(std::move(behaviour));
      co_await any_of(dns.run(), body(dns));
    };
    on_loop(loop, both);
  }
};
WEFT_ON_EVERY_DRIVER(Resolving);

ResolveOptions asking(const DnsServer& dns) {
  return {.attempt_timeout = 2s, .servers = {dns.where()}, .search_domains = false};
}
Address at(const char* host, std::uint16_t port = 80) {
  return or_throw(Address::parse_host(host, port));
}
const Addresses kBoth{at("192.0.2.1"), at("192.0.2.2"), at("2001:db8::1")};

DnsAnswer ordinary(const DnsQuestion& question) {
  if (question.name == "both.test") return {.addresses = kBoth};
  if (question.name == "four.test") return {.addresses = {at("192.0.2.1")}};
  return {.code = 3};
}

TEST_P(Resolving, BothFamiliesComeWithThePort) {
  with_dns(ordinary, [](DnsServer& dns) -> Task<void> {
    const ResolveOptions options = asking(dns);
    Result<Addresses> found = co_await resolve("both.test", 80, options);
    Addresses sorted = or_throw(found);
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, kBoth);
    EXPECT_EQ(dns.asked.size(), 2u) << "one question for each family";
    found = co_await resolve("four.test", 80, options);
    EXPECT_EQ(or_throw(found), Addresses{at("192.0.2.1")});
  });
}

TEST_P(Resolving, OnlyTheFamilyThatIsAskedFor) {
  with_dns(ordinary, [](DnsServer& dns) -> Task<void> {
    ResolveOptions options = asking(dns);
    options.family = Family::v6;
    Result<Addresses> found = co_await resolve("both.test", 80, options);
    EXPECT_EQ(or_throw(found), Addresses{at("2001:db8::1")});
    EXPECT_EQ(dns.asked.size(), 1u);
    found = co_await resolve("four.test", 80, options);
    EXPECT_EQ(found.error(), Error::host_not_found);
  });
}

TEST_P(Resolving, AnAddressIsItselfAndNobodyIsAsked) {
  with_dns(ordinary, [](DnsServer& dns) -> Task<void> {
    ResolveOptions options = asking(dns);
    Result<Addresses> found = co_await resolve("2001:db8::1", 7, options);
    EXPECT_EQ(or_throw(found), Addresses{at("2001:db8::1", 7)});
    options.family = Family::v6;
    found = co_await resolve("192.0.2.1", 7, options);
    EXPECT_EQ(found.error(), Error::host_not_found);
    EXPECT_TRUE(dns.asked.empty());
  });
}

TEST_P(Resolving, LocalhostIsThisMachine) {
  with_dns(ordinary, [](DnsServer& dns) -> Task<void> {
    ResolveOptions options = asking(dns);
    Addresses both{Address::loopback_v6(80), Address::loopback_v4(80)};
    for (const char* name : {"localhost", "LocalHost.", "a.b.localhost", "x.LOCALHOST."}) {
      Result<Addresses> found = co_await resolve(name, 80, options);
      EXPECT_EQ(or_throw(found), both) << name;
    }
    options.family = Family::v4;
    Result<Addresses> found = co_await resolve("localhost", 80, options);
    EXPECT_EQ(or_throw(found), Addresses{Address::loopback_v4(80)});
    EXPECT_TRUE(dns.asked.empty());
    for (const char* name : {"notlocalhost", "localhost.test"}) {
      std::size_t before = dns.asked.size();
      found = co_await resolve(name, 80, options);
      EXPECT_GT(dns.asked.size(), before) << name;
    }
  });
}

TEST_P(Resolving, TheHostsFileIsAskedFirst) {
  test::TemporaryDirectory files;
  std::string path = files.write("hosts", "192.0.2.77 known.test\n");
  checked(::setenv("CARES_HOSTS", path.c_str(), 1), "setenv");
  with_dns(ordinary, [](DnsServer& dns) -> Task<void> {
    ResolveOptions options = asking(dns);
    options.family = Family::v4;
    Result<Addresses> found = co_await resolve("known.test", 80, options);
    EXPECT_EQ(or_throw(found), Addresses{at("192.0.2.77")});
    EXPECT_TRUE(dns.asked.empty());
  });
  ::unsetenv("CARES_HOSTS");
}

TEST_P(Resolving, EachFailureHasItsError) {
  auto behaviour = [](const DnsQuestion& question) -> DnsAnswer {
    if (question.name == "broken.test") return {.code = 2};
    if (question.name == "silent.test") return {.silent = true};
    return {.code = 3};
  };
  with_dns(behaviour, [](DnsServer& dns) -> Task<void> {
    ResolveOptions options = asking(dns);
    Result<Addresses> found = co_await resolve("nobody.test", 80, options);
    EXPECT_EQ(found.error(), Error::host_not_found);
    found = co_await resolve("broken.test", 80, options);
    EXPECT_EQ(found.error(), Error::resolver_failed);
    options.attempt_timeout = 10ms;
    options.rounds = 2;
    options.family = Family::v4;
    dns.asked.clear();
    found = co_await resolve("silent.test", 80, options);
    EXPECT_EQ(found.error(), Error::resolver_silent);
    EXPECT_EQ(dns.asked.size(), 2u) << "as often as there are rounds";
    EXPECT_TRUE(found.error().message().contains("/etc/resolv.conf")) << "says what to do";
    for (std::string name :
         {std::string(), std::string("a\0b", 3), std::string(70, 'x') + ".test"}) {
      found = co_await resolve(name, 80, options);
      EXPECT_EQ(found.error(), Error::bad_host_name) << name;
    }
  });
}

TEST_P(Resolving, ItTakesNoLongerThanItMay) {
  auto silent = [](const DnsQuestion&) { return DnsAnswer{.silent = true}; };
  with_dns(silent, [](DnsServer& dns) -> Task<void> {
    ResolveOptions options = asking(dns);
    options.timeout = 20ms;
    Result<Addresses> found = co_await resolve("silent.test", 80, options);
    EXPECT_TRUE(is_error(found, std::errc::timed_out));
    options.timeout = 1h;
    found = co_await within(20ms, resolve("silent.test", 80, options));
    EXPECT_TRUE(is_error(found, std::errc::timed_out));
  });
}

TEST_P(Resolving, ASlowAnswerIsWaitedFor) {
  auto slow = [](const DnsQuestion&) {
    return DnsAnswer{.addresses = {at("192.0.2.1")}, .delay = 50ms};
  };
  with_dns(slow, [](DnsServer& dns) -> Task<void> {
    const ResolveOptions options = asking(dns);
    Result<Addresses> found = co_await resolve("slow.test", 80, options);
    EXPECT_EQ(or_throw(found), Addresses{at("192.0.2.1")});
    EXPECT_EQ(dns.asked.size(), 2u) << "and not asked for again";
  });
}

TEST_P(Resolving, WhatDoesNotFitIntoADatagramComesOverTcp) {
  auto large = [](const DnsQuestion& question) -> DnsAnswer {
    if (!question.over_tcp) return {.truncated = true};
    DnsAnswer many;
    for (int i = 1; i <= 100; ++i) {
      many.addresses.push_back(at(("192.0.2." + std::to_string(i)).c_str()));
    }
    return many;
  };
  with_dns(large, [](DnsServer& dns) -> Task<void> {
    const ResolveOptions options = asking(dns);
    Result<Addresses> found = co_await resolve("large.test", 80, options);
    EXPECT_EQ(or_throw(found).size(), net::kAddressesMax) << "of a hundred";
    unsigned over_tcp = 0;
    for (const DnsQuestion& each : dns.asked) over_tcp += each.over_tcp;
    EXPECT_EQ(over_tcp, 2u);
  });
}

TEST_P(Resolving, WhenOneServerIsSilentTheNextIsAsked) {
  with_dns(ordinary, [](DnsServer& dns) -> Task<void> {
    net::UdpSocket silent = or_throw(net::UdpSocket::bind(Address::loopback_v4(0)));
    ResolveOptions options = asking(dns);
    options.attempt_timeout = 20ms;
    options.servers = {or_throw(silent.local_address()), dns.where()};
    Result<Addresses> found = co_await resolve("four.test", 80, options);
    EXPECT_EQ(or_throw(found), Addresses{at("192.0.2.1")});
    // Nobody at all is told by ICMP, and needs no time.
    options.attempt_timeout = 1h;
    options.family = Family::v4;
    silent.close();
    found = co_await resolve("four.test", 80, options);
    EXPECT_EQ(or_throw(found), Addresses{at("192.0.2.1")});
    options.servers.pop_back();
    found = co_await resolve("four.test", 80, options);
    EXPECT_EQ(found.error(), Error::resolver_failed);
  });
}

Task<void> some_turns(unsigned count) {
  for (unsigned i = 0; i < count; ++i) co_await yield();
}

TEST_P(Resolving, CancelledAnywhereItLeavesNothingBehind) {
  auto over_tcp = [](const DnsQuestion& question) -> DnsAnswer {
    if (!question.over_tcp) return {.truncated = true};
    return {.addresses = kBoth};
  };
  with_dns(over_tcp, [this](DnsServer& dns) -> Task<void> {
    const ResolveOptions options = asking(dns);
    Result<Addresses> first = co_await resolve("both.test", 80, options);
    EXPECT_EQ(or_throw(first).size(), 3u);
    unsigned cancelled = 0;
    for (unsigned i = 0; i < 60; ++i) {
      auto [found, passed] = co_await any_of(resolve("both.test", 80, options), some_turns(i));
      if (!found) ++cancelled;
      if (found) {
        EXPECT_EQ(or_throw(*found).size(), 3u);
      }
    }
    EXPECT_GT(cancelled, 5u) << "the test did not test";
    // The server has to see the end of what was cancelled over TCP, and so its own.
    for (int i = 0; i < 1000 && loop.statistics().descriptors > 2; ++i) co_await sleep_for(1ms);
    EXPECT_EQ(loop.statistics().descriptors, 2u) << "those of the server";
  });
}

TEST_P(Resolving, ManyAtOnce) {
  with_dns(ordinary, [](DnsServer& dns) -> Task<void> {
    const ResolveOptions options = asking(dns);
    std::vector<Task<Result<Addresses>>> all;
    for (int i = 0; i < 50; ++i) all.push_back(resolve("both.test", 80, options));
    Result<std::vector<Addresses>> found = co_await all_of(std::move(all));
    for (const Addresses& each : or_throw(found)) EXPECT_EQ(each.size(), 3u);
  });
}

TEST_P(Resolving, NonsenseIsNoAnswer) {
  std::mt19937 random(1);
  auto nonsense = [&](const DnsQuestion&) -> DnsAnswer {
    std::string bytes(1 + random() % 200, '\0');
    for (char& each : bytes) each = static_cast<char>(random());
    bytes[0] = static_cast<char>(bytes[0] | 0x80);  // an answer, at least
    return {.instead = bytes};
  };
  with_dns(nonsense, [](DnsServer& dns) -> Task<void> {
    ResolveOptions options = asking(dns);
    options.attempt_timeout = 2ms;
    for (int i = 0; i < 30; ++i) {
      Result<Addresses> found = co_await resolve("both.test", 80, options);
      EXPECT_FALSE(found.has_value());
    }
  });
}

// --- Connecting by a name
// -------------------------------------------------------------------------

// Listens on one number over both families.
struct BothFamilies {
  BothFamilies() {
    for (int i = 0; i < 100 && !v6; ++i) {
      v4 = or_throw(TcpListener::listen(Address::loopback_v4(0)));
      port = or_throw(v4.local_address()).port();
      Result<TcpListener> other =
          TcpListener::listen(Address::loopback_v6(port), {.v6_only = true});
      if (other) v6 = std::move(*other);
    }
  }
  TcpListener v4, v6;
  std::uint16_t port = 0;
};
const Addresses kLoopbacks{Address::loopback_v4(0), Address::loopback_v6(0)};

ConnectOptions connecting(const DnsServer& dns, std::vector<ConnectAttempt>* attempts = nullptr) {
  return {.resolve = asking(dns), .attempt_delay = 1h, .attempts = attempts};
}

TEST_P(Resolving, AConnectionByNamePrefersIPv6) {
  auto loopbacks = [](const DnsQuestion&) { return DnsAnswer{.addresses = kLoopbacks}; };
  with_dns(loopbacks, [](DnsServer& dns) -> Task<void> {
    const ConnectOptions plain = connecting(dns);
    std::vector<ConnectAttempt> attempts;
    const ConnectOptions noted = connecting(dns, &attempts);
    BothFamilies here;
    Result<TcpStream> made = co_await TcpStream::connect("here.test", here.port, plain);
    EXPECT_TRUE(or_throw(or_throw(std::move(made)).peer_address()).is_v6());
    here.v6.close();
    made = co_await TcpStream::connect("here.test", here.port, noted);
    EXPECT_TRUE(or_throw(or_throw(std::move(made)).peer_address()).is_v4());
    EXPECT_EQ(attempts.size(), 2u);
    EXPECT_EQ(attempts.at(0).error, std::errc::connection_refused);
    here.v4.close();
    made = co_await TcpStream::connect("here.test", here.port, noted);
    EXPECT_TRUE(is_error(made, std::errc::connection_refused));
    EXPECT_EQ(attempts.size(), 2u) << "all of them";
  });
}

// RFC 8305, section 3.
TEST_P(Resolving, ASilentAnswerForIPv6DoesNotHoldUpIPv4) {
  auto half = [](const DnsQuestion& question) {
    return DnsAnswer{.addresses = kLoopbacks, .silent = question.v6};
  };
  with_dns(half, [](DnsServer& dns) -> Task<void> {
    BothFamilies here;
    ConnectOptions options = connecting(dns);
    options.resolve.attempt_timeout = 1h;
    options.resolve.timeout = 1h;
    TimePoint begun = now();
    Result<TcpStream> made = co_await TcpStream::connect("here.test", here.port, options);
    EXPECT_TRUE(or_throw(or_throw(std::move(made)).peer_address()).is_v4());
    EXPECT_GE(now() - begun, 50ms) << "IPv6 had its resolution delay";
  });
}

TEST_P(Resolving, AnAnswerForIPv6ThatComesSoonEnoughGoesFirst) {
  auto late = [](const DnsQuestion& question) {
    return DnsAnswer{.addresses = kLoopbacks, .delay = question.v6 ? 20ms : 0ms};
  };
  with_dns(late, [](DnsServer& dns) -> Task<void> {
    BothFamilies here;
    ConnectOptions options = connecting(dns);
    options.resolution_delay = 1h;
    Result<TcpStream> made = co_await TcpStream::connect("here.test", here.port, options);
    EXPECT_TRUE(or_throw(or_throw(std::move(made)).peer_address()).is_v6());
  });
}

TEST_P(Resolving, ADeadIPv6AddressIsOvertakenByALiveIPv4One) {
  auto loopbacks = [](const DnsQuestion&) { return DnsAnswer{.addresses = kLoopbacks}; };
  with_dns(loopbacks, [](DnsServer& dns) -> Task<void> {
    BothFamilies here;
    here.v6.close();
    DeadEnd dead(Address::loopback_v6(here.port));
    std::size_t before = open_descriptors();
    std::vector<ConnectAttempt> attempts;
    ConnectOptions options = connecting(dns, &attempts);
    options.attempt_delay = 30ms;
    {
      Result<TcpStream> made = co_await TcpStream::connect("here.test", here.port, options);
      EXPECT_TRUE(or_throw(or_throw(std::move(made)).peer_address()).is_v4());
    }
    EXPECT_EQ(attempts.size(), 2u);
    EXPECT_EQ(attempts.at(0).error, std::errc::operation_canceled);
    EXPECT_EQ(open_descriptors(), before);
  });
}

TEST_P(Resolving, ANameThatIsNotFoundIsTheErrorOfItsConnection) {
  with_dns(ordinary, [](DnsServer& dns) -> Task<void> {
    const ConnectOptions plain = connecting(dns);
    Result<TcpStream> made = co_await TcpStream::connect("nobody.test", 80, plain);
    EXPECT_EQ(made.error(), Error::host_not_found);
    ConnectOptions options = connecting(dns);
    net::UdpSocket silent = or_throw(net::UdpSocket::bind(Address::loopback_v4(0)));
    options.resolve.servers = {or_throw(silent.local_address())};
    made = co_await within(20ms, TcpStream::connect("four.test", 80, options));
    EXPECT_TRUE(is_error(made, std::errc::timed_out));
  });
}

}  // namespace
