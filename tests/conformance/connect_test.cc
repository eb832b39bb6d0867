// SPDX-License-Identifier: MIT
// Happy eyeballs over addresses, on every driver.
#include "weft/net/connect.h"

#include <optional>

#include "dead_end.h"
#include "driver_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using net::Address;
using net::ConnectAttempt;
using net::ConnectOptions;
using net::TcpListener;
using net::TcpStream;

struct Connecting : DriverTest {};
WEFT_ON_EVERY_DRIVER(Connecting);

// A port of this machine that nobody listens on.
Address refusing(bool v6) {
  Address any = v6 ? Address::loopback_v6(0) : Address::loopback_v4(0);
  TcpListener listener = or_throw(TcpListener::listen(any));
  return or_throw(listener.local_address());
}

TEST_P(Connecting, ADeadAddressIsOvertakenByALiveOne) {
  on_loop([]() -> Task<void> {
    DeadEnd dead(Address::loopback_v6(0));
    TcpListener live = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    Address where = or_throw(live.local_address());
    std::vector<ConnectAttempt> attempts;
    ConnectOptions options{.attempt_delay = 30ms, .attempts = &attempts};
    TimePoint begun = now();
    std::vector<Address> addresses{dead.where(), where};
    Result<TcpStream> made = co_await connect_any(addresses, options);
    EXPECT_EQ(or_throw(or_throw(std::move(made)).peer_address()), where);
    EXPECT_GE(now() - begun, 30ms) << "the first had its time";
    EXPECT_EQ(attempts.size(), 2u);
    if (attempts.size() != 2) co_return;
    EXPECT_EQ(attempts[0].where, dead.where());
    EXPECT_EQ(attempts[0].error, std::errc::operation_canceled);
    EXPECT_EQ(attempts[1].where, where);
    EXPECT_FALSE(attempts[1].error);
  });
}

TEST_P(Connecting, OneThatFailsIsFollowedAtOnceAndIPv6AndIPv4TakeTurns) {
  on_loop([]() -> Task<void> {
    std::vector<Address> addresses{refusing(false), refusing(false), refusing(true),
                                   refusing(true)};
    std::vector<ConnectAttempt> attempts;
    ConnectOptions options{.attempt_delay = 1h, .attempts = &attempts};
    Result<TcpStream> made = co_await connect_any(addresses, options);
    EXPECT_TRUE(is_error(made, std::errc::connection_refused));
    EXPECT_EQ(attempts.size(), 4u);
    if (attempts.size() != 4) co_return;
    std::vector<Address> order{addresses[2], addresses[0], addresses[3], addresses[1]};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(attempts[i].error, std::errc::connection_refused);
      EXPECT_EQ(attempts[i].where, order[i]);
    }
  });
}

TEST_P(Connecting, WithoutAddressesThereIsNoHost) {
  on_loop([]() -> Task<void> {
    std::vector<Address> none;
    Result<TcpStream> made = co_await net::connect_any(none);
    EXPECT_EQ(made.error(), net::Error::host_not_found);
  });
}

// Both attempts are under way; one wins, and the other end of the loser reads its end.
TEST_P(Connecting, TheLosersConnectionIsClosed) {
  on_loop([]() -> Task<void> {
    TcpListener one = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    TcpListener other = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    std::vector<Address> addresses{or_throw(one.local_address()), or_throw(other.local_address())};
    std::size_t before = open_descriptors();
    ConnectOptions options{.attempt_delay = 0ms};
    for (int i = 0; i < 50; ++i) {
      Result<TcpStream> made = co_await connect_any(addresses, options);
      EXPECT_TRUE(made.has_value());
      EXPECT_EQ(open_descriptors(), before + 1);
    }
    EXPECT_EQ(open_descriptors(), before);
  });
}

TEST_P(Connecting, ADeadlineEndsEveryAttempt) {
  on_loop([]() -> Task<void> {
    DeadEnd a(Address::loopback_v6(0)), b(Address::loopback_v4(0)), c(Address::loopback_v4(0));
    std::vector<Address> addresses{a.where(), b.where(), c.where()};
    std::vector<ConnectAttempt> attempts;
    ConnectOptions options{.attempt_delay = 0ms, .attempts = &attempts};  // all at once
    std::size_t before = open_descriptors();
    Result<TcpStream> made = co_await within(40ms, connect_any(addresses, options));
    EXPECT_TRUE(is_error(made, std::errc::timed_out));
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_EQ(attempts.size(), 3u);
    for (const ConnectAttempt& each : attempts) {
      EXPECT_EQ(each.error, std::errc::operation_in_progress);
    }
  });
}

Task<void> some_turns(unsigned count) {
  for (unsigned i = 0; i < count; ++i) co_await yield();
}

TEST_P(Connecting, CancelledAnywhereItLeavesNoDescriptor) {
  on_loop([]() -> Task<void> {
    DeadEnd dead(Address::loopback_v6(0));
    TcpListener live = or_throw(TcpListener::listen(Address::loopback_v4(0)));
    std::vector<Address> addresses{refusing(true), dead.where(), or_throw(live.local_address())};
    ConnectOptions options{.attempt_delay = 0ms};
    std::size_t before = open_descriptors();
    unsigned cancelled = 0;
    for (unsigned i = 0; i < 100; ++i) {
      auto [made, passed] = co_await any_of(connect_any(addresses, options), some_turns(i % 10));
      if (!made) ++cancelled;
      made.reset();
      EXPECT_EQ(open_descriptors(), before);
    }
    EXPECT_GT(cancelled, 10u) << "the test did not test";
  });
}

}  // namespace
